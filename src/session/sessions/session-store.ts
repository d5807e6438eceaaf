import { randomUUID } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Kysely, Transaction } from 'kysely'
import { failApp } from '../../app-reasons/index.ts'
import type { AuditRecord } from '../../audit/index.ts'
import { isRecord } from '../../core/index.ts'
import { parseReference } from '../../fhir/index.ts'
import { createRandomToken, prepareInsert, prepareQuery, type Schema, sha256 } from '../../store/index.ts'
import type { CookieDefinition } from '../../web/http/index.ts'
import { type Audience, findAudience } from '../audience.ts'
import { defineAppCookie } from '../context.ts'
import type { Result } from '../failure.ts'
import { SESSIONS_PER_BROWSER } from '../limits.ts'
import type { AppContext } from '../oauth/context.ts'
import { computeLifetime, type ReceivedGrant } from '../oauth/token-grant.ts'
import type { Identity } from '../oauth/token-requests.ts'
import { type Session, type SessionEnd, sealTokens, toSession } from '../session.ts'
import { computeIdleSeconds } from './idle.ts'

export interface NewSession {
  readonly fhirBaseUrl: string
  readonly issuer: string
  readonly grant: ReceivedGrant
  readonly patientId: string
  readonly identity: Identity | undefined
  /** The session cookies of the browser. */
  readonly held: readonly SessionCookie[]
}

export interface OpenedSession {
  readonly cookie: string
  readonly opened: Session
  /** The oldest sessions of the browser, which end because it has too many. */
  readonly ended: readonly Session[]
  /** The cookies of the browser that open no session any more. */
  readonly closed: readonly SessionCookie[]
}

/** The cookie is 32 random bytes; only its hash is stored. */
export async function openSession(
  trx: Transaction<Schema>,
  context: AppContext,
  opening: NewSession,
): Promise<OpenedSession> {
  const cookie = createRandomToken()
  const row = toRow(context, opening, sha256(cookie))
  const open = await listOpenSessions(context, trx, opening.held)
  const kept = open.slice(0, SESSIONS_PER_BROWSER - 1)
  const ended: Session[] = []
  for (const oldest of open.slice(kept.length)) ended.push(await endSession(trx, oldest, context.clock()))
  await insertSession(trx, row)
  const closed = opening.held.filter(({ idHash }) => !kept.some(session => session.idHash === idHash))
  return { cookie, opened: toSession(row), ended, closed }
}

const insertSession = prepareInsert('app_session')

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
    idle_expires_at: now + computeIdleSeconds(settings, opening) * 1000,
    renewable_until: renewableUntil,
    launch_id: grant.launchId ?? null,
    ended_at: null,
    similar_name: grant.similarName,
  }
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

/**
 * Ends a session and deletes its tokens. Returns it with the tokens that it had until then, to be revoked: a renewal may have
 * replaced them since the session was loaded.
 */
export async function endSession(db: Kysely<Schema>, session: Session, now: number): Promise<Session> {
  const ended = await db
    .updateTable('app_session')
    .set({ ended_at: now })
    .where('id_hash', '=', session.idHash)
    .returningAll()
    .executeTakeFirst()
  await db
    .updateTable('app_session')
    .set({ tokens_sealed: '' })
    .where('id_hash', '=', session.idHash)
    .execute()
  return ended ? toSession(ended) : session
}

type Event = Pick<AuditRecord, 'kind' | 'status'> &
  Partial<
    Pick<AuditRecord, 'allowed' | 'method' | 'request' | 'reason' | 'details' | 'requestId' | 'address'>
  >

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

/** The name of the cookie contains the public id of the session; only its value opens the session (SESSION-1). */
export function planSessionCookie({ settings }: AppContext, sessionId: string): CookieDefinition {
  return defineAppCookie(settings, `sallyport-session-${sessionId}`)
}

export function clearSessionCookie(context: AppContext, reply: FastifyReply, sessionId: string): void {
  const { name, attributes } = planSessionCookie(context, sessionId)
  reply.clearCookie(name, attributes)
}

