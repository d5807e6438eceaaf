import { sql } from 'kysely'
import type { Store } from '../../store/index.ts'

const ROWS = {
  audit_event: { ofProbe: "kind = 'probe'" },
  audit_intent: { ofProbe: "record = ''" },
} as const

export interface Refused {
  readonly table?: keyof typeof ROWS
  readonly client?: string
  /** Also refuses the readiness probe, so that the whole store is unavailable. */
  readonly probe?: boolean
}

/** Makes the database refuse audit rows and accept everything else. Returns a function that ends this. */
export async function refuseRecords(
  { db, dialect }: Store,
  { table = 'audit_event', client, probe = false }: Refused = {},
): Promise<() => Promise<void>> {
  const run = (text: string) => sql.raw(text).execute(db)
  const column = dialect === 'sqlite' ? 'new.' : ''
  const taken = [
    ...(probe ? [] : [`${column}${ROWS[table].ofProbe}`]),
    ...(client === undefined ? [] : [`coalesce(${column}client_id, '') <> '${client}'`]),
  ]
  const isTaken = taken.length === 0 ? 'false' : taken.join(' or ')
  if (dialect === 'sqlite') {
    await run(`create trigger refuse_${table} before insert on ${table} when not (${isTaken})
               begin select raise(abort, 'refused'); end`)
    return async () => void (await run(`drop trigger refuse_${table}`))
  }
  await run(`alter table ${table} add constraint refuse_${table} check (${isTaken}) not valid`)
  return async () => void (await run(`alter table ${table} drop constraint refuse_${table}`))
}
