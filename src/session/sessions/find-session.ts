import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Kysely } from 'kysely'
import { type Schema, sha256 } from '../../store/index.ts'
import type { CookieDefinition } from '../../web/index.ts'
import { type AppContext, defineAppCookie } from '../context.ts'
import { fail, type Result, succeed } from '../failure.ts'
import { type Session, toSession } from './session.ts'

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
  if (held.length === 0) return []
  const hashes = held.map(({ idHash }) => idHash)
  const rows = await db
    .selectFrom('app_session')
    .selectAll()
    .where('id_hash', 'in', hashes)
    .orderBy('created_at', 'desc')
    .execute()
  return rows.map(toSession).filter(session => session.endsAt > clock() && opens(held, session))
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
  if (typeof params === 'object' && params !== null && 'sessionId' in params) return String(params.sessionId)
  return headers['x-session-id']?.toString()
}

async function findOnlySession(
  context: AppContext,
  held: readonly SessionCookie[],
): Promise<Result<Session>> {
  const [session, ...others] = await listOpenSessions(context, context.store.db, held)
  if (others.length > 0) return fail({ kind: 'several-sessions' })
  return session ? succeed(session) : fail({ kind: held.length === 0 ? 'no-session' : 'session-ended' })
}

async function findNamedSession(
  { store, clock }: AppContext,
  held: readonly SessionCookie[],
  named: string,
): Promise<Result<Session>> {
  const row = await store.db
    .selectFrom('app_session')
    .selectAll()
    .where('session_id', '=', named)
    .executeTakeFirst()
  const session = row && toSession(row)
  const hasEnded = session ? session.endsAt <= clock() : held.some(({ sessionId }) => sessionId === named)
  if (hasEnded) return fail({ kind: 'session-ended' })
  if (session && opens(held, session)) return succeed(session)
  return fail({ kind: held.length === 0 ? 'no-session' : 'another-session' })
}
