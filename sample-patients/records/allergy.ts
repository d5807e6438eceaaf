import type { AllergyIntolerance } from 'fhir/r4.js'
import { dateText } from '../calendar.ts'
import { type AllergenEntry, allergens, noKnownAllergy, reactions } from '../catalogue/allergens.ts'
import type { AllergenKey, Chart, Numbering } from '../chart.ts'
import { coded, concept, reference, systems } from '../coding.ts'
import { patientId } from './patient.ts'
import { practitionerReference } from './staff.ts'

/** What someone is allergic to, or that they were asked and nothing is known; for some nobody asked. */
export function* allergyRecords(chart: Chart, numbering: Numbering): Generator<AllergyIntolerance> {
  for (const key of chart.allergies) yield allergyRecord(key, chart, numbering)
  if (chart.allergies.length === 0 && chart.random.chance(0.7)) yield noneKnown(chart, numbering)
}

function allergyRecord(key: AllergenKey, chart: Chart, numbering: Numbering): AllergyIntolerance {
  const { system, code, display, category, criticality, reactions: seen }: AllergenEntry = allergens[key]
  const { random, end, person } = chart
  const since = random.int(Math.max(person.born, end - 9000), end - 1)
  const [reaction, words] = reactions[random.pick(seen)]
  return {
    ...common(chart, numbering),
    type: 'allergy',
    category: [category],
    criticality,
    code: concept(systems[system], code, display),
    onsetDateTime: dateText(since),
    recordedDate: dateText(since),
    reaction: [
      {
        manifestation: [concept(systems.snomed, reaction, words)],
        severity: criticality === 'high' ? 'severe' : random.pick(['mild', 'moderate']),
      },
    ],
  }
}

function noneKnown(chart: Chart, numbering: Numbering): AllergyIntolerance {
  return { ...common(chart, numbering), code: concept(systems.snomed, noKnownAllergy[0], noKnownAllergy[1]) }
}

function common(chart: Chart, numbering: Numbering) {
  return {
    resourceType: 'AllergyIntolerance' as const,
    id: numbering('allergyintolerance'),
    clinicalStatus: coded(systems.allergyClinical, 'active'),
    verificationStatus: coded(systems.allergyVerification, 'confirmed'),
    patient: reference('Patient', patientId(chart.person)),
    recorder: practitionerReference('valcourt'),
  }
}
