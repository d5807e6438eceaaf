import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import type { CompiledQuery, QueryResult } from 'kysely'

/** Statements that are kept. Those that differ only in their values are one. */
const MAX_STATEMENTS = 500

export type SqlValue = SQLInputValue

export type SqliteRow = Readonly<Record<string, unknown>>

/** Builds the statement again only where the columns differ: rows usually have the same ones. */
export function insertRows(connection: SqliteConnection, table: string, rows: readonly SqliteRow[]): void {
  let names = ''
  let statement = ''
  for (const row of rows) {
    const columns = Object.keys(row)
    const own = columns.join('", "')
    if (own !== names)
      statement = `insert into "${table}" ("${own}") values (${columns.map(() => '?').join(', ')})`
    names = own
    connection.write(statement, ...Object.values(row))
  }
}

const TRANSACTION = { begin: 'begin immediate', commit: 'commit', undo: 'rollback' } as const
const SAVEPOINT = {
  begin: 'savepoint inner',
  commit: 'release inner',
  undo: 'rollback to inner; release inner',
} as const

/** A connection to a file. It prepares each statement once. */
export class SqliteConnection {
  readonly #db: DatabaseSync
  readonly #statements = new Map<string, StatementSync>()
  readonly #columns = new WeakMap<StatementSync, readonly Column[]>()
  #count = 0

  /** The statements configure the connection. */
  constructor(path: string, statements = '') {
    this.#db = new DatabaseSync(path)
    this.#db.exec(statements)
  }

  get inTransaction(): boolean {
    return this.#db.isTransaction
  }

  /** How many statements have read rows, so that their work can be counted. */
  get statementCount(): number {
    return this.#count
  }

  exec(sql: string): void {
    this.#db.exec(sql)
  }

  /**
   * Runs the work in a transaction, or in a savepoint if one is open. Undoes it if the work throws or `keep` returns false.
   */
  transaction<T>(work: () => T, keep: (result: T) => boolean = () => true): T {
    const { begin, commit, undo } = this.inTransaction ? SAVEPOINT : TRANSACTION
    this.#find(begin).run()
    let isKept = false
    try {
      const result = work()
      if (keep(result)) {
        this.#find(commit).run()
        isKept = true
      }
      return result
    } finally {
      // A full disk ends the whole transaction.
      if (!isKept && this.inTransaction) this.exec(undo)
    }
  }

  /** Columns declared `boolean` are read as booleans, as on PostgreSQL. */
  run<Found>(query: Pick<CompiledQuery, 'sql' | 'parameters'>): QueryResult<Found> {
    const statement = this.#find(query.sql)
    const columns = this.#readColumns(statement)
    const parameters = query.parameters.map(asInput)
    if (columns.length === 0) {
      const { changes, lastInsertRowid } = statement.run(...parameters)
      return { numAffectedRows: BigInt(changes), insertId: BigInt(lastInsertRowid), rows: [] }
    }
    const found = statement.all(...parameters) as unknown as readonly (readonly unknown[])[]
    return { rows: found.map(values => asRow(values, columns) as Found) }
  }

  all(sql: string, ...parameters: readonly unknown[]): readonly SqliteRow[] {
    return this.run<SqliteRow>({ sql, parameters }).rows
  }

  /** The rows of a statement as arrays, in the order of its columns. */
  rows(sql: string, values: readonly SqlValue[]): readonly SqlValue[][] {
    this.#count++
    // With setReturnArrays the rows are arrays; the types of node:sqlite know only objects.
    return this.#find(sql).all(...values) as unknown as SqlValue[][]
  }

  /** Reads the rows one by one as they are requested: they may be large. */
  each(sql: string, values: readonly SqlValue[]): Iterable<readonly SqlValue[]> {
    this.#count++
    return this.#find(sql).iterate(...values) as unknown as Iterable<readonly SqlValue[]>
  }

  /** A statement whose rows are arrays. */
  prepare(sql: string): StatementSync {
    const statement = this.#db.prepare(sql)
    statement.setReturnArrays(true)
    return statement
  }

  /** Returns the number of changed rows. */
  write(sql: string, ...parameters: readonly unknown[]): number {
    return Number(this.#find(sql).run(...parameters.map(asInput)).changes)
  }

  close(): void {
    this.#statements.clear()
    this.#db.close()
  }

  #find(sql: string): StatementSync {
    const known = this.#statements.get(sql)
    // The order of use matters only where one has to go.
    if (known && this.#statements.size < MAX_STATEMENTS) return known
    const statement = known ?? this.prepare(sql)
    this.#statements.delete(sql)
    this.#statements.set(sql, statement)
    if (this.#statements.size > MAX_STATEMENTS)
      this.#statements.delete(this.#statements.keys().next().value ?? '')
    return statement
  }

  #readColumns(statement: StatementSync): readonly Column[] {
    const known = this.#columns.get(statement)
    if (known) return known
    const columns = statement
      .columns()
      .map(({ name, type }) => ({ name, isBoolean: type?.toLowerCase() === 'boolean' }))
    this.#columns.set(statement, columns)
    return columns
  }
}

interface Column {
  readonly name: string
  readonly isBoolean: boolean
}

function asInput(value: unknown): SQLInputValue {
  if (typeof value === 'boolean') return value ? 1 : 0
  return value as SQLInputValue
}

// `node:sqlite` returns objects without a prototype; a row must be the same value on both databases.
function asRow(values: readonly unknown[], columns: readonly Column[]): Record<string, unknown> {
  const row: Record<string, unknown> = {}
  for (const [place, { name, isBoolean }] of columns.entries()) {
    const value = values[place]
    row[name] = isBoolean && value !== null ? value === 1 : value
  }
  return row
}
