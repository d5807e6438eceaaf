/** A kind of data, described for clinicians. */
interface Kind {
  readonly title: string
  readonly text: string
  /** For use in a sentence, such as "Reads conditions and medicines"; by default the title. */
  readonly noun?: string
}

/** By R4 type, in the order in which a wildcard offers them: US Core and related types. */
const KINDS: Readonly<Record<string, Kind>> = {
  Patient: { title: 'Patient details', text: 'Name, birth date, sex, address and contact details.' },
  Condition: { title: 'Conditions', text: 'Problems and diagnoses, past and present.' },
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
  AllergyIntolerance: { title: 'Allergies', text: 'Allergies and intolerances, with their reactions.' },
  Immunization: { title: 'Vaccinations', text: 'Vaccines given, and when.' },
  Procedure: { title: 'Procedures', text: 'Operations and other treatments.' },
  DiagnosticReport: {
    title: 'Reports',
    text: 'Laboratory, imaging and other reports with their conclusions.',
  },
  DocumentReference: {
    title: 'Notes and documents',
    text: 'Clinical notes, letters and scanned documents.',
    noun: 'documents',
  },
  Encounter: { title: 'Encounters', text: 'Visits and stays, with dates and places.' },
  CarePlan: { title: 'Care plans', text: 'Treatment and activities planned for the patient.' },
  CareTeam: { title: 'Care teams', text: 'The people who look after the patient.' },
  Goal: { title: 'Goals', text: 'The aims of the treatment.' },
  MedicationDispense: {
    title: 'Medicines dispensed',
    text: 'Medicines supplied by a pharmacy.',
    noun: 'dispensed medicines',
  },
  MedicationStatement: { title: 'Medicines taken', text: 'Medicines that the patient reports taking.' },
  Medication: {
    title: 'Names of medicines',
    text: 'Names, strengths and forms of the medicines that prescriptions refer to.',
  },
  ServiceRequest: { title: 'Orders', text: 'Referrals and orders for tests and treatment.' },
  Specimen: { title: 'Specimens', text: 'Samples that were taken.' },
  ImagingStudy: { title: 'Images', text: 'Imaging studies, such as X-rays.' },
  Device: { title: 'Devices', text: 'Implants and other devices.' },
  QuestionnaireResponse: { title: 'Questionnaires', text: 'Answers to questionnaires.' },
  Appointment: { title: 'Appointments', text: 'Planned visits.' },
  Coverage: { title: 'Insurance', text: 'Who pays for the care.' },
  RelatedPerson: { title: 'Relatives', text: 'Relatives and carers.' },
  Provenance: { title: 'Sources of entries', text: 'Who recorded each entry, and when.' },
}

export const offeredTypes: readonly string[] = Object.keys(KINDS)

const EVERYTHING = {
  title: 'Everything in the record',
  text: 'All kinds of data, including kinds that are added later.',
  noun: 'everything in the record, including kinds of data that are added later',
}

export function describeKind(type: string): Required<Kind> {
  if (type === '*') return EVERYTHING
  const kind = Object.hasOwn(KINDS, type) ? KINDS[type] : undefined
  if (kind) return { noun: kind.title.toLowerCase(), ...kind }
  const title = type.replace(/(?<=[a-z])[A-Z]/g, letter => ` ${letter.toLowerCase()}`)
  return { title, text: `Entries of the kind “${title}”.`, noun: `${title.toLowerCase()} entries` }
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
