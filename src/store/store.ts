import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import {
  type Compilable,
  type CompiledQuery,
  type DialectAdapter,
  type Insertable,
  type Kysely,
  PostgresAdapter,
  type QueryResult,
  type RawBuilder,
  sql,
} from 'kysely'
import { hasCode } from '../core/index.ts'
import type { Dialect, Index } from './migration.ts'
import type { Schema } from './schema.ts'
import type { Trail } from './trail.ts'

export interface Store extends AsyncDisposable {
  readonly db: Kysely<Schema>
  readonly dialect: Dialect
  /**
   * Rejects while the database does not accept writes (`/readyz`). A write is tried at most every two seconds, and
   * while the last one failed, every use of the store fails at once.
   */
  ping(): Promise<void>
  readonly trail: Trail
  close(): Promise<void>
  /** PostgreSQL: the connections of this process. */
  readonly pool?: () => PoolUse
}

interface PoolUse {
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
  /** Builds the missing indexes of tables that servers use, which can go on writing. SQLite has one writer at a time. */
  buildIndexes?(indexes: readonly Index[]): Promise<void>
}

export interface StoreOptions {
  /** PostgreSQL. */
  readonly poolSize?: number
  /** PostgreSQL: the wait for a new or free connection. */
  readonly connectTimeoutMs?: number
  /** PostgreSQL. */
  readonly statementTimeoutMs?: number
  /** SQLite: how long a write waits for its turn and for other processes. */
  readonly writeWaitMs?: number
  /** SQLite: the number of this worker process. */
  readonly worker?: number
  /** SQLite: receives the reason why audit records stay in `audit_waiting`, unless the database is unavailable. */
  readonly onStuckRecords?: (error: unknown) => void
  /** True if requests depend on the audit trail: the store is unavailable while the trail does not accept writes. */
  readonly auditRequired?: boolean
  readonly clock?: () => number
}

export type DatabaseTarget =
  | { readonly dialect: 'sqlite'; readonly path: string }
  | { readonly dialect: 'postgres'; readonly url: string; readonly shownAs: string }

/** Parses `database-url` (STORE-1). Undefined if it is neither `sqlite:<path>` nor `postgres://…`. */
export function parseDatabaseUrl(text: string): DatabaseTarget | undefined {
  const path = /^sqlite:(.+)$/.exec(text)?.[1]
  // Two connections share the file (see sqlite/open.ts), which an in-memory database does not allow.
  if (path !== undefined) return path === ':memory:' ? undefined : { dialect: 'sqlite', path }
  if (!/^postgres(ql)?:\/\//.test(text) || !URL.canParse(text)) return undefined
  return { dialect: 'postgres', url: text, shownAs: hidePassword(new URL(text)) }
}

function hidePassword(url: URL): string {
  return `${url.protocol}//${url.host}${url.pathname}`
}

/**
 * Creates a folder and its parents for this user only, level by level: `recursive` never returns where the system
 * refuses a folder with ENOENT (`/proc`, some network mounts).
 */
export function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return
    if (!hasCode(error, 'ENOENT') || dirname(folder) === folder) throw error
    makeFolder(dirname(folder))
    mkdirSync(folder, { mode: 0o700 })
  }
}

/** Stands for a parameter while a query is built. */
class Placeholder {
  readonly name: string | symbol
  constructor(name: string | symbol) {
    this.name = name
  }
}

/**
 * A frequent query that is built and compiled once per database: Kysely takes longer for that than SQLite for the query.
 * `build` is called with placeholders, so it may pass its parameters to the query, but not look at them.
 */
export function prepareQuery<Parameters extends object, Row>(
  build: (db: Kysely<Schema>, parameters: Parameters) => Compilable<Row>,
): (db: Kysely<Schema>, parameters: Parameters) => Promise<QueryResult<Row>> {
  const placeholders = new Proxy<Parameters>(Object.create(null), { get: (_, name) => new Placeholder(name) })
  const compiled = new WeakMap<DialectAdapter, CompiledQuery<Row>>()

  function getCompiled(db: Kysely<Schema>): CompiledQuery<Row> {
    const { adapter } = db.getExecutor()
    const query = compiled.get(adapter) ?? build(db, placeholders).compile()
    compiled.set(adapter, query)
    return query
  }

  return (db, parameters) => {
    const query = getCompiled(db)
    const bound = query.parameters.map(it =>
      it instanceof Placeholder ? Reflect.get(parameters, it.name) : it,
    )
    return db.executeQuery({ ...query, parameters: bound })
  }
}

/**
 * Makes a query lock its rows: no other transaction changes them before this one ends. On SQLite a transaction
 * is the only writer anyway.
 */
export function lockRows<Query extends { forShare(): Query }>(db: Kysely<Schema>, query: Query): Query {
  return db.getExecutor().adapter instanceof PostgresAdapter ? query.forShare() : query
}

/** An insert of one row that is compiled once for its columns. */
export function prepareInsert<Table extends keyof Schema>(
  table: Table,
): (db: Kysely<Schema>, row: Insertable<Schema[Table]>) => Promise<QueryResult<unknown>> {
  const inserts = new Map<string, ReturnType<typeof prepareQuery<Insertable<Schema[Table]>, unknown>>>()

  function getInsert(columns: readonly string[]) {
    const key = columns.join()
    const insert =
      inserts.get(key) ?? prepareQuery((db, row) => db.insertInto(table).values(pick(row, columns)))
    inserts.set(key, insert)
    return insert
  }

  return (db, row) => getInsert(Object.keys(row))(db, row)
}

function pick<Row extends object>(row: Row, columns: readonly string[]): Row {
  return Object.fromEntries(columns.map(column => [column, Reflect.get(row, column)])) as Row
}

/** Whether one of the columns contains a text, without regard to case. */
export function containsText(columns: readonly string[], text: string): RawBuilder<boolean> {
  const pattern = `%${text.toLowerCase().replace(/[\\%_]/g, '\\$&')}%`
  const conditions = columns.map(column => sql`lower(${sql.ref(column)}) like ${pattern} escape '\\'`)
  return sql<boolean>`(${sql.join(conditions, sql` or `)})`
}
