import type { Settings } from '../../config/index.ts'

/** The types that the kit reads with US Core 7.0.0. */
const TYPES =
  'AllergyIntolerance CarePlan CareTeam Condition Coverage Device DiagnosticReport DocumentReference Encounter Goal ' +
  'Immunization Location Media Medication MedicationDispense MedicationRequest Observation Organization Patient ' +
  'Practitioner PractitionerRole Procedure Provenance QuestionnaireResponse RelatedPerson ServiceRequest Specimen'

const READ = permit(TYPES, 'rs')
const READ_OTHERS = permit(TYPES.replace(/Condition |Observation /g, ''), 'rs')

const HL7 = 'http://terminology.hl7.org/CodeSystem'
const US_CORE = 'http://hl7.org/fhir/us/core/CodeSystem'

/** The scopes that the kit expects, without the context. */
const IN_CATEGORIES = {
  first: [
    `Condition.rs?category=${HL7}/condition-category|encounter-diagnosis`,
    `Condition.rs?category=${US_CORE}/condition-category|health-concern`,
    `Observation.rs?category=${HL7}/observation-category|laboratory`,
    `Observation.rs?category=${HL7}/observation-category|social-history`,
  ],
  second: [
    `Condition.rs?category=${HL7}/condition-category|problem-list-item`,
    `Observation.rs?category=${HL7}/observation-category|vital-signs`,
    `Observation.rs?category=${HL7}/observation-category|survey`,
    `Observation.rs?category=${US_CORE}/us-core-category|sdoh`,
  ],
}

/** The scopes that the kit requests, by the input that has them. */
const SCOPES = {
  standalone_smart_auth_info: formatScope('launch/patient', 'patient', READ),
  ehr_smart_auth_info: formatScope('launch', 'user', READ),
  ehr_patient_smart_auth_info: formatScope('launch', 'patient', ['Patient.rs']),
  public_smart_auth_info: formatScope('launch/patient', 'patient', READ),
  asymmetric_smart_auth_info: formatScope('launch/patient', 'patient', READ),
  v1_smart_auth_info: formatScope('launch/patient', 'patient', permit(TYPES, 'read')),
  granular_scopes_1_auth_info: formatScope('launch/patient', 'patient', [
    ...READ_OTHERS,
    ...IN_CATEGORIES.first,
  ]),
  granular_scopes_2_auth_info: formatScope('launch/patient', 'patient', [
    ...READ_OTHERS,
    ...IN_CATEGORIES.second,
  ]),
  granular_scopes_selection_smart_auth_info: formatScope('launch/patient', 'patient', [
    ...permit('Condition Observation Patient', 'rs'),
  ]),
}

/** The sample patients that together have every must-support element of US Core, and the Group with both. */
const PATIENTS = 'patient-59,patient-60'
const GROUP = 'group-60'

/**
 * The inputs of the (g)(10) kit 8.0.0, for a server with the sample patients. What a person must attest is not among them, nor
 * notes.
 */
export function describePreset(
  { fhirBaseUrl, issuerUrl }: Pick<Settings, 'fhirBaseUrl' | 'issuerUrl'>,
  secrets: Readonly<Record<string, string>>,
): object {
  const texts = {
    url: fhirBaseUrl,
    expected_resources: 'patient, condition, observation',
    additional_patient_ids: PATIENTS,
    bulk_server_url: fhirBaseUrl,
    group_id: GROUP,
    bulk_patient_ids_in_group: PATIENTS,
    bulk_timeout: '180',
    since_timestamp: '2020-01-01T00:00:00Z',
  }
  const bulk = {
    auth_type: 'backend_services',
    client_id: 'inferno-backend',
    encryption_algorithm: 'ES384',
    token_url: `${issuerUrl}/oauth2/token`,
    requested_scopes: 'system/*.rs',
  }
  const authorizations = {
    ...Object.fromEntries(
      Object.entries(SCOPES).map(([input, scope]) => [
        input,
        {
          ...describeApp(input, secrets),
          requested_scopes: scope,
          pkce_support: 'enabled',
          pkce_code_challenge_method: 'S256',
          auth_request_method: 'GET',
        },
      ]),
    ),
    bulk_smart_auth_info: bulk,
  }
  return {
    title: 'Sallyport',
    id: 'sallyport',
    test_suite_id: 'g10_certification',
    inputs: [...listInputs('text', texts), ...listInputs('auth_info', authorizations)],
  }
}

function describeApp(input: string, secrets: Readonly<Record<string, string>>): object {
  if (input === 'public_smart_auth_info') return { auth_type: 'public', client_id: 'inferno-public' }
  if (input === 'asymmetric_smart_auth_info')
    return { auth_type: 'asymmetric', client_id: 'inferno-keys', encryption_algorithm: 'ES384' }
  const id = 'inferno-secret'
  return { auth_type: 'symmetric', client_id: id, client_secret: secrets[id] }
}

/** `_type` is how Inferno's own presets note the type for their readers. */
function listInputs(type: string, values: Readonly<Record<string, unknown>>): readonly object[] {
  return Object.entries(values).map(([name, value]) => ({ name, value, _type: type }))
}

function permit(types: string, permission: string): readonly string[] {
  return types.split(' ').map(type => `${type}.${permission}`)
}

function formatScope(
  launch: 'launch' | 'launch/patient',
  context: 'patient' | 'user',
  parts: readonly string[],
): string {
  return [launch, 'openid', 'fhirUser', 'offline_access', ...parts.map(part => `${context}/${part}`)].join(
    ' ',
  )
}
