import type { AppContext } from '../context.ts'
import { type Result, succeed } from '../failure.ts'
import { renewSession } from './renew-session.ts'
import type { Session } from './session.ts'

/** The session with an access token that can be used now: renewed first when its time has come. */
export async function refreshSession(context: AppContext, session: Session): Promise<Result<Session>> {
  return context.clock() < session.renewAt ? succeed(session) : renewSession(context, session)
}

/**
 * The session, for an answer that needs no token. Tokens that are due are renewed all the same: a session whose renewal
 * is refused must not be called alive (attacks 24). An auth server that is merely away ends nothing.
 */
export async function checkSession(context: AppContext, session: Session): Promise<Result<Session>> {
  const fresh = await refreshSession(context, session)
  return fresh.ok || fresh.failure.kind === 'session-over' ? fresh : succeed(session)
}
