import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import type { CompiledQuery, QueryResult } from 'kysely'

const KEPT_STATEMENTS = 500

export function runAndCommit<T>(connection: Connection, work: () => T): T {
  try {
    const result = work()
    connection.write('commit')
    return result
  } catch (error) {
    if (connection.inTransaction) connection.exec('rollback')
    throw error
  }
}

export type Row = Readonly<Record<string, unknown>>

/** Builds the statement again only where the columns differ: rows usually have the same ones. */
export function insertRows(connection: Connection, table: string, rows: readonly Row[]): void {
  let [names, statement] = ['', '']
  for (const row of rows) {
    const columns = Object.keys(row)
    const own = columns.join('", "')
    if (own !== names)
      statement = `insert into "${table}" ("${own}") values (${columns.map(() => '?').join(', ')})`
    names = own
    connection.write(statement, ...Object.values(row))
  }
}

interface Prepared {
  readonly statement: StatementSync
  readonly columns: readonly { readonly name: string; readonly isBoolean: boolean }[]
}

/** Columns declared `boolean` are read as booleans, as on PostgreSQL. */
export class Connection {
  readonly #db: DatabaseSync
  readonly #prepared = new Map<string, Prepared>()

  constructor(path: string) {
    this.#db = new DatabaseSync(path)
  }

  get inTransaction(): boolean {
    return this.#db.isTransaction
  }

  exec(sql: string): void {
    this.#db.exec(sql)
  }

  run<Found>(query: Pick<CompiledQuery, 'sql' | 'parameters'>): QueryResult<Found> {
    const { statement, columns } = this.#prepare(query.sql)
    const parameters = query.parameters.map(asInput)
    if (columns.length === 0) {
      const { changes, lastInsertRowid } = statement.run(...parameters)
      return { numAffectedRows: BigInt(changes), insertId: BigInt(lastInsertRowid), rows: [] }
    }
    const found = statement.all(...parameters) as unknown as readonly (readonly unknown[])[]
    return { rows: found.map(values => asRow(values, columns) as Found) }
  }

  all(sql: string, ...parameters: readonly unknown[]): readonly Row[] {
    return this.run<Row>({ sql, parameters }).rows
  }

  /** Returns the number of changed rows. */
  write(sql: string, ...parameters: readonly unknown[]): number {
    return Number(this.#prepare(sql).statement.run(...parameters.map(asInput)).changes)
  }

  close(): void {
    this.#prepared.clear()
    this.#db.close()
  }

  #prepare(sql: string): Prepared {
    const kept = this.#prepared.get(sql)
    if (kept) return kept
    const statement = this.#db.prepare(sql)
    const columns = statement
      .columns()
      .map(({ name, type }) => ({ name, isBoolean: type?.toLowerCase() === 'boolean' }))
    statement.setReturnArrays(true)
    const prepared = { statement, columns }
    if (this.#prepared.size >= KEPT_STATEMENTS) this.#prepared.clear()
    this.#prepared.set(sql, prepared)
    return prepared
  }
}

function asInput(value: unknown): SQLInputValue {
  if (typeof value === 'boolean') return value ? 1 : 0
  return value as SQLInputValue
}

// `node:sqlite` returns objects without a prototype; a row must be the same value on both databases.
function asRow(values: readonly unknown[], columns: Prepared['columns']): Record<string, unknown> {
  const row: Record<string, unknown> = {}
  let at = 0
  for (const { name, isBoolean } of columns) {
    const value = values[at++]
    row[name] = isBoolean && value !== null ? value === 1 : value
  }
  return row
}
