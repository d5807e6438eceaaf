import { sql } from 'kysely'
import type { Store } from '../../store/index.ts'

/**
 * Makes the database refuse audit records, all of them or those of one client, while it goes on with everything else.
 * Gives the function that lets it take them again.
 */
export async function refuseRecords({ db, dialect }: Store, client?: string): Promise<() => Promise<void>> {
  const run = (text: string) => sql.raw(text).execute(db)
  if (dialect === 'sqlite') {
    const when = client === undefined ? '' : `when new.client_id = '${client}'`
    await run(`create trigger refuse_records before insert on audit_event ${when}
               begin select raise(abort, 'refused'); end`)
    return async () => void (await run('drop trigger refuse_records'))
  }
  const check = client === undefined ? 'false' : `client_id is distinct from '${client}'`
  await run(`alter table audit_event add constraint refuse_records check (${check}) not valid`)
  return async () => void (await run('alter table audit_event drop constraint refuse_records'))
}
