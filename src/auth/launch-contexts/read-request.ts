import { isShortText, readFhirContext } from '../launch/extra-context.ts'
import type { LaunchRequest } from '../launch/prepare.ts'
import { LIMITS } from '../limits.ts'

/** An EHR's request to launch an app for a patient and a user. */
export interface LaunchContextRequest {
  readonly username: string
  readonly launch: LaunchRequest
}

const MEMBERS: ReadonlySet<string> = new Set([
  'client_id',
  'username',
  'patient',
  'encounter',
  'need_patient_banner',
  'intent',
  'fhirContext',
  'tenant',
])

/** Reads the JSON of `POST /launch-contexts`, or says what is wrong with it. Unknown members are errors. */
export function readLaunchContextRequest(body: unknown): LaunchContextRequest | string {
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    return 'The body must be a JSON object'
  const members: Readonly<Record<string, unknown>> = { ...body }
  const unknown = Object.keys(members).find(name => !MEMBERS.has(name))
  if (unknown !== undefined) return `There is no member ${JSON.stringify(unknown.slice(0, 40))}`
  const { client_id, username, patient, encounter, need_patient_banner: banner } = members
  if (!isShortText(client_id)) return 'client_id is missing or not a string'
  if (!isShortText(username)) return 'username is missing or not a string'
  if (!isShortText(patient)) return 'patient is missing or not the id of a Patient'
  if (encounter !== undefined && !isShortText(encounter)) return 'encounter is not the id of an Encounter'
  if (banner !== undefined && typeof banner !== 'boolean') return 'need_patient_banner is not true or false'
  const extraContext = readExtraContext(members)
  if (typeof extraContext === 'string') return extraContext
  const options = { needPatientBanner: banner, extraContext }
  return {
    username,
    launch: { clientId: client_id, patientId: patient, encounterId: encounter, options, repeated: false },
  }
}

function readExtraContext({ intent, tenant, fhirContext = [] }: Readonly<Record<string, unknown>>) {
  if (intent !== undefined && !isShortText(intent))
    return `intent is not a string of at most ${LIMITS.contextTextCharacters} characters`
  if (tenant !== undefined && !isShortText(tenant))
    return `tenant is not a string of at most ${LIMITS.contextTextCharacters} characters`
  const items = readFhirContext(fhirContext)
  if (typeof items === 'string') return items
  return {
    ...(intent === undefined ? {} : { intent }),
    ...(tenant === undefined ? {} : { tenant }),
    ...(items.length === 0 ? {} : { fhirContext: items }),
  }
}
