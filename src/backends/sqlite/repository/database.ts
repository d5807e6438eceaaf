import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { describeError } from '../../../core/index.ts'
import { listSearchParameters, resourceTypes } from '../../../fhir/index.ts'
import { MIGRATIONS } from './schema.ts'
import { BUSY_MS, openTransactions, type Transactions } from './transactions.ts'

export type SqlValue = SQLInputValue

/** Compares two values of a column as SQLite does: texts by their bytes. */
export function compareValues(a: SqlValue, b: SqlValue): number {
  if (typeof a === 'string' && typeof b === 'string') return Buffer.compare(Buffer.from(a), Buffer.from(b))
  return Number(a) - Number(b)
}

// Prepared statements to keep. Searches that differ only in their values share one.
const STATEMENTS_KEPT = 400

/** The open `fhir.db`. */
export interface Database extends Transactions {
  readonly file: string
  /** The rows of a statement as arrays, in the order of its columns. */
  rows(sql: string, values: readonly SqlValue[]): readonly SqlValue[][]
  /** The rows of a statement, read one by one as they are requested: they may be large. */
  each(sql: string, values: readonly SqlValue[]): Iterable<readonly SqlValue[]>
  prepare(sql: string): StatementSync
  exec(sql: string): void
  close(): void
}

/** Opens the file, or creates it with its tables. */
export function openDatabase(file: string, waitMs?: number): Database {
  const sqlite = openFile(file)
  const statements = new Map<string, StatementSync>()
  const transactions = openTransactions(sqlite, waitMs)
  return {
    file,
    rows: (sql, values) => readAll(prepareCached(sqlite, statements, sql), values),
    each: (sql, values) => readEach(prepareCached(sqlite, statements, sql), values),
    prepare: sql => returnArrays(sqlite.prepare(sql)),
    exec: sql => sqlite.exec(sql),
    ...transactions,
    close() {
      transactions.settle()
      sqlite.close()
    },
  }
}

function openFile(file: string): DatabaseSync {
  try {
    const sqlite = new DatabaseSync(file)
    sqlite.exec(`PRAGMA busy_timeout = ${BUSY_MS}; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL`)
    sqlite.exec('PRAGMA temp_store = MEMORY; PRAGMA cache_size = -16000; PRAGMA trusted_schema = OFF')
    migrate(sqlite)
    return sqlite
  } catch (error) {
    const reason = describeError(error)
    throw new Error(`Cannot open FHIR data in ${file}: ${reason}`, { cause: error })
  }
}

/** Updates the tables. The index has an edition of its own (`INDEX_EDITION`), and is rebuilt from the content. */
function migrate(sqlite: DatabaseSync): void {
  sqlite.exec('BEGIN IMMEDIATE')
  const edition = Number(sqlite.prepare('PRAGMA user_version').get()?.user_version)
  if (edition > MIGRATIONS.length)
    throw new Error(`a newer version of Sallyport created it (edition ${edition})`)
  for (const step of MIGRATIONS.slice(edition)) sqlite.exec(step)
  sqlite.exec(`PRAGMA user_version = ${MIGRATIONS.length}; COMMIT`)
  checkTables(sqlite)
}

/** Throws if a table or an index differs from that of this version. Additional ones are allowed. */
function checkTables(sqlite: DatabaseSync): void {
  const expected = new DatabaseSync(':memory:')
  for (const step of MIGRATIONS) expected.exec(step)
  const [found, wanted] = [readTables(sqlite), readTables(expected)]
  expected.close()
  const different = [...wanted.keys()].find(name => found.get(name) !== wanted.get(name))
  if (different !== undefined)
    throw new Error(
      `its tables are not those of this version (${different} differs); restore a backup, or remove the file and import the data again`,
    )
}

/** The statements that create tables and indexes, by name, without SQLite's own. */
function readTables(sqlite: DatabaseSync): ReadonlyMap<string, string> {
  const rows = sqlite
    .prepare("SELECT name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")
    .all()
  return new Map(rows.map(({ name, sql }) => [String(name), String(sql)]))
}

function prepareCached(
  sqlite: DatabaseSync,
  statements: Map<string, StatementSync>,
  sql: string,
): StatementSync {
  let statement = statements.get(sql)
  if (statement) statements.delete(sql)
  else statement = returnArrays(sqlite.prepare(sql))
  statements.set(sql, statement)
  if (statements.size > STATEMENTS_KEPT) statements.delete(statements.keys().next().value ?? '')
  return statement
}

function returnArrays(statement: StatementSync): StatementSync {
  statement.setReturnArrays(true)
  return statement
}

function readAll(statement: StatementSync, values: readonly SqlValue[]): readonly SqlValue[][] {
  // With setReturnArrays the rows are arrays; the types of node:sqlite know only objects.
  return statement.all(...values) as unknown as SqlValue[][]
}

function readEach(statement: StatementSync, values: readonly SqlValue[]): Iterable<readonly SqlValue[]> {
  return statement.iterate(...values) as unknown as Iterable<readonly SqlValue[]>
}

/** The numbers of resource types and of their search parameters in `fhir.db`. */
export interface Names {
  typeId(type: string): number
  typeOf(tid: number): string
  parameterId(type: string, code: string): number
}

/** Reads the numbers, and assigns one to each type and parameter without one. */
export function openNames(database: Database): Names {
  const numbers = readNumbers(database)
  const missing = listNames().filter(([type, code]) => !numbers.get(type)?.has(code))
  if (missing.length > 0) {
    addNumbers(database, missing)
    return openNames(database)
  }
  const types = new Map([...numbers].map(([type, codes]) => [codes.get('') ?? 0, type]))
  const findId = (type: string, code: string) => numbers.get(type)?.get(code) ?? failUnknown(type, code)
  return {
    typeId: type => findId(type, ''),
    typeOf: tid => types.get(tid) ?? failUnknown(String(tid), ''),
    parameterId: findId,
  }
}

function readNumbers(database: Database): Map<string, Map<string, number>> {
  const numbers = new Map<string, Map<string, number>>()
  for (const [nid, type, code] of database.rows('SELECT nid, type, code FROM name', [])) {
    const codes = numbers.get(String(type)) ?? new Map<string, number>()
    numbers.set(String(type), codes.set(String(code), Number(nid)))
  }
  return numbers
}

function listNames(): (readonly [type: string, code: string])[] {
  return [...resourceTypes].flatMap(type => [
    [type, ''] as const,
    ...listSearchParameters(type).map(({ code }) => [type, code] as const),
  ])
}

function addNumbers(database: Database, names: readonly (readonly [string, string])[]): void {
  const insert = database.prepare('INSERT OR IGNORE INTO name (type, code) VALUES (?, ?)')
  database.transaction(() => {
    for (const [type, code] of names) insert.run(type, code)
  })
}

function failUnknown(type: string, code: string): never {
  throw new Error(`Cannot number ${type} ${code}: it is not in the R4 definitions`)
}
