import type { Insertable, Kysely } from 'kysely'
import { parseDatabaseUrl } from './database-url.ts'
import { migrate } from './migrate.ts'
import type { Schema } from './schema.ts'

/** An open database whose tables are those of `Schema`. */
export interface Store {
  readonly db: Kysely<Schema>
  readonly dialect: 'sqlite' | 'postgres'
  /** Rejects within two seconds while the database is away (`/readyz`). */
  ping(): Promise<void>
  /**
   * Adds rows in one commit and resolves when they are on the disk, without blocking meanwhile. For what comes often
   * and is never changed: all rows of a call share one wait for the disk.
   */
  append<Table extends keyof Schema>(table: Table, rows: readonly Insertable<Schema[Table]>[]): Promise<void>
  close(): Promise<void>
}

/** A database that was opened but may be empty or of an earlier version. */
export type OpenedDatabase = Store

/** Opens and migrates. Rejects with one line that names the database and never its password. */
export async function openStore(databaseUrl: string): Promise<Store> {
  const target = parseDatabaseUrl(databaseUrl)
  if (target === undefined) throw new Error('Cannot open database: expected sqlite:<path> or postgres://…')
  const shownAs = target.dialect === 'sqlite' ? target.path : target.shownAs
  try {
    const store = await openTarget(target)
    return await migrated(store)
  } catch (cause) {
    throw new Error(`Cannot open database ${shownAs}: ${reasonOf(cause)}`, { cause })
  }
}

// Each database is imported when it is asked for: a start on SQLite does not pay for `pg`.
async function openTarget(target: NonNullable<ReturnType<typeof parseDatabaseUrl>>): Promise<OpenedDatabase> {
  switch (target.dialect) {
    case 'sqlite':
      return (await import('./sqlite/open.ts')).openSqlite(target.path)
    case 'postgres':
      return (await import('./postgres/open.ts')).openPostgres(target.url)
  }
}

async function migrated(store: OpenedDatabase): Promise<Store> {
  try {
    await migrate(store)
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
