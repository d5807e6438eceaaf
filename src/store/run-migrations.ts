import { type Kysely, sql, type Transaction } from 'kysely'
import type { Migration } from './migrate.ts'
import { migrations } from './migrations/index.ts'
import type { Schema } from './schema.ts'
import type { Store } from './store.ts'

type WithMigrations = Schema & {
  schema_migration: { name: string; applied_at: number }
}

// An arbitrary constant: the bytes of "sallypor".
const ADVISORY_LOCK = sql.lit('8313759869310561394')

/**
 * Runs all missing migrations in one transaction, so that an interrupted start leaves no partial schema. Several
 * instances may start at once: on PostgreSQL the others wait for an advisory lock, on SQLite for the write lock.
 */
export async function migrate(store: Store, steps: readonly Migration[] = migrations): Promise<void> {
  await store.db.transaction().execute(async trx => {
    if (store.dialect === 'postgres')
      await sql`select pg_advisory_xact_lock(${ADVISORY_LOCK}::bigint)`.execute(trx)
    const applied = await appliedMigrations(trx)
    refuseNewer(applied, steps)
    for (const step of steps) if (!applied.has(step.name)) await apply(step, trx, store.dialect)
  })
}

async function appliedMigrations(trx: Transaction<Schema>): Promise<ReadonlySet<string>> {
  await trx.schema
    .createTable('schema_migration')
    .ifNotExists()
    .addColumn('name', 'text', column => column.primaryKey())
    .addColumn('applied_at', 'bigint', column => column.notNull())
    .execute()
  const rows = await table(trx).selectFrom('schema_migration').select('name').execute()
  return new Set(rows.map(row => row.name))
}

async function apply(step: Migration, trx: Transaction<Schema>, dialect: Store['dialect']): Promise<void> {
  await step.up(trx, dialect)
  await table(trx)
    .insertInto('schema_migration')
    .values({ name: step.name, applied_at: Date.now() })
    .execute()
}

function refuseNewer(applied: ReadonlySet<string>, steps: readonly Migration[]): void {
  const unknown = [...applied].find(name => !steps.some(step => step.name === name))
  if (unknown !== undefined)
    throw new Error(`a newer version of Sallyport created it (it has migration ${unknown})`)
}

function table(trx: Transaction<Schema>): Kysely<WithMigrations> {
  return trx.withTables<Pick<WithMigrations, 'schema_migration'>>()
}
