import { describeError } from '../../../core/index.ts'
import { listSearchParameters, resourceTypes } from '../../../fhir/index.ts'
import { Connection, type SqlValue } from '../../../sqlite/index.ts'
import { MIGRATIONS } from './schema.ts'
import { BUSY_MS, openTransactions, type Transactions } from './transactions.ts'

export type { SqlValue }

/** Compares two values of a column as SQLite does: texts by their bytes. */
export function compareValues(a: SqlValue, b: SqlValue): number {
  if (typeof a === 'string' && typeof b === 'string') return Buffer.compare(Buffer.from(a), Buffer.from(b))
  return Number(a) - Number(b)
}

/** The open `fhir.db`. */
export interface Database
  extends Transactions,
    Pick<Connection, 'rows' | 'each' | 'prepare' | 'exec' | 'close'> {
  readonly file: string
}

/** Opens the file, or creates it with its tables. */
export function openDatabase(file: string, waitMs?: number): Database {
  const connection = openFile(file)
  const transactions = openTransactions(connection, waitMs)
  return {
    file,
    rows: (sql, values) => connection.rows(sql, values),
    each: (sql, values) => connection.each(sql, values),
    prepare: sql => connection.prepare(sql),
    exec: sql => connection.exec(sql),
    ...transactions,
    close() {
      transactions.settle()
      connection.close()
    },
  }
}

const CONFIGURATION = `PRAGMA busy_timeout = ${BUSY_MS}; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
  PRAGMA temp_store = MEMORY; PRAGMA cache_size = -16000; PRAGMA trusted_schema = OFF`

function openFile(file: string): Connection {
  try {
    const connection = new Connection(file, CONFIGURATION)
    migrate(connection)
    return connection
  } catch (error) {
    const reason = describeError(error)
    throw new Error(`Cannot open FHIR data in ${file}: ${reason}`, { cause: error })
  }
}

/** Updates the tables. The index has an edition of its own (`INDEX_EDITION`), and is rebuilt from the content. */
function migrate(connection: Connection): void {
  connection.exec('BEGIN IMMEDIATE')
  const edition = Number(connection.rows('PRAGMA user_version', [])[0]?.[0])
  if (edition > MIGRATIONS.length)
    throw new Error(`a newer version of Sallyport created it (edition ${edition})`)
  for (const step of MIGRATIONS.slice(edition)) connection.exec(step)
  connection.exec(`PRAGMA user_version = ${MIGRATIONS.length}; COMMIT`)
  checkTables(connection)
}

/** Throws if a table or an index differs from that of this version. Additional ones are allowed. */
function checkTables(connection: Connection): void {
  const expected = new Connection(':memory:', MIGRATIONS.join(''))
  const [found, wanted] = [readTables(connection), readTables(expected)]
  expected.close()
  const different = [...wanted.keys()].find(name => found.get(name) !== wanted.get(name))
  if (different !== undefined)
    throw new Error(
      `its tables are not those of this version (${different} differs); restore a backup, or remove the file and import the data again`,
    )
}

/** The statements that create tables and indexes, by name, without SQLite's own. */
function readTables(connection: Connection): ReadonlyMap<string, string> {
  const rows = connection.rows(
    "SELECT name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
    [],
  )
  return new Map(rows.map(([name, sql]) => [String(name), String(sql)]))
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
