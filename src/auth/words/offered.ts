import { findOwn } from '../../core/index.ts'

/** The types that a wildcard offers one by one on the consent page, in this order: US Core and related types. */
export const OFFERED_TYPES = [
  'Patient',
  'Condition',
  'MedicationRequest',
  'Observation',
  'AllergyIntolerance',
  'Immunization',
  'Procedure',
  'DiagnosticReport',
  'DocumentReference',
  'Encounter',
  'CarePlan',
  'CareTeam',
  'Goal',
  'MedicationDispense',
  'MedicationStatement',
  'Medication',
  'ServiceRequest',
  'Specimen',
  'ImagingStudy',
  'Device',
  'QuestionnaireResponse',
  'Appointment',
  'Coverage',
  'RelatedPerson',
  'Provenance',
] as const

const CONDITION = 'http://terminology.hl7.org/CodeSystem/condition-category'
const OBSERVATION = 'http://terminology.hl7.org/CodeSystem/observation-category'
const US_CORE = 'http://hl7.org/fhir/us/core/CodeSystem'

/**
 * The parts of a type that can be approved separately: values of its `category` search parameter, by US Core. §170.315(g)(10)
 * requires this choice even if an app requests the whole type.
 */
const CATEGORIES: Readonly<Record<string, readonly string[]>> = {
  Condition: [
    `${CONDITION}|problem-list-item`,
    `${CONDITION}|encounter-diagnosis`,
    `${US_CORE}/condition-category|health-concern`,
  ],
  Observation: [
    `${OBSERVATION}|vital-signs`,
    `${OBSERVATION}|laboratory`,
    `${OBSERVATION}|social-history`,
    `${OBSERVATION}|survey`,
    `${US_CORE}/us-core-category|sdoh`,
    `${US_CORE}/us-core-observation-category|clinical-test`,
  ],
}

export function listCategories(type: string): readonly string[] {
  return findOwn(CATEGORIES, type) ?? []
}
