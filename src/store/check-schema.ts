import { remember } from '../core/index.ts'
import { SqliteConnection } from '../sqlite/index.ts'
import {
  type Dialect,
  type Index,
  listStatements,
  type Migration,
  runScript,
  type Script,
} from './migration.ts'

/** A column or an index. */
interface Part {
  /** `column client.name`, `index client_approved`. */
  readonly name: string
  readonly table: string
  /** An INSERT must have a value for it. */
  readonly needed: boolean
  readonly nullable: boolean
}

const PARTS: Readonly<Record<Dialect, string>> = {
  sqlite: `select m.name as "table", 'column ' || m.name || '.' || c.name as name,
      c."notnull" = 1 and c.dflt_value is null and c.pk = 0 as needed, c."notnull" = 0 and c.pk = 0 as nullable
      from sqlite_schema m join pragma_table_info(m.name) c where m.type = 'table'
    union all select tbl_name, 'index ' || name, false, false from sqlite_schema
      where type = 'index' and sql is not null`,
  postgres: `select table_name as "table", 'column ' || table_name || '.' || column_name as name,
      is_nullable = 'NO' and column_default is null as needed, is_nullable = 'YES' as nullable
      from information_schema.columns where table_schema = current_schema()
    union all select tablename, 'index ' || indexname, false, false from pg_indexes
      where schemaname = current_schema()`,
}

function* readParts(dialect: Dialect): Script<readonly Part[]> {
  const rows = yield PARTS[dialect]
  return rows.map(({ name, table, needed, nullable }) => ({
    name: String(name),
    table: String(table),
    needed: Boolean(needed),
    nullable: Boolean(nullable),
  }))
}

/** The indexes that are missing. */
export function* findMissing(indexes: readonly Index[], dialect: Dialect): Script<readonly Index[]> {
  const found = new Set((yield* readParts(dialect)).map(({ name }) => name))
  return indexes.filter(({ name }) => !found.has(`index ${name}`))
}

const expected = new WeakMap<readonly Migration[], readonly Part[]>()

/** The tables and indexes that the migrations create, from a database in memory. */
export function readExpected(steps: readonly Migration[]): readonly Part[] {
  return remember(expected, steps, () => {
    const statements = steps.flatMap(step => listStatements(step, 'sqlite'))
    const connection = new SqliteConnection(':memory:', statements.join(';\n'))
    const parts = runScript(connection, readParts('sqlite'))
    connection.close()
    return parts
  })
}

/**
 * Throws if the tables differ from those that the code expects, for example because a migration was changed after
 * it had been applied. Additional tables and indexes, and additional columns that need no value, are allowed.
 */
export function* checkSchema(steps: readonly Migration[], dialect: Dialect): Script {
  const found = new Map((yield* readParts(dialect)).map(part => [part.name, part]))
  const tables = Map.groupBy(readExpected(steps), ({ table }) => table)
  for (const { name, nullable } of [...tables.values()].flat()) {
    const part = found.get(name)
    if (!part) throw differs(`${name} is missing`)
    if (part.needed && nullable) throw differs(`${name} must not be null`)
  }
  for (const { name, table, needed } of found.values())
    if (needed && tables.get(table)?.every(part => part.name !== name)) throw differs(`${name} is unknown`)
}

/** Throws if a database without migrations has a table of ours. */
export function* refuseForeignTables(steps: readonly Migration[], dialect: Dialect): Script {
  const tables = new Set(readExpected(steps).map(({ table }) => table))
  const foreign = (yield* readParts(dialect)).find(({ table }) => tables.has(table))
  if (foreign) throw differs(`table ${foreign.table} was not created by a migration`)
}

function differs(how: string): Error {
  return new Error(
    `its schema does not match this version (${how}); restore a backup of this version, or start with a new database`,
  )
}