/** A session cookie that a browser sent. Its session may have ended. */
export interface SessionCookie {
  readonly sessionId: string
  readonly idHash: string
}

export function readSessionCookies(
  context: AppContext,
  { cookies }: FastifyRequest,
): readonly SessionCookie[] {
  const prefix = planSessionCookie(context, '').name
  return Object.entries(cookies).flatMap(([name, value = '']) =>
    name.startsWith(prefix) ? [{ sessionId: name.slice(prefix.length), idHash: sha256(value) }] : [],
  )
}

/** The open sessions of a browser, the newest first. */
export async function listOpenSessions(
  { clock }: AppContext,
  db: Kysely<Schema>,
  held: readonly SessionCookie[],
): Promise<readonly Session[]> {
  const sessions = await listHeldSessions(db, held)
  return sessions.filter(({ endsAt }) => endsAt > clock())
}

/** Who uses the app in a browser, also after the named session or all of its sessions have ended, and what ended it. */
export async function findVisitor(context: AppContext, request: FastifyRequest): Promise<Visitor> {
  const { db } = context.store
  const named = findSessionName(request)
  const [row] = named === undefined ? [] : (await selectNamed(db, { named })).rows
  const [newest] = row ? [toSession(row)] : await listHeldSessions(db, readSessionCookies(context, request))
  if (!newest) return { audience: 'unknown' }
  const hasEnded = newest.endsAt <= context.clock()
  return {
    audience: findAudience(newest),
    end: hasEnded ? newest.end : undefined,
    idleSeconds: computeIdleSeconds(context.settings, newest),
  }
}

export interface Visitor {
  readonly audience: Audience
  /** What ended the session, if that is known. */
  readonly end?: SessionEnd | undefined
  /** The idle time of the session. */
  readonly idleSeconds?: number
}

/** The sessions of a browser whose rows still exist, the newest first. */
async function listHeldSessions(
  db: Kysely<Schema>,
  held: readonly SessionCookie[],
): Promise<readonly Session[]> {
  if (held.length === 0) return []
  const hashes = held.map(({ idHash }) => idHash)
  const rows = await db
    .selectFrom('app_session')
    .selectAll()
    .where('id_hash', 'in', hashes)
    .orderBy('created_at', 'desc')
    .execute()
  return rows.map(toSession).filter(session => opens(held, session))
}

function opens(held: readonly SessionCookie[], session: Session): boolean {
  return held.some(({ sessionId, idHash }) => sessionId === session.sessionId && idHash === session.idHash)
}

/** The session that a request names, or else the only open session of the browser (SESSION-6). */
export async function findSession(context: AppContext, request: FastifyRequest): Promise<Result<Session>> {
  const held = readSessionCookies(context, request)
  const named = findSessionName(request)
  return named === undefined ? findOnlySession(context, held) : findNamedSession(context, held, named)
}

function findSessionName({ params, headers }: FastifyRequest): string | undefined {
  const sessionId = isRecord(params) ? params.sessionId : undefined
  return sessionId === undefined ? headers['x-session-id']?.toString() : String(sessionId)
}

async function findOnlySession(
  context: AppContext,
  held: readonly SessionCookie[],
): Promise<Result<Session>> {
  const [session, ...others] = await listOpenSessions(context, context.store.db, held)
  if (others.length > 0) return failApp('several-sessions')
  return session ?? failApp(held.length === 0 ? 'no-session' : 'session-ended')
}

async function findNamedSession(
  { store, clock }: AppContext,
  held: readonly SessionCookie[],
  named: string,
): Promise<Result<Session>> {
  const [row] = (await selectNamed(store.db, { named })).rows
  const session = row && toSession(row)
  const hasEnded = session ? session.endsAt <= clock() : held.some(({ sessionId }) => sessionId === named)
  if (hasEnded) return failApp('session-ended')
  if (session && opens(held, session)) return session
  return failApp(held.length === 0 ? 'no-session' : 'another-session')
}

const selectNamed = prepareQuery((db, { named }: { named: string }) =>
  db.selectFrom('app_session').selectAll().where('session_id', '=', named),
)
