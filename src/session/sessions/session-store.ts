import { randomUUID } from 'node:crypto'
import type { Kysely, Transaction } from 'kysely'
import type { AuditRecord } from '../../audit/index.ts'
import { parseReference } from '../../fhir/index.ts'
import { createRandomToken, type Schema, sha256 } from '../../store/index.ts'
import type { AppContext } from '../context.ts'
import { fail, type Result, succeed } from '../failure.ts'
import { computeLifetime, type TokenGrant } from '../oauth/token-grant.ts'
import type { Identity } from '../oauth/token-requests.ts'
import { type Session, sealTokens, toSession } from './session.ts'

interface NewSession {
  readonly fhirBaseUrl: string
  readonly issuer: string
  readonly grant: TokenGrant
  readonly patientId: string
  readonly identity: Identity | undefined
  /** The browser's current session cookie. That session ends (SESSION-6). */
  readonly replaces: string | undefined
}

interface OpenedSession {
  readonly cookie: string
  readonly opened: Session
  readonly replaced: Session | undefined
}

/** The cookie is 32 random bytes; only its hash is stored. */
export async function openSession(
  trx: Transaction<Schema>,
  context: AppContext,
  opening: NewSession,
): Promise<OpenedSession> {
  const cookie = createRandomToken()
  const row = toRow(context, opening, sha256(cookie))
  const replaced = opening.replaces
    ? await trx
        .deleteFrom('app_session')
        .where('id_hash', '=', sha256(opening.replaces))
        .returningAll()
        .executeTakeFirst()
    : undefined
  await trx.insertInto('app_session').values(row).execute()
  return { cookie, opened: toSession(row), replaced: replaced && toSession(replaced) }
}

function toRow({ settings, sealer, clock }: AppContext, opening: NewSession, idHash: string) {
  const { grant, identity } = opening
  const now = clock()
  const { renewAt, renewableUntil } = computeLifetime(grant, now)
  return {
    id_hash: idHash,
    session_id: randomUUID(),
    fhir_base_url: opening.fhirBaseUrl,
    issuer: opening.issuer,
    subject: identity?.subject ?? null,
    fhir_user: identity?.fhirUser ?? null,
    name: identity?.name ?? null,
    patient_id: opening.patientId,
    encounter_id: grant.encounterId ?? null,
    need_patient_banner: grant.needPatientBanner,
    scope: grant.scope ?? settings.app.scope,
    tokens_sealed: sealTokens(sealer, idHash, grant.tokens),
    token_version: 1,
    renew_at: renewAt,
    renewing_until: null,
    created_at: now,
    max_expires_at: now + settings.app.sessionMaxSeconds * 1000,
    idle_expires_at: now + settings.app.sessionIdleSeconds * 1000,
    renewable_until: renewableUntil,
    launch_id: grant.launchId ?? null,
  }
}

export async function findSession(context: AppContext, cookie: string | undefined): Promise<Result<Session>> {
  if (cookie === undefined || cookie === '') return fail({ kind: 'no-session' })
  const session = await loadSession(context, sha256(cookie))
  return session ? succeed(session) : fail({ kind: 'session-ended' })
}

/** Returns undefined once the session has ended, even if its row still exists. */
export async function loadSession(context: AppContext, idHash: string): Promise<Session | undefined> {
  const row = await context.store.db
    .selectFrom('app_session')
    .selectAll()
    .where('id_hash', '=', idHash)
    .executeTakeFirst()
  const session = row && toSession(row)
  return session && session.endsAt > context.clock() ? session : undefined
}

export async function endSession(db: Kysely<Schema>, session: Session): Promise<void> {
  await db.deleteFrom('app_session').where('id_hash', '=', session.idHash).execute()
}

type Event = Pick<AuditRecord, 'kind' | 'status'> &
  Partial<Pick<AuditRecord, 'allowed' | 'method' | 'request' | 'reason' | 'requestId' | 'address'>>

/** Resolves when the response may be sent. An event that records a change belongs in the transaction of that change. */
export function auditSession(
  context: AppContext,
  session: Session | undefined,
  event: Event,
  trx?: Transaction<Schema>,
): Promise<void> {
  const { audit, clock, settings } = context
  const user = session?.fhirUser ? parseReference(session.fhirUser, session.fhirBaseUrl) : undefined
  const record: AuditRecord = {
    at: clock(),
    server: 'app',
    allowed: true,
    client: settings.app.clientId,
    anonymous: session === undefined,
    ...(session && {
      patient: session.patientId,
      subject: session.subject ?? undefined,
      fhirUser: user && `${user.type}/${user.id}`,
      launch: session.launchId ?? undefined,
    }),
    ...event,
  }
  return trx ? audit.recordIn(trx, record) : audit.record(record)
}
