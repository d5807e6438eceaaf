import type { Insertable } from 'kysely'
import type { Schema } from '../store/index.ts'

/** What an event is about. */
export type AuditKind =
  /** A request to the FHIR server, or an entry of a Bundle. */
  | 'fhir'
  | 'login'
  | 'logout'
  /** A clinician launches an app for a patient. */
  | 'launch'
  /** An authorization request that ends with a code or a refusal. */
  | 'authorize'
  /** Tokens for a code. */
  | 'token'
  /** Tokens for a refresh token. */
  | 'refresh'
  /** What an app was given ends: by the clinician, by the app, or since a code or token came again. */
  | 'revoke'
  /** A client registers itself (RFC 7591). */
  | 'register'
  /** An administrator changes something by the command line. */
  | 'admin'
  | 'session-open'
  | 'session-renew'
  | 'session-end'
  /** A request to the session API. */
  | 'api'

/** Who did what, when, for which patient, and what became of it. It holds no secret and no patient's name. */
export interface AuditRecord {
  readonly at: number
  readonly server: 'auth' | 'fhir' | 'app'
  readonly kind: AuditKind
  /** Of a FHIR request. */
  readonly interaction?: string | undefined
  /** Whether it was let through, whatever then became of it. */
  readonly allowed: boolean
  /** HTTP status of the response. */
  readonly status: number
  readonly method?: string | undefined
  /** Address below the base, without values that may name a person. */
  readonly request?: string | undefined
  readonly type?: string | undefined
  readonly id?: string | undefined
  /** The one whose data it is about. */
  readonly patient?: string | undefined
  /** In the place of `patient`, where it is about several, with `OTHERS` where not all are named. */
  readonly patients?: readonly string[] | undefined
  readonly client?: string | undefined
  /** The clinician's `id`. */
  readonly subject?: string | undefined
  /** `Practitioner/1` */
  readonly fhirUser?: string | undefined
  /** The scope that decided, or `fhirUser`, `public`, `entries`. */
  readonly by?: string | undefined
  /** Of a refusal. */
  readonly reason?: string | undefined
  readonly launch?: string | undefined
  readonly requestId?: string | undefined
  readonly address?: string | undefined
  /** Whether nobody proved who they are. Such requests are counted where they repeat one another. */
  readonly anonymous?: boolean | undefined
  /** Of a count: how many requests it stands for. */
  readonly repeats?: number | undefined
}

/** Stands among patients for those who are not named: too many, or not known. No id is like it. */
export const OTHERS = '*'

export function fileUnder(patients: readonly string[]): Pick<AuditRecord, 'patient' | 'patients'> {
  const [first, ...more] = patients
  return first === undefined || (more.length === 0 && first !== OTHERS) ? { patient: first } : { patients }
}

/** The patients under whom a record is filed, without `OTHERS`, and whether there are others. */
export function readFiledPatients(row: {
  readonly patient_id: string | null
  readonly patients: string | null
}) {
  const list = row.patients?.trim().split(' ') ?? (row.patient_id === null ? [] : [row.patient_id])
  return { patients: list.filter(it => it !== OTHERS), hasOthers: list.includes(OTHERS) }
}

export type AuditRow = Insertable<Schema['audit_event']>

// A column never holds more than a row can bear, whatever a caller sends.
const LONGEST = 2000

/** Throws when a record is not what its type says: it must not reach a commit that others share. */
export function toRow(record: AuditRecord, deliveryId: string | null = null): AuditRow {
  if (!Number.isSafeInteger(record.at) || !Number.isSafeInteger(record.status))
    throw malformed('at or status')
  if (typeof record.allowed !== 'boolean') throw malformed('allowed')
  return {
    at: record.at,
    server: record.server,
    kind: record.kind,
    interaction: storable(record.interaction),
    allowed: record.allowed,
    status: record.status,
    method: storable(record.method),
    request: storable(record.request),
    resource_type: storable(record.type),
    resource_id: storable(record.id),
    patient_id: storable(record.patient),
    patients: record.patients === undefined ? null : wellFormed(` ${record.patients.join(' ')} `),
    client_id: storable(record.client),
    subject: storable(record.subject),
    fhir_user: storable(record.fhirUser),
    decided_by: storable(record.by),
    reason: storable(record.reason),
    launch_id: storable(record.launch),
    request_id: storable(record.requestId),
    address: storable(record.address),
    delivery_id: deliveryId,
    repeats: record.repeats ?? null,
  }
}

function malformed(member: string): TypeError {
  return new TypeError(`Cannot keep audit record: its ${member} is not valid`)
}

function storable(text: string | undefined): string | null {
  if (text === undefined) return null
  if (typeof text !== 'string') throw malformed('text')
  return wellFormed(text.length <= LONGEST ? text : `${text.slice(0, LONGEST)}…`)
}

/** PostgreSQL stores neither a NUL nor half of a surrogate pair. */
function wellFormed(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\ufffd')
}
