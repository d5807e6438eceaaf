import type { Insertable, Kysely } from 'kysely'
import { checkSchema } from './check-schema.ts'
import { parseDatabaseUrl } from './database-url.ts'
import { migrate } from './migrate.ts'
import type { Schema } from './schema.ts'

/** An open database whose tables are those of `Schema`. */
export interface Store {
  readonly db: Kysely<Schema>
  readonly dialect: 'sqlite' | 'postgres'
  /**
   * Rejects while the database cannot be written (`/readyz`). A write is tried at most every two seconds, and while the
   * last one failed every use of the store fails at once.
   */
  ping(): Promise<void>
  /**
   * Adds rows in one commit and resolves when they are on the disk, without blocking meanwhile. For what comes often
   * and is never changed: all rows of a call share one wait for the disk.
   */
  append<Table extends keyof Schema>(table: Table, rows: readonly Insertable<Schema[Table]>[]): Promise<void>
  close(): Promise<void>
}

/** A database that was opened but may be empty or of an earlier version. */
export interface OpenedDatabase extends Store {
  /** To be called when the tables are there. */
  begin(): void
}

export interface StoreOptions {
  /** Of PostgreSQL: how many connections are kept at most. */
  readonly poolSize?: number
  /** Of PostgreSQL: how long a new connection, or a free one of the pool, is waited for. */
  readonly connectTimeoutMs?: number
  /** Of PostgreSQL: how long a statement may take. */
  readonly statementTimeoutMs?: number
  /** Of SQLite: how long a writer waits for its turn. */
  readonly turnMs?: number
  /** Whether requests depend on the audit trail, so that the store is unavailable while it cannot be written. */
  readonly auditRequired?: boolean
  /** By which a write is tried at most every two seconds. */
  readonly clock?: () => number
}

/** Opens and migrates. Rejects with one line that names the database and never its password. */
export async function openStore(databaseUrl: string, options: StoreOptions = {}): Promise<Store> {
  const target = parseDatabaseUrl(databaseUrl)
  if (target === undefined) throw new Error('Cannot open database: expected sqlite:<path> or postgres://…')
  const shownAs = target.dialect === 'sqlite' ? target.path : target.shownAs
  try {
    const store = await openTarget(target, options)
    return await migrated(store)
  } catch (cause) {
    throw new Error(`Cannot open database ${shownAs}: ${reasonOf(cause)}`, { cause })
  }
}

// Each database is imported when it is asked for: a start on SQLite does not pay for `pg`.
async function openTarget(
  target: NonNullable<ReturnType<typeof parseDatabaseUrl>>,
  options: StoreOptions,
): Promise<OpenedDatabase> {
  switch (target.dialect) {
    case 'sqlite':
      return (await import('./sqlite/open.ts')).openSqlite(target.path, options)
    case 'postgres':
      return (await import('./postgres/open.ts')).openPostgres(target.url, options)
  }
}

async function migrated(store: OpenedDatabase): Promise<Store> {
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

function reasonOf(cause: unknown): string {
  // A refused connection to a name with several addresses is an AggregateError without a message.
  const errors = cause instanceof AggregateError ? cause.errors : [cause]
  const first: unknown = errors[0]
  return first instanceof Error ? first.message : String(first)
}
