import { existsSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { type Kysely, sql } from 'kysely'
import { describeError } from '../core/index.ts'
import type { SqliteRow } from '../sqlite/index.ts'
import { describeUnavailable, isConflict } from './availability.ts'
import { checkSchema } from './check-schema.ts'
import { inspectMigrations, migrate, type State } from './migrate.ts'
import type { Script } from './migration.ts'
import { migrations } from './migrations/index.ts'
import type { Schema } from './schema.ts'
import type { OpenedDatabase, Store, StoreOptions } from './store.ts'
import { parseDatabaseUrl } from './store.ts'

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

interface Inspected extends State {
  /** Undefined: there is no database yet. */
  readonly store: Store | undefined
}

/** Opens a database without changing its schema. Rejects as `openStore` does, including for an unknown schema. */
export async function inspectDatabase(databaseUrl: string, options: StoreOptions = {}): Promise<Inspected> {
  const target = parseDatabaseUrl(databaseUrl)
  if (target?.dialect === 'sqlite' && !existsSync(target.path))
    return { store: undefined, isNew: true, pending: [], isRolling: false }
  return withTarget(databaseUrl, async opened => {
    const store = await openTarget(opened, options)
    try {
      const state = await run(store.db, inspectMigrations(migrations, store.dialect))
      if (state.pending.length > 0) await checkCreateTable(store)
      else {
        await run(store.db, checkSchema(migrations, store.dialect))
        store.begin()
      }
      return { store, ...state }
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
    await migrateStore(store)
    store.begin()
    return store
  } catch (error) {
    await store.close()
    throw error
  }
}

type ToMigrate = Pick<OpenedDatabase, 'db' | 'dialect' | 'buildIndexes'>

export async function migrateStore(store: ToMigrate, steps = migrations): Promise<void> {
  const { db, dialect, buildIndexes } = store
  if (buildIndexes) {
    const { isNew, pending } = await run(db, inspectMigrations(steps, dialect))
    const indexes = isNew ? [] : pending.flatMap(({ listIndexes }) => listIndexes?.(dialect) ?? [])
    if (indexes.length > 0) await buildIndexes(indexes)
  }
  for (let attempt = 1; ; attempt++)
    try {
      return await db.transaction().execute(trx => run(trx, migrate(steps, dialect)))
    } catch (error) {
      // On SQLite a writer waits for its turn.
      if (dialect === 'sqlite' || attempt === MAX_ATTEMPTS || !isConflict(error)) throw error
      await pause(ATTEMPT_PAUSE_MS)
    }
}

/** About a minute in which other transactions never leave a table to the migration. */
const MAX_ATTEMPTS = 100
const ATTEMPT_PAUSE_MS = 200

export async function run<Result>(db: Kysely<Schema>, script: Script<Result>): Promise<Result> {
  let next = script.next([])
  while (!next.done) next = script.next((await sql.raw<SqliteRow>(next.value).execute(db)).rows)
  return next.value
}

function describeReason(cause: unknown): string {
  const description = describeUnavailable(cause)
  return description === undefined ? describeError(cause) : `${description} (${describeError(cause)})`
}
