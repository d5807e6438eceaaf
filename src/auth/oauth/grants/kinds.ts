/** A kind of data, described for clinicians. */
interface Kind {
  readonly title: string
  readonly text: string
  /** For use in a sentence: "Reads conditions and medicines". */
  readonly noun: string
}

/** By R4 type, in the order in which a wildcard offers them: US Core and related types. */
const KINDS = {
  Patient: {
    title: 'Patient details',
    text: 'Name, birth date, sex, address and contact details.',
    noun: 'patient details',
  },
  Condition: {
    title: 'Conditions',
    text: 'Problems and diagnoses, past and present.',
    noun: 'conditions',
  },
  MedicationRequest: {
    title: 'Medicines prescribed',
    text: 'Name, dose and instructions of each prescription.',
    noun: 'prescriptions',
  },
  Observation: {
    title: 'Measurements and results',
    text: 'Vital signs, laboratory results, social history and questionnaires.',
    noun: 'measurements',
  },
  AllergyIntolerance: {
    title: 'Allergies',
    text: 'Allergies and intolerances, with their reactions.',
    noun: 'allergies',
  },
  Immunization: { title: 'Vaccinations', text: 'Vaccines given, and when.', noun: 'vaccinations' },
  Procedure: { title: 'Procedures', text: 'Operations and other treatments.', noun: 'procedures' },
  DiagnosticReport: {
    title: 'Reports',
    text: 'Laboratory, imaging and other reports with their conclusions.',
    noun: 'reports',
  },
  DocumentReference: {
    title: 'Notes and documents',
    text: 'Clinical notes, letters and scanned documents.',
    noun: 'documents',
  },
  Encounter: { title: 'Encounters', text: 'Visits and stays, with dates and places.', noun: 'encounters' },
  CarePlan: {
    title: 'Care plans',
    text: 'Treatment and activities planned for the patient.',
    noun: 'care plans',
  },
  CareTeam: { title: 'Care teams', text: 'The people who look after the patient.', noun: 'care teams' },
  Goal: { title: 'Goals', text: 'The aims of the treatment.', noun: 'goals' },
  MedicationDispense: {
    title: 'Medicines dispensed',
    text: 'Medicines supplied by a pharmacy.',
    noun: 'dispensed medicines',
  },
  MedicationStatement: {
    title: 'Medicines taken',
    text: 'Medicines that the patient reports taking.',
    noun: 'medicines taken',
  },
  Medication: {
    title: 'Names of medicines',
    text: 'Names, strengths and forms of the medicines that prescriptions refer to.',
    noun: 'names of medicines',
  },
  ServiceRequest: { title: 'Orders', text: 'Referrals and orders for tests and treatment.', noun: 'orders' },
  Specimen: { title: 'Specimens', text: 'Samples that were taken.', noun: 'specimens' },
  ImagingStudy: { title: 'Images', text: 'Imaging studies, such as X-rays.', noun: 'images' },
  Device: { title: 'Devices', text: 'Implants and other devices.', noun: 'devices' },
  QuestionnaireResponse: {
    title: 'Questionnaires',
    text: 'Answers to questionnaires.',
    noun: 'questionnaires',
  },
  Appointment: { title: 'Appointments', text: 'Planned visits.', noun: 'appointments' },
  Coverage: { title: 'Insurance', text: 'Who pays for the care.', noun: 'insurance' },
  RelatedPerson: { title: 'Relatives', text: 'Relatives and carers.', noun: 'relatives' },
  Provenance: {
    title: 'Sources of entries',
    text: 'Who recorded each entry, and when.',
    noun: 'sources of entries',
  },
} as const satisfies Readonly<Record<string, Kind>>

export const offeredTypes: readonly string[] = Object.keys(KINDS)

const EVERYTHING: Kind = {
  title: 'Everything in the record',
  text: 'All kinds of data, including kinds that are added later.',
  noun: 'everything in the record, including kinds of data that are added later',
}

export function describeKind(type: string): Kind {
  if (type === '*') return EVERYTHING
  const known: Readonly<Record<string, Kind>> = KINDS
  const plain = type.replace(/(?<=[a-z])[A-Z]/g, letter => ` ${letter.toLowerCase()}`)
  return (
    (Object.hasOwn(known, type) ? known[type] : undefined) ?? {
      title: plain,
      text: `Entries of the kind “${plain}”.`,
      noun: `${plain.toLowerCase()} entries`,
    }
  )
}

/** A part of a kind that can be approved separately: a value of its `category` search parameter. */
interface Category {
  readonly title: string
  /** As a token: `system|code`. */
  readonly token: string
}

const CONDITION = 'http://terminology.hl7.org/CodeSystem/condition-category'
const OBSERVATION = 'http://terminology.hl7.org/CodeSystem/observation-category'
const US_CORE = 'http://hl7.org/fhir/us/core/CodeSystem'

/** The categories of US Core. §170.315(g)(10) requires this choice even if an app requests the whole kind. */
const CATEGORIES: Readonly<Record<string, readonly Category[]>> = {
  Condition: [
    { title: 'Problem list', token: `${CONDITION}|problem-list-item` },
    { title: 'Diagnoses made at a visit', token: `${CONDITION}|encounter-diagnosis` },
    { title: 'Health concerns', token: `${US_CORE}/condition-category|health-concern` },
  ],
  Observation: [
    { title: 'Vital signs', token: `${OBSERVATION}|vital-signs` },
    { title: 'Laboratory results', token: `${OBSERVATION}|laboratory` },
    { title: 'Social history', token: `${OBSERVATION}|social-history` },
    { title: 'Questionnaires', token: `${OBSERVATION}|survey` },
    { title: 'Social needs', token: `${US_CORE}/us-core-category|sdoh` },
    { title: 'Clinical tests', token: `${US_CORE}/us-core-observation-category|clinical-test` },
  ],
}

export function listCategories(type: string): readonly Category[] {
  return (Object.hasOwn(CATEGORIES, type) ? CATEGORIES[type] : undefined) ?? []
}
