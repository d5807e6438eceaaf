import { checkSchema, findMissing, refuseForeignTables } from './check-schema.ts'
import { type Dialect, formatIndex, type Migration, type Script } from './migration.ts'

// An arbitrary constant: the bytes of "sallypor".
const TAKE_ADVISORY_LOCK = 'select pg_advisory_xact_lock(8313759869310561394)'

/**
 * Servers that use the database now must not wait for a migration that waits for them: it gives up, and is tried again
 * (`migrateStore`). Less than PostgreSQL's `deadlock_timeout`, after which a request of a server could be the one that fails.
 */
const LIMIT_LOCK_WAIT = "set local lock_timeout = '300ms'"

const CREATE_TABLE =
  'create table schema_migration (name text primary key, needs text not null, applied_at bigint not null)'

const FIND_TABLE: Readonly<Record<Dialect, string>> = {
  sqlite: `select name from sqlite_schema where name = 'schema_migration'`,
  postgres: `select table_name from information_schema.tables
    where table_schema = current_schema() and table_name = 'schema_migration'`,
}

/**
 * Runs all missing migrations. Call it in one transaction, so that an interrupted start leaves no partial schema. Several
 * instances may start at once: on PostgreSQL the others wait for an advisory lock, on SQLite for the write lock.
 * Without missing migrations it changes nothing, so that the servers need no right to create tables.
 */
export function* migrate(steps: readonly Migration[], dialect: Dialect): Script {
  if (dialect === 'postgres') yield TAKE_ADVISORY_LOCK
  const { isNew, pending } = yield* inspectMigrations(steps, dialect)
  if (isNew) {
    yield* refuseForeignTables(steps, dialect)
    yield CREATE_TABLE
  } else if (dialect === 'postgres' && pending.length > 0) yield LIMIT_LOCK_WAIT
  for (const step of pending) {
    yield* step.list(dialect)
    // Those that were not built before: the tables are new, or the database is SQLite.
    const indexes = yield* findMissing(step.listIndexes?.(dialect) ?? [], dialect)
    yield* indexes.map(index => `create index ${formatIndex(index)}`)
    yield `insert into schema_migration (name, needs, applied_at)
      values ('${step.name}', '${step.needs}', ${Date.now()})`
  }
  yield* checkSchema(steps, dialect)
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
export function* inspectMigrations(steps: readonly Migration[], dialect: Dialect): Script<State> {
  const tables = yield FIND_TABLE[dialect]
  if (tables.length === 0) return { isNew: true, pending: steps, isRolling: false }
  const applied = yield 'select name, needs from schema_migration'
  const known = new Set<unknown>(steps.map(({ name }) => name))
  const newer = applied.find(({ name, needs }) => !known.has(name) && !known.has(needs))
  if (newer) throw new Error(`a newer version of Sallyport changed it (it has migration ${newer.name})`)
  const names = new Set(applied.map(({ name }) => name))
  const pending = steps.filter(({ name }) => !names.has(name))
  return { isNew: false, pending, isRolling: pending.every(({ needs }) => names.has(needs)) }
}
