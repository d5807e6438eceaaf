import type { SqliteConnection, SqliteRow } from '../sqlite/index.ts'

/** One step of a schema. Released migrations never change: a change is a new migration. */
export interface Migration {
  readonly name: string
  /**
   * The migration that code must know to work with the database after this one. A migration that only adds what older
   * code may ignore names an older one, so that servers of both versions run side by side. A migration that removes
   * something names the one since which no code uses it.
   */
  readonly needs: string
  /** Its statements, in order. */
  list(dialect: Dialect): readonly string[]
  /** Indexes of tables that may be large and in use. PostgreSQL builds them while servers write. */
  listIndexes?(dialect: Dialect): readonly Index[]
}

export interface Index {
  readonly name: string
  readonly table: string
  /** Its columns, and a condition: `(subject, at) where subject is not null`. */
  readonly of: string
}

export function formatIndex({ name, table, of }: Index): string {
  return `${name} on "${table}" ${of}`
}

/** The statements of a migration in a database that nobody else uses. */
export function listStatements({ list, listIndexes }: Migration, dialect: Dialect): readonly string[] {
  const indexes = listIndexes?.(dialect) ?? []
  return [...list(dialect), ...indexes.map(index => `create index ${formatIndex(index)}`)]
}

export type Dialect = 'sqlite' | 'postgres'

/** Statements that run one after the other, and get the rows of each: by a driver that waits, or by one that does not. */
export type Script<Result = void> = Generator<string, Result, readonly SqliteRow[]>

export function runScript<Result>(connection: SqliteConnection, script: Script<Result>): Result {
  let next = script.next([])
  while (!next.done) next = script.next(connection.all(next.value))
  return next.value
}
