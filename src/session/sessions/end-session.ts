import type { AppContext } from '../context.ts'
import type { Session } from './session.ts'

/** Ends a session: its cookie opens nothing any more, on any instance. */
export async function endSession({ store }: AppContext, session: Session): Promise<void> {
  await store.db.deleteFrom('app_session').where('id_hash', '=', session.idHash).execute()
}
