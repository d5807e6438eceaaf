import type { Observation, ObservationComponent, ObservationReferenceRange, Quantity } from 'fhir/r4.js'
import { instantText } from '../calendar.ts'
import { services } from '../catalogue/services.ts'
import { type Chart, type Numbering, reportedAt, type Visit } from '../chart.ts'
import { coded, concept, reference, systems } from '../coding.ts'
import { patientId } from './patient.ts'
import { practitionerReference } from './staff.ts'

const categories = {
  'vital-signs': 'Vital Signs',
  laboratory: 'Laboratory',
  'social-history': 'Social History',
  survey: 'Survey',
} as const

/** The content of one observation, without patient, time and place. */
export interface Finding {
  readonly category: keyof typeof categories
  readonly loinc: string
  readonly display: string
  readonly text: string
  readonly value?: Pick<Observation, 'valueQuantity' | 'valueCodeableConcept' | 'valueInteger'>
  readonly component?: ObservationComponent[]
  readonly referenceRange?: ObservationReferenceRange[]
  readonly interpretation?: 'H' | 'L' | 'N'
}

const interpretations = { H: 'High', L: 'Low', N: 'Normal' } as const

export function observationRecord(
  finding: Finding,
  visit: Visit,
  moment: number,
  chart: Chart,
  numbering: Numbering,
): Observation {
  const { category, loinc, display, text, interpretation } = finding
  return {
    resourceType: 'Observation',
    id: numbering('observation'),
    status: 'final',
    category: [coded(systems.observationCategory, category, categories[category])],
    code: concept(systems.loinc, loinc, display, text),
    subject: reference('Patient', patientId(chart.person)),
    encounter: reference('Encounter', visit.id),
    effectiveDateTime: instantText(moment),
    issued: instantText(category === 'laboratory' ? reportedAt(moment, chart.today) : moment),
    performer: [practitionerReference(services[visit.service].staff[0])],
    ...finding.value,
    ...(interpretation && {
      interpretation: [coded(systems.interpretation, interpretation, interpretations[interpretation])],
    }),
    ...(finding.referenceRange && { referenceRange: finding.referenceRange }),
    ...(finding.component && { component: finding.component }),
  }
}

export function quantity(value: number, unit: string, code: string): Quantity {
  return { value, unit, system: systems.ucum, code }
}
