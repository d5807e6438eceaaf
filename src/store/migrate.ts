import { type Kysely, type RawBuilder, sql } from 'kysely'
import type { Migration } from './migration.ts'
import { migrations } from './migrations/index.ts'
import type { Schema } from './schema.ts'
import type { Store } from './store.ts'

interface SchemaMigration {
  name: string
  /** `Migration.needs`, for code that does not know the migration. */
  needs: string
  applied_at: number
}

// An arbitrary constant: the bytes of "sallypor".
const ADVISORY_LOCK = sql.lit('8313759869310561394')

const FIND_TABLE: Readonly<Record<Store['dialect'], RawBuilder<unknown>>> = {
  sqlite: sql`select name from sqlite_schema where name = 'schema_migration'`,
  postgres: sql`select table_name from information_schema.tables
    where table_schema = current_schema() and table_name = 'schema_migration'`,
}

/**
 * Runs all missing migrations in one transaction, so that an interrupted start leaves no partial schema. Several
 * instances may start at once: on PostgreSQL the others wait for an advisory lock, on SQLite for the write lock.
 * Without missing migrations it changes nothing, so that the servers need no right to create tables.
 */
export async function migrate(store: Store, steps: readonly Migration[] = migrations): Promise<void> {
  await store.db.transaction().execute(async trx => {
    if (store.dialect === 'postgres')
      await sql`select pg_advisory_xact_lock(${ADVISORY_LOCK}::bigint)`.execute(trx)
    const { isNew, pending } = await inspectMigrations({ db: trx, dialect: store.dialect }, steps)
    if (isNew) await createTable(trx)
    for (const step of pending) {
      for (const statement of step.list(store.dialect)) await sql.raw(statement).execute(trx)
      const { name, needs } = step
      await withMigrations(trx)
        .insertInto('schema_migration')
        .values({ name, needs, applied_at: Date.now() })
        .execute()
    }
  })
}

async function createTable(db: Kysely<Schema>): Promise<void> {
  await db.schema
    .createTable('schema_migration')
    .addColumn('name', 'text', column => column.primaryKey())
    .addColumn('needs', 'text', column => column.notNull())
    .addColumn('applied_at', 'bigint', column => column.notNull())
    .execute()
}

export interface State {
  /** True if the next start creates all tables. */
  readonly isNew: boolean
  /** The migrations that the next start applies. */
  readonly pending: readonly Migration[]
  /** Whether servers that use the database now can go on after the pending migrations. */
  readonly isRolling: boolean
}

/** Throws if this version cannot work with the database. */
export async function inspectMigrations(
  { db, dialect }: Pick<Store, 'db' | 'dialect'>,
  steps: readonly Migration[] = migrations,
): Promise<State> {
  const { rows } = await FIND_TABLE[dialect].execute(db)
  if (rows.length === 0) return { isNew: true, pending: steps, isRolling: false }
  const applied = await withMigrations(db).selectFrom('schema_migration').select(['name', 'needs']).execute()
  const known = new Set(steps.map(({ name }) => name))
  const newer = applied.find(({ name, needs }) => !known.has(name) && !known.has(needs))
  if (newer) throw new Error(`a newer version of Sallyport changed it (it has migration ${newer.name})`)
  const names = new Set(applied.map(({ name }) => name))
  const pending = steps.filter(({ name }) => !names.has(name))
  return { isNew: false, pending, isRolling: pending.every(({ needs }) => names.has(needs)) }
}

function withMigrations(db: Kysely<Schema>): Kysely<Schema & { schema_migration: SchemaMigration }> {
  return db.withTables<{ schema_migration: SchemaMigration }>()
}
