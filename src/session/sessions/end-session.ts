import type { Kysely } from 'kysely'
import type { Schema } from '../../store/index.ts'
import type { Session } from './session.ts'

/** Ends a session: its cookie opens nothing any more, on any instance. */
export async function endSession(db: Kysely<Schema>, session: Session): Promise<void> {
  await db.deleteFrom('app_session').where('id_hash', '=', session.idHash).execute()
}
