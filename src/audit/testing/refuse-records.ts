import { sql } from 'kysely'
import type { Store } from '../../store/index.ts'

/**
 * Makes the database refuse rows of the audit trail, all of them or those of one client, while it goes on with everything
 * else. Gives the function that lets it take them again.
 */
export async function refuseRecords(
  { db, dialect }: Store,
  { client, table = 'audit_event' }: { readonly client?: string; readonly table?: string } = {},
): Promise<() => Promise<void>> {
  const run = (text: string) => sql.raw(text).execute(db)
  if (dialect === 'sqlite') {
    const when = client === undefined ? '' : `when new.client_id = '${client}'`
    await run(`create trigger refuse_${table} before insert on ${table} ${when}
               begin select raise(abort, 'refused'); end`)
    return async () => void (await run(`drop trigger refuse_${table}`))
  }
  const check = client === undefined ? 'false' : `client_id is distinct from '${client}'`
  await run(`alter table ${table} add constraint refuse_${table} check (${check}) not valid`)
  return async () => void (await run(`alter table ${table} drop constraint refuse_${table}`))
}
