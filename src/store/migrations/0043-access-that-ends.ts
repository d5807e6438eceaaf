import { type ColumnDataType, type Kysely, sql } from 'kysely'
import type { Migration } from '../migrate.ts'
import type { Schema } from '../schema.ts'
import type { Store } from '../store.ts'

/**
 * What a login or a grant was given for, so that it ends when that is no longer true; accounts and clients that were made
 * for loopback; and a list of changed accounts and clients. Earlier logins and grants have no basis, and end.
 */
export const accessThatEnds: Migration = {
  name: '0043-access-that-ends',
  async up(db, dialect) {
    await addColumns(db)
    await markSampleAccounts(db)
    await db.schema
      .createTable('access_change')
      .addColumn('id', dialect === 'sqlite' ? 'integer' : 'bigserial', column => column.primaryKey())
      .addColumn('clinician_id', 'text')
      .addColumn('client_id', 'text')
      .execute()
    for (const note of NOTES) for (const text of CREATE[dialect](note)) await sql.raw(text).execute(db)
  },
}

async function addColumns(db: Kysely<Schema>): Promise<void> {
  const add = (
    table: 'clinician' | 'client' | 'login' | 'grant',
    name: string,
    type: ColumnDataType,
    value: string,
  ) =>
    db.schema
      .alterTable(table)
      .addColumn(name, type, column => column.notNull().defaultTo(sql.raw(value)))
      .execute()
  await add('clinician', 'access_version', 'integer', '0')
  for (const table of ['clinician', 'client'] as const) await add(table, 'for_loopback', 'boolean', 'false')
  for (const table of ['login', 'grant'] as const)
    for (const name of ['account_mark', 'basis']) await add(table, name, 'text', "''")
  await add('grant', 'client_mark', 'text', "''")
  for (const name of ['issuer', 'subject'])
    await db.schema.alterTable('grant').addColumn(name, 'text').execute()
}

/** Sample accounts have the password of the sample administrator. A client that is not approved registered itself. */
async function markSampleAccounts(db: Kysely<Schema>): Promise<void> {
  await sql`update clinician set for_loopback = true where password_hash in
    (select password_hash from clinician where id = 'sample-administrator')`.execute(db)
  await sql`update client set for_loopback = true where approved = false or expires_at is not null`.execute(
    db,
  )
}

/** A change after which logins and grants may have ended. */
interface Note {
  readonly table: keyof Schema
  readonly event: 'update' | 'delete'
  /** The columns of an update; it must change one of them. */
  readonly columns?: readonly string[]
  /** The column that names the account or the client, and its column in the list. */
  readonly key: string
  readonly noted: 'clinician_id' | 'client_id'
}

const NOTES: readonly Note[] = [
  {
    ...{ table: 'clinician', event: 'update', key: 'id', noted: 'clinician_id' },
    columns: ['password_hash', 'fhir_user_id', 'disabled', 'access_version', 'for_loopback'],
  },
  {
    ...{ table: 'client', event: 'update', key: 'client_id', noted: 'client_id' },
    columns: ['scope', 'disabled', 'enabled_at', 'expires_at', 'for_loopback'],
  },
  {
    ...{ table: 'clinician_link', event: 'update', key: 'clinician_id', noted: 'clinician_id' },
    columns: ['clinician_id', 'provisioned'],
  },
  { table: 'clinician_link', event: 'delete', key: 'clinician_id', noted: 'clinician_id' },
  { table: 'account_related_person', event: 'delete', key: 'clinician_id', noted: 'clinician_id' },
  { table: 'login', event: 'delete', key: 'clinician_id', noted: 'clinician_id' },
]

const describe = ({ table, event, columns, key, noted }: Note, isOther: string) => ({
  name: `access_change_${table}_${event}`,
  on: `${event}${columns ? ` of ${columns.join(', ')}` : ''} on ${table}`,
  when: columns?.map(column => `old.${column} ${isOther} new.${column}`).join(' or '),
  insert: `insert into access_change (${noted}) values (old.${key})`,
})

/** Triggers, so that no statement that changes an account or a client can omit it. */
const CREATE: Readonly<Record<Store['dialect'], (note: Note) => readonly string[]>> = {
  sqlite: note => {
    const { name, on, when, insert } = describe(note, 'is not')
    return [`create trigger ${name} after ${on} ${when ? `when ${when}` : ''} begin ${insert}; end`]
  },
  postgres: note => {
    const { name, on, when, insert } = describe(note, 'is distinct from')
    return [
      `create function ${name}() returns trigger language plpgsql as $$ begin ${insert}; return null; end $$`,
      `create trigger ${name} after ${on} for each row ${when ? `when (${when})` : ''} execute function ${name}()`,
    ]
  },
}
