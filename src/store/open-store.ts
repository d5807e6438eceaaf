import { existsSync } from 'node:fs'
import { type Kysely, sql, type Transaction } from 'kysely'
import { describeError } from '../core/index.ts'
import { describeUnavailable } from './availability.ts'
import { checkSchema } from './check-schema.ts'
import type { Migration } from './migrate.ts'
import { migrations } from './migrations/index.ts'
import type { Schema } from './schema.ts'
import type { OpenedDatabase, Store, StoreOptions } from './store.ts'
import { parseDatabaseUrl } from './store.ts'

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
    const applied = await listAppliedMigrations(trx)
    refuseNewer(applied, steps)
    for (const step of steps) if (!applied.has(step.name)) await apply(step, trx, store.dialect)
  })
}

async function listAppliedMigrations(trx: Transaction<Schema>): Promise<ReadonlySet<string>> {
  await trx.schema
    .createTable('schema_migration')
    .ifNotExists()
    .addColumn('name', 'text', column => column.primaryKey())
    .addColumn('applied_at', 'bigint', column => column.notNull())
    .execute()
  const rows = await selectMigrations(trx).selectFrom('schema_migration').select('name').execute()
  return new Set(rows.map(row => row.name))
}

async function apply(step: Migration, trx: Transaction<Schema>, dialect: Store['dialect']): Promise<void> {
  for (const statement of step.list(dialect)) await sql.raw(statement).execute(trx)
  await selectMigrations(trx)
    .insertInto('schema_migration')
    .values({ name: step.name, applied_at: Date.now() })
    .execute()
}

function refuseNewer(applied: ReadonlySet<string>, steps: readonly Migration[]): void {
  const unknown = [...applied].find(name => !steps.some(step => step.name === name))
  if (unknown !== undefined)
    throw new Error(`a newer version of Sallyport created it (it has migration ${unknown})`)
}

function selectMigrations(trx: Transaction<Schema>): Kysely<WithMigrations> {
  return trx.withTables<Pick<WithMigrations, 'schema_migration'>>()
}

/** Rejects with one line that names the database and never its password. */
export function openStore(databaseUrl: string, options: StoreOptions = {}): Promise<Store> {
  return withTarget(databaseUrl, async target => migrateAndCheck(await openTarget(target, options)))
}

type Target = NonNullable<ReturnType<typeof parseDatabaseUrl>>

async function withTarget<T>(databaseUrl: string, open: (target: Target) => Promise<T>): Promise<T> {
  const target = parseDatabaseUrl(databaseUrl)
  if (target === undefined) throw new Error('Cannot open database: expected sqlite:<path> or postgres://…')
  const shownAs = target.dialect === 'sqlite' ? target.path : target.shownAs
  try {
    return await open(target)
  } catch (cause) {
    throw new Error(`Cannot open database ${shownAs}: ${describeReason(cause)}`, { cause })
  }
}

interface Inspected {
  /** Undefined: there is no database yet. */
  readonly store: Store | undefined
  /** True if the next start creates all tables. */
  readonly isNew: boolean
  /** The migrations that the next start applies. */
  readonly pending: readonly string[]
}

/** Opens a database without changing its schema. Rejects as `openStore` does, including for an unknown schema. */
export async function inspectDatabase(databaseUrl: string, options: StoreOptions = {}): Promise<Inspected> {
  const target = parseDatabaseUrl(databaseUrl)
  if (target?.dialect === 'sqlite' && !existsSync(target.path))
    return { store: undefined, isNew: true, pending: [] }
  return withTarget(databaseUrl, async opened => {
    const store = await openTarget(opened, options)
    try {
      const isNew = !(await hasMigrations(store))
      const pending = isNew ? migrations.map(({ name }) => name) : await listPending(store)
      if (pending.length > 0) await checkCreateTable(store)
      else {
        await checkSchema(store)
        store.begin()
      }
      return { store, isNew, pending }
    } catch (error) {
      await store.close()
      throw error
    }
  })
}

/** Rejects if this user may not create tables, as migrations do. Leaves no table behind. */
async function checkCreateTable({ db }: Store): Promise<void> {
  const transaction = await db.startTransaction().execute()
  try {
    await transaction.schema.createTable('sallyport_check').addColumn('id', 'integer').execute()
  } finally {
    await transaction.rollback().execute()
  }
}

async function hasMigrations({ db }: Store): Promise<boolean> {
  const tables = await db.introspection.getTables()
  return tables.some(({ name }) => name === 'schema_migration')
}

async function listPending({ db }: Store): Promise<readonly string[]> {
  const rows = await db
    .withTables<Pick<WithMigrations, 'schema_migration'>>()
    .selectFrom('schema_migration')
    .select('name')
    .execute()
  const applied = new Set(rows.map(row => row.name))
  refuseNewer(applied, migrations)
  return migrations.flatMap(({ name }) => (applied.has(name) ? [] : [name]))
}

// Each database is imported on demand: a start on SQLite does not load `pg`.
async function openTarget(target: Target, options: StoreOptions): Promise<OpenedDatabase> {
  switch (target.dialect) {
    case 'sqlite':
      return (await import('./sqlite/open.ts')).openSqlite(target.path, options)
    case 'postgres':
      return (await import('./postgres.ts')).openPostgres(target.url, options)
  }
}

async function migrateAndCheck(store: OpenedDatabase): Promise<Store> {
  try {
    await migrate(store)
    await checkSchema(store)
    store.begin()
    return store
  } catch (error) {
    await store.close()
    throw error
  }
}

function describeReason(cause: unknown): string {
  const description = describeUnavailable(cause)
  return description === undefined ? describeError(cause) : `${description} (${describeError(cause)})`
}
