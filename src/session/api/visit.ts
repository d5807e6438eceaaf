import type { FastifyRequest } from 'fastify'
import type { AppContext } from '../context.ts'
import { fail, type Result, succeed } from '../failure.ts'
import type { Visit } from '../records/visit.ts'
import { findSession } from '../sessions/find-session.ts'
import { type Session, toSession } from '../sessions/session.ts'

/** An idle time that is this much short is not worth a write. */
const GRAIN_MS = 1000

/** Restarts the idle time, for any `/api` request other than `/api/session` (SESSION-3). */
async function useSession({ store, settings, clock }: AppContext, session: Session): Promise<Session> {
  const idleExpiresAt = clock() + settings.app.sessionIdleSeconds * 1000
  const row = await store.db
    .updateTable('app_session')
    .set({ idle_expires_at: idleExpiresAt })
    .where('id_hash', '=', session.idHash)
    .where('idle_expires_at', '<=', idleExpiresAt - GRAIN_MS)
    .returningAll()
    .executeTakeFirst()
  return row ? toSession(row) : session
}

/**
 * Finds the active session of a request. Fails if the page that sent the request belongs to another session
 * (`X-Session-Id`, SESSION-6).
 */
export async function openVisit(
  context: AppContext,
  request: FastifyRequest,
  { extendsSession }: { readonly extendsSession: boolean },
): Promise<Result<Visit>> {
  const found = await findSession(context, request.cookies[context.sessionCookie.name])
  if (!found.ok) return found
  const named = request.headers['x-session-id']
  if (named !== undefined && named !== found.value.sessionId) return fail({ kind: 'another-session' })
  const session = extendsSession ? await useSession(context, found.value) : found.value
  return succeed({ context, session, requestId: request.id })
}
