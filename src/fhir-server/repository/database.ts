import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { SCHEMA } from './schema.ts'

export type SqlValue = SQLInputValue

// What a search may keep of prepared statements. A search that differs only in its values is one statement.
const STATEMENTS_KEPT = 400

/** `fhir.db`: opened, with its tables, and the statements that have been prepared on it. */
export interface Database {
  readonly file: string
  /** The rows of a statement as arrays, in the order of its columns. */
  rows(sql: string, values: readonly SqlValue[]): readonly SqlValue[][]
  /** A statement for which the caller keeps the handle. */
  prepare(sql: string): StatementSync
  exec(sql: string): void
  /** Adds a function that SQL may call. */
  define(name: string, apply: (...values: SqlValue[]) => SqlValue): void
  /**
   * Runs the work in a transaction that is durable when this returns (contract 2, `synchronous=FULL`). It is rolled
   * back when the work throws or `keep` denies its result. Inside another one it is a savepoint.
   */
  transaction<T>(work: () => T, keep?: (result: T) => boolean): T
  close(): void
}

/** Opens the file, or makes it with its folder and its tables. */
export function openDatabase(file: string): Database {
  if (file !== ':memory:') mkdirSync(dirname(file), { recursive: true })
  const sqlite = new DatabaseSync(file)
  sqlite.exec('PRAGMA busy_timeout = 5000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
  sqlite.exec('PRAGMA temp_store = MEMORY; PRAGMA cache_size = -16000; PRAGMA trusted_schema = OFF')
  migrate(sqlite)
  const statements = new Map<string, StatementSync>()
  return {
    file,
    rows: (sql, values) => rowsOf(recall(sqlite, statements, sql), values),
    prepare: sql => returningArrays(sqlite.prepare(sql)),
    exec: sql => sqlite.exec(sql),
    define: (name, apply) => sqlite.function(name, { deterministic: true, directOnly: true }, apply),
    transaction: transactions(sqlite),
    close: () => sqlite.close(),
  }
}

function migrate(sqlite: DatabaseSync): void {
  sqlite.exec('BEGIN IMMEDIATE')
  const { user_version: edition } = sqlite.prepare('PRAGMA user_version').get() ?? {}
  if (edition === 0) sqlite.exec(`${SCHEMA}; PRAGMA user_version = 1`)
  sqlite.exec('COMMIT')
  if (edition !== 0 && edition !== 1)
    throw new Error(`Cannot open FHIR data: it is of a later edition (${edition})`)
}

function recall(sqlite: DatabaseSync, statements: Map<string, StatementSync>, sql: string): StatementSync {
  let statement = statements.get(sql)
  if (statement) statements.delete(sql)
  else statement = returningArrays(sqlite.prepare(sql))
  statements.set(sql, statement)
  if (statements.size > STATEMENTS_KEPT) statements.delete(statements.keys().next().value ?? '')
  return statement
}

function returningArrays(statement: StatementSync): StatementSync {
  statement.setReturnArrays(true)
  return statement
}

function rowsOf(statement: StatementSync, values: readonly SqlValue[]): readonly SqlValue[][] {
  // With setReturnArrays the rows are arrays; the types of node:sqlite know only objects.
  return statement.all(...values) as unknown as SqlValue[][]
}

function transactions(sqlite: DatabaseSync): Database['transaction'] {
  const begin = sqlite.prepare('BEGIN IMMEDIATE')
  const commit = sqlite.prepare('COMMIT')
  const rollback = sqlite.prepare('ROLLBACK')
  let depth = 0
  return (work, keep = () => true) => {
    if (depth > 0) sqlite.exec(`SAVEPOINT level${depth}`)
    else begin.run()
    depth++
    let kept = false
    try {
      const result = work()
      kept = keep(result)
      if (kept && depth === 1) commit.run()
      return result
    } finally {
      depth--
      if (depth > 0) {
        if (!kept) sqlite.exec(`ROLLBACK TO level${depth}`)
        sqlite.exec(`RELEASE level${depth}`)
      } else if (sqlite.isTransaction) rollback.run()
    }
  }
}
