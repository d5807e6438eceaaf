import { sha256 } from '../../store/index.ts'
import type { AppContext } from '../context.ts'
import { fail, type Result, succeed } from '../failure.ts'
import { type Session, toSession } from './session.ts'

/** The live session of a cookie. */
export async function findSession(context: AppContext, cookie: string | undefined): Promise<Result<Session>> {
  if (cookie === undefined || cookie === '') return fail({ kind: 'no-session' })
  const session = await loadSession(context, sha256(cookie))
  return session ? succeed(session) : fail({ kind: 'session-over' })
}

/** Undefined once it has ended, also while its row still waits to be removed. */
export async function loadSession(context: AppContext, idHash: string): Promise<Session | undefined> {
  const row = await context.store.db
    .selectFrom('app_session')
    .selectAll()
    .where('id_hash', '=', idHash)
    .executeTakeFirst()
  const session = row && toSession(row)
  return session && session.endsAt > context.clock() ? session : undefined
}
