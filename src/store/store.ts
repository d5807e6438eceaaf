import type { Insertable, Kysely } from 'kysely'
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
