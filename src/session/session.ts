import type { Selectable } from 'kysely'
import type { Schema, Sealer } from '../store/index.ts'

export interface Tokens {
  readonly accessToken: string
  readonly refreshToken?: string
}

const toSealedCell = (idHash: string) =>
  ({ table: 'app_session', column: 'tokens_sealed', row: idHash }) as const

export function sealTokens(sealer: Sealer, idHash: string, tokens: Tokens): string {
  return sealer.seal(JSON.stringify(tokens), toSealedCell(idHash))
}

/**
 * Undefined if they were sealed with another `SMART_SECRET` or for another session, or were changed: the session is
 * over.
 */
export function openTokens(sealer: Sealer, session: SealedTokens): Tokens | undefined {
  const known = openedTokens.get(session)
  if (known) return known
  const text = sealer.tryOpen(session.tokensSealed, toSealedCell(session.idHash))
  if (text === undefined) return undefined
  const tokens: Tokens = JSON.parse(text)
  openedTokens.set(session, tokens)
  return tokens
}

interface SealedTokens {
  readonly idHash: string
  readonly tokensSealed: string
}

/** A page makes several FHIR requests. A session is loaded for each page, so these tokens do not stay in memory. */
const openedTokens = new WeakMap<SealedTokens, Tokens>()

/** A server-side session of one launch (SESSION-1). Its tokens stay encrypted until they are used. */
export interface Session {
  readonly idHash: string
  /** Public id of the session, not a secret. */
  readonly sessionId: string
  readonly fhirBaseUrl: string
  readonly issuer: string
  readonly subject: string | null
  readonly fhirUser: string | null
  readonly name: string | null
  readonly patientId: string
  readonly encounterId: string | null
  readonly needPatientBanner: boolean
  readonly scope: string
  readonly tokensSealed: string
  readonly tokenVersion: number
  readonly renewAt: number
  readonly createdAt: number
  readonly launchId: string | null
  /** Whether another patient of the FHIR server has a similar name. */
  readonly similarName: boolean
  /** When it ends unless it is used. */
  readonly idleExpiresAt: number
  /** The earliest of its maximum, its idle time, the end of its tokens, and its end by logout (SESSION-2). */
  readonly endsAt: number
  readonly end: SessionEnd
  /** The end that use does not extend: without the idle time. */
  readonly lastEndsAt: number
}

/** What ends a session. `access`: the end of its tokens, by time or because the auth server no longer accepts them. */
export type SessionEnd = 'access' | 'logout' | 'maximum' | 'idle'

/** The page of the session. The id is no secret: without the cookie it opens nothing. */
export function getSessionPath({ sessionId }: Pick<Session, 'sessionId'>): `/s/${string}` {
  return `/s/${sessionId}`
}

type SessionRow = Selectable<Schema['app_session']>

export function toSession(row: SessionRow): Session {
  const lastEndsAt = Math.min(row.max_expires_at, row.renewable_until ?? row.max_expires_at)
  const ends: readonly (readonly [SessionEnd, number | null])[] = [
    ['access', row.renewable_until],
    ['logout', row.ended_at],
    ['maximum', row.max_expires_at],
  ]
  const [end, endsAt] = ends.reduce<readonly [SessionEnd, number]>(
    (first, [kind, at]) => (at !== null && at <= first[1] ? [kind, at] : first),
    ['idle', row.idle_expires_at],
  )
  return {
    idHash: row.id_hash,
    sessionId: row.session_id,
    fhirBaseUrl: row.fhir_base_url,
    issuer: row.issuer,
    subject: row.subject,
    fhirUser: row.fhir_user,
    name: row.name,
    patientId: row.patient_id,
    encounterId: row.encounter_id,
    needPatientBanner: row.need_patient_banner,
    scope: row.scope,
    tokensSealed: row.tokens_sealed,
    tokenVersion: row.token_version,
    renewAt: row.renew_at,
    createdAt: row.created_at,
    launchId: row.launch_id,
    similarName: row.similar_name,
    idleExpiresAt: row.idle_expires_at,
    endsAt,
    end,
    lastEndsAt,
  }
}
