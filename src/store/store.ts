import type { Insertable, Kysely } from 'kysely'
import type { Schema } from './schema.ts'

export interface Store {
  readonly db: Kysely<Schema>
  readonly dialect: 'sqlite' | 'postgres'
  /**
   * Rejects while the database does not accept writes (`/readyz`). A write is tried at most every two seconds, and
   * while the last one failed, every use of the store fails at once.
   */
  ping(): Promise<void>
  /**
   * Adds rows in one commit and resolves when they are on disk, without blocking. For frequent rows that never
   * change: all rows of a call share one wait for the disk.
   */
  append<Table extends keyof Schema>(table: Table, rows: readonly Insertable<Schema[Table]>[]): Promise<void>
  /** Adds audit records in the same way. On SQLite they wait in a queue until a query uses the audit trail. */
  appendRecords(rows: readonly Insertable<Schema['audit_event']>[]): Promise<void>
  close(): Promise<void>
  /** PostgreSQL: the connections of this process. */
  readonly pool?: () => PoolUse
}

export interface PoolUse {
  readonly idle: number
  readonly busy: number
  readonly max: number
  /** Statements that wait for a connection. */
  readonly waiting: number
}

/** A database that may be empty or have an earlier schema. */
export interface OpenedDatabase extends Store {
  /** Call when the tables exist. */
  begin(): void
}

export interface StoreOptions {
  /** PostgreSQL. */
  readonly poolSize?: number
  /** PostgreSQL: the wait for a new or free connection. */
  readonly connectTimeoutMs?: number
  /** PostgreSQL. */
  readonly statementTimeoutMs?: number
  /** SQLite: how long a writer waits for its turn. */
  readonly turnMs?: number
  /** SQLite: the number of this worker process. */
  readonly worker?: number
  /** True if requests depend on the audit trail: the store is unavailable while the trail does not accept writes. */
  readonly auditRequired?: boolean
  readonly clock?: () => number
}
