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
  /** A person signs or rejects what an assistant has proposed, or it expires. */
  | 'proposal'
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
  /** Of a resource, or of what an administrator changed. */
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
  /** True if the caller did not authenticate, or is beyond its limit of calls. Repeated requests are counted. */
  readonly anonymous?: boolean | undefined
  /** The number of requests that a count represents. */
  readonly repeats?: number | undefined
  /** The sent and expected values and the claims of tokens of an OAuth event, or an administrator's change. JSON. */
  readonly details?: object | undefined
}

/** What an administrator changes. No type of a FHIR resource is in lower case. */
export type TargetType = 'account' | 'client' | 'grant'

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

/** The status of a change whose outcome is not known. */
export const OUTCOME_UNKNOWN = 0
