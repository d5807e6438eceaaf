import { isShortText, readFhirContext } from '../launch/further-context.ts'
import type { LaunchWish } from '../launch/prepare.ts'
import { LIMITS } from '../limits.ts'

/** What an EHR asks for: a launch of one app, for one patient, in the name of one user. */
export interface LaunchOrder {
  readonly username: string
  readonly wish: LaunchWish
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

/** Reads the JSON of `POST /launch-contexts`, or says what is wrong with it. A name that is not known is a mistake. */
export function readLaunchOrder(body: unknown): LaunchOrder | string {
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    return 'The body must be a JSON object'
  const members: Readonly<Record<string, unknown>> = { ...body }
  const unknown = Object.keys(members).find(name => !MEMBERS.has(name))
  if (unknown !== undefined) return `There is no member ${JSON.stringify(unknown.slice(0, 40))}`
  const { client_id, username, patient, encounter, need_patient_banner: banner } = members
  if (!isShortText(client_id)) return 'client_id is missing or not a text'
  if (!isShortText(username)) return 'username is missing or not a text'
  if (!isShortText(patient)) return 'patient is missing or not the id of a Patient'
  if (encounter !== undefined && !isShortText(encounter)) return 'encounter is not the id of an Encounter'
  if (banner !== undefined && typeof banner !== 'boolean') return 'need_patient_banner is not true or false'
  const further = readFurther(members)
  if (typeof further === 'string') return further
  const options = { needPatientBanner: banner, further }
  return {
    username,
    wish: { clientId: client_id, patientId: patient, encounterId: encounter, options, repeated: false },
  }
}

function readFurther({ intent, tenant, fhirContext = [] }: Readonly<Record<string, unknown>>) {
  if (intent !== undefined && !isShortText(intent))
    return `intent is not a text of at most ${LIMITS.contextTextCharacters} characters`
  if (tenant !== undefined && !isShortText(tenant))
    return `tenant is not a text of at most ${LIMITS.contextTextCharacters} characters`
  const items = readFhirContext(fhirContext)
  if (typeof items === 'string') return items
  return {
    ...(intent === undefined ? {} : { intent }),
    ...(tenant === undefined ? {} : { tenant }),
    ...(items.length === 0 ? {} : { fhirContext: items }),
  }
}
