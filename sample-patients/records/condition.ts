import type { Condition } from 'fhir/r4.js'
import { dateText } from '../calendar.ts'
import { services } from '../catalogue/services.ts'
import type { Chart, Problem } from '../chart.ts'
import { coded, concept, reference, systems } from '../coding.ts'
import { patientId } from './patient.ts'
import { practitionerReference } from './staff.ts'

export function conditionRecord(problem: Problem, chart: Chart): Condition {
  const { entry, began, found, over } = problem
  const visit = chart.visits.find(it => it.problem === problem && it.purpose === 'found')
  return {
    resourceType: 'Condition',
    id: problem.id,
    clinicalStatus: coded(systems.conditionClinical, over === undefined ? 'active' : 'resolved'),
    verificationStatus: coded(systems.conditionVerification, 'confirmed'),
    category: [categoryOf(problem)],
    code: codeOf(problem),
    subject: reference('Patient', patientId(chart.person)),
    ...(visit && { encounter: reference('Encounter', visit.id) }),
    onsetDateTime: dateText(began),
    ...(over !== undefined && { abatementDateTime: dateText(over) }),
    ...(isRecorded(problem, chart) && { recordedDate: dateText(found) }),
    recorder: practitionerReference(services[entry.found].staff[0]),
  }
}

/** Old problems came with the patient, and nobody wrote down when: a list that is sorted by date must cope. */
function isRecorded(problem: Problem, chart: Chart): boolean {
  return chart.end - problem.found < 2 * 365 || chart.person.number === 1 || chart.random.chance(0.88)
}

function categoryOf({ entry }: Problem) {
  return entry.category === 'health-concern'
    ? coded(systems.usCoreConditionCategory, 'health-concern', 'Health Concern')
    : entry.category === 'problem-list-item'
      ? coded(systems.conditionCategory, 'problem-list-item', 'Problem List Item')
      : coded(systems.conditionCategory, 'encounter-diagnosis', 'Encounter Diagnosis')
}

function codeOf({ entry }: Problem) {
  const snomed = concept(systems.snomed, entry.snomed, entry.display)
  if (entry.icd10 === undefined) return snomed
  return { ...snomed, coding: [...(snomed.coding ?? []), { system: systems.icd10, code: entry.icd10 }] }
}
