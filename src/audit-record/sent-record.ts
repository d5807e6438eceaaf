import { isId } from '../fhir/index.ts'
import { type AuditRecord, OTHERS, OUTCOME_UNKNOWN } from './record.ts'

/** Characters of a text, and patients, of a record that is sent to another server. */
const SENT_CHARACTERS = 2_000
const SENT_PATIENTS = 1_001

/** Server, kind and sender are not the sender's to say. Anonymous requests are counted before. */
export type SentRecord = Omit<AuditRecord, 'server' | 'kind' | 'anonymous' | 'details'>

type Check = (value: unknown) => boolean

const isText = (value: unknown) => typeof value === 'string' && value.length <= SENT_CHARACTERS
const isMatch = (pattern: RegExp) => (value: unknown) => typeof value === 'string' && pattern.test(value)
const isIdText = (value: unknown) => typeof value === 'string' && isId(value)
export const isWithin = (least: number, most: number) => (value: unknown) =>
  Number.isSafeInteger(value) && Number(value) >= least && Number(value) <= most

export const isStatus = isWithin(0, 599)

/** The members that a record may do without. */
export const OPTIONAL_MEMBERS: Readonly<Record<string, Check>> = {
  interaction: isMatch(/^[a-z-]{1,40}$/),
  method: isMatch(/^[A-Z-]{1,20}$/),
  request: isText,
  type: isMatch(/^[A-Z*][A-Za-z]{0,63}$/),
  id: isIdText,
  patient: isIdText,
  patients: value =>
    Array.isArray(value) && value.length <= SENT_PATIENTS && value.every(it => it === OTHERS || isIdText(it)),
  client: isText,
  subject: isText,
  fhirUser: isMatch(/^[A-Z][A-Za-z]{0,63}\/[A-Za-z0-9.-]{1,64}$/),
  by: isText,
  reason: isText,
  launch: isMatch(/^[\w-]{1,128}$/),
  // Other issuers choose their own `jti`.
  token: isMatch(/^[!-~]{1,256}$/),
  requestId: isMatch(/^[\w.:/+=-]{1,128}$/),
  // With an @ it would be that of a command.
  address: isMatch(/^[\w.:%-]{1,64}$/),
  repeats: isWithin(1, 1_000_000_000),
}

/**
 * A record as a receiver accepts it. Whatever of it others chose, an address or a method, it is sent: a text is shortened, and
 * a member that would not be accepted is left out.
 */
export function toSentRecord(record: AuditRecord): SentRecord {
  const { at, allowed, status } = record
  const members = Object.entries({ ...record, patients: shortenList(record.patients) })
    .map(
      ([name, value]) => [name, typeof value === 'string' ? value.slice(0, SENT_CHARACTERS) : value] as const,
    )
    .filter(([name, value]) => Object.hasOwn(OPTIONAL_MEMBERS, name) && OPTIONAL_MEMBERS[name]?.(value))
  return { ...Object.fromEntries(members), at, allowed, status: isStatus(status) ? status : OUTCOME_UNKNOWN }
}

/** `*` stands for further patients. */
function shortenList(patients: readonly string[] | undefined): readonly string[] | undefined {
  return patients === undefined || patients.length < SENT_PATIENTS
    ? patients
    : [...patients.slice(0, SENT_PATIENTS - 1), OTHERS]
}
