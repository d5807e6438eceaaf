import type { Insertable } from 'kysely'
import type { Schema } from '../store/index.ts'

export type AuditKind =
  | 'fhir'
  | 'login'
  | 'logout'
  | 'launch'
  | 'authorize'
  | 'token'
  | 'refresh'
  /** Recorded only for developers: a resource server may introspect every token that it gets. */
  | 'introspect'
  /** Access of an app ends: by the clinician, by the app, or because a code or token was reused. */
  | 'revoke'
  | 'register'
  | 'admin'
  | 'session-open'
  | 'session-renew'
  | 'session-end'
  | 'api'
  /** The newest seal of the audit trail. */
  | 'seal'

/** Contains no secret and no patient name. */
export interface AuditRecord {
  readonly at: number
  readonly server: 'auth' | 'fhir' | 'app'
  readonly kind: AuditKind
  readonly interaction?: string | undefined
  /** True if the request was allowed, whatever its outcome. */
  readonly allowed: boolean
  readonly status: number
  readonly method?: string | undefined
  /** URL below the base, without values that may identify a person. */
  readonly request?: string | undefined
  readonly type?: string | undefined
  readonly id?: string | undefined
  readonly patient?: string | undefined
  /** Replaces `patient` if there are several, with `OTHERS` if not all are named. */
  readonly patients?: readonly string[] | undefined
  readonly client?: string | undefined
  readonly subject?: string | undefined
  readonly fhirUser?: string | undefined
  /** The scope that allowed the request, or `fhirUser`, `public`, `entries`. */
  readonly by?: string | undefined
  readonly reason?: string | undefined
  readonly launch?: string | undefined
  /** The `jti` of the access token, without the launch id that it begins with. */
  readonly token?: string | undefined
  readonly requestId?: string | undefined
  readonly address?: string | undefined
  /** True if the caller did not authenticate. Repeated requests are counted. */
  readonly anonymous?: boolean | undefined
  /** The number of requests that a count represents. */
  readonly repeats?: number | undefined
  /** The sent and expected values and the claims of tokens of an OAuth event, or an administrator's change. JSON. */
  readonly details?: object | undefined
}

/** Represents patients that are not named: too many, or unknown. It is not a valid id. */
export const OTHERS = '*'

export function fileUnder(patients: readonly string[]): Pick<AuditRecord, 'patient' | 'patients'> {
  const [first, ...more] = patients
  return first === undefined || (more.length === 0 && first !== OTHERS) ? { patient: first } : { patients }
}

export function readFiledPatients(row: {
  readonly patient_id: string | null
  readonly patients: string | null
}) {
  const list = row.patients?.trim().split(' ') ?? (row.patient_id === null ? [] : [row.patient_id])
  return { patients: list.filter(it => it !== OTHERS), hasOthers: list.includes(OTHERS) }
}

export type AuditRow = Insertable<Schema['audit_event']>

// Limits every column, whatever a caller sends.
const MAX_CHARACTERS = 2000
const MAX_DETAILS = 8000

/** Throws if a record does not match its type: it must not reach a shared commit. */
export function toRow(record: AuditRecord, deliveryId: string | null = null): AuditRow {
  if (!Number.isSafeInteger(record.at) || !Number.isSafeInteger(record.status))
    throw failMalformed('at or status')
  if (typeof record.allowed !== 'boolean') throw failMalformed('allowed')
  return {
    at: record.at,
    server: record.server,
    kind: record.kind,
    interaction: toStorable(record.interaction),
    allowed: record.allowed,
    status: record.status,
    method: toStorable(record.method),
    request: toStorable(record.request),
    resource_type: toStorable(record.type),
    resource_id: toStorable(record.id),
    patient_id: toStorable(record.patient),
    patients: record.patients === undefined ? null : replaceUnstorable(` ${record.patients.join(' ')} `),
    client_id: toStorable(record.client),
    subject: toStorable(record.subject),
    fhir_user: toStorable(record.fhirUser),
    decided_by: toStorable(record.by),
    reason: toStorable(record.reason),
    launch_id: toStorable(record.launch),
    request_id: toStorable(record.requestId),
    address: toStorable(record.address),
    delivery_id: deliveryId,
    token_id: toStorable(record.token),
    repeats: record.repeats ?? null,
    details: record.details === undefined ? null : toStorableJson(record.details),
  }
}

/** Incomplete JSON is of no use. */
function toStorableJson(details: object): string | null {
  const text = JSON.stringify(details)
  return text.length <= MAX_DETAILS ? text : null
}

function failMalformed(member: string): TypeError {
  return new TypeError(`Cannot store audit record: its ${member} is not valid`)
}

function toStorable(text: string | undefined): string | null {
  if (text === undefined) return null
  if (typeof text !== 'string') throw failMalformed('text')
  return replaceUnstorable(text.length <= MAX_CHARACTERS ? text : `${text.slice(0, MAX_CHARACTERS)}…`)
}

/** PostgreSQL stores neither NUL nor an unpaired surrogate. */
function replaceUnstorable(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\ufffd')
}

export interface Delivery {
  readonly id: string
  readonly record: AuditRecord
}

export const OUTCOME_UNKNOWN = 0

/** Longer than a change can take, at an upstream or in a batch. */
export const UNKNOWN_AFTER_MS = 10 * 60_000
