import { type Kysely, sql } from 'kysely'
import type { Migration } from '../migrate.ts'
import type { Schema } from '../schema.ts'
import type { Store } from '../store.ts'

/**
 * Indexes in the order in which audit records are listed, so that every page of every search starts at its first
 * row; the patients of a record about several; indexes of everything that expires; one sweeper among several
 * processes.
 */
export const auditSearchAndSweep: Migration = {
  name: '0011-audit-search-and-sweep',
  async up(db, dialect) {
    await replaceAuditIndexes(db, dialect)
    await createAuditPatient(db)
    for (const statement of PATIENT_TRIGGERS[dialect]) await sql.raw(statement).execute(db)
    await sql.raw(FILL_PATIENTS[dialect]).execute(db)
    await indexExpiry(db)
    await createLease(db)
  },
}

/** Searches repeat these conditions word for word, or the database does not use the index. */
const PARTIAL = [
  ['kind', "kind <> 'fhir'"],
  ['interaction', "kind = 'fhir' and interaction not in ('read', 'search-type', 'search-compartment')"],
  ['fhir_user', 'fhir_user is not null'],
] as const

async function replaceAuditIndexes(db: Kysely<Schema>, dialect: Store['dialect']): Promise<void> {
  // Every index of SQLite ends with the rowid, which is the id.
  const order = dialect === 'sqlite' ? 'at' : 'at, id'
  const run = (text: string) => sql.raw(text).execute(db)
  await run('drop index audit_event_several')
  for (const [column, condition] of PARTIAL)
    await run(`create index audit_event_${column} on audit_event (${column}, ${order}) where ${condition}`)
  await run(
    `create index audit_event_failed on audit_event (${order}) where allowed = false or status >= 400 or status = 0`,
  )
  if (dialect === 'sqlite') return
  await run('drop index audit_event_at')
  await run('create index audit_event_at on audit_event (at, id)')
  for (const column of ['patient_id', 'client_id', 'launch_id']) {
    await run(`drop index audit_event_${column}_at`)
    await run(`create index audit_event_${column}_at on audit_event (${column}, at, id)`)
  }
}

async function createAuditPatient(db: Kysely<Schema>): Promise<void> {
  await db.schema
    .createTable('audit_event_patient')
    .addColumn('patient_id', 'text', column => column.notNull())
    .addColumn('at', 'bigint', column => column.notNull())
    .addColumn('audit_id', 'bigint', column => column.notNull())
    .addPrimaryKeyConstraint('audit_event_patient_key', ['patient_id', 'at', 'audit_id'])
    .execute()
}

const split = {
  // `json_quote` escapes the ids, so that the separators can be replaced by those of a JSON array.
  sqlite: (row: string) =>
    `json_each('[' || replace(json_quote(trim(${row}patients)), ' ', '","') || ']') as patient`,
  postgres: (row: string) => `unnest(string_to_array(trim(${row}patients), ' ')) as patient (value)`,
} as const

const addPatients = (dialect: Store['dialect'], from: string, row: string) =>
  `insert into audit_event_patient (patient_id, at, audit_id)
   select distinct patient.value, ${row}at, ${row}id from ${from}${split[dialect](row)} where patient.value <> '*'`

const FILL_PATIENTS = {
  sqlite: `${addPatients('sqlite', 'audit_event as event, ', 'event.')} and event.patients is not null`,
  postgres: `${addPatients('postgres', 'audit_event as event, ', 'event.')} and event.patients is not null`,
} as const

const REMOVE_PATIENTS = (dialect: Store['dialect']) =>
  `delete from audit_event_patient where at = old.at and audit_id = old.id
   and patient_id in (select patient.value from ${split[dialect]('old.')})`

/** Triggers, so that no statement that adds or removes a record can omit its patients. */
const PATIENT_TRIGGERS = {
  sqlite: [
    `create trigger audit_event_add_patients after insert on audit_event when new.patients is not null
     begin ${addPatients('sqlite', '', 'new.')}; end`,
    `create trigger audit_event_remove_patients after delete on audit_event when old.patients is not null
     begin ${REMOVE_PATIENTS('sqlite')}; end`,
  ],
  postgres: [
    `create function audit_event_add_patients() returns trigger language plpgsql as
     $$ begin ${addPatients('postgres', '', 'new.')}; return null; end $$`,
    `create function audit_event_remove_patients() returns trigger language plpgsql as
     $$ begin ${REMOVE_PATIENTS('postgres')}; return null; end $$`,
    `create trigger audit_event_add_patients after insert on audit_event
     for each row when (new.patients is not null) execute function audit_event_add_patients()`,
    `create trigger audit_event_remove_patients after delete on audit_event
     for each row when (old.patients is not null) execute function audit_event_remove_patients()`,
  ],
} as const

async function indexExpiry(db: Kysely<Schema>): Promise<void> {
  for (const [table, column] of [
    ['app_session', 'max_expires_at'],
    ['app_session', 'renewable_until'],
    ['audit_intent', 'at'],
  ] as const)
    await db.schema.createIndex(`${table}_${column}`).on(table).column(column).execute()
  await db.schema.dropIndex('grant_last_used_at').execute()
  await db.schema.createIndex('grant_last_used_at').on('grant').columns(['last_used_at', 'id']).execute()
}

/** The process that holds the lease of a job does it; the others leave it until the lease ends. */
async function createLease(db: Kysely<Schema>): Promise<void> {
  await db.schema
    .createTable('lease')
    .addColumn('job', 'text', column => column.primaryKey())
    .addColumn('holder', 'text', column => column.notNull())
    .addColumn('ends_at', 'bigint', column => column.notNull())
    .execute()
}
