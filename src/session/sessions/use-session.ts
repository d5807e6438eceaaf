import type { AppContext } from '../context.ts'
import { type Session, toSession } from './session.ts'

/** An idle time that is this much short is not worth a write. */
const GRAIN_MS = 1000

/** Restarts the idle time, for any `/api` request other than `/api/session` (SESSION-3). */
export async function useSession({ store, settings, clock }: AppContext, session: Session): Promise<Session> {
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
