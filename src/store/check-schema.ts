import { type RawBuilder, sql } from 'kysely'
import { Connection } from '../sqlite/index.ts'
import { migrations } from './migrations/index.ts'
import type { Store } from './store.ts'

interface Column {
  readonly table: string
  readonly name: string
  /** An INSERT must have a value for it. */
  readonly needed: unknown
}

const SQLITE_COLUMNS = `select m.name as "table", c.name, c."notnull" = 1 and c.dflt_value is null and c.pk = 0 as needed,
  c."notnull" = 0 and c.pk = 0 as nullable from sqlite_schema m join pragma_table_info(m.name) c where m.type = 'table'`

const COLUMNS: Readonly<Record<Store['dialect'], RawBuilder<Column>>> = {
  sqlite: sql.raw(SQLITE_COLUMNS),
  postgres: sql`select table_name as "table", column_name as name,
    is_nullable = 'NO' and column_default is null as needed
    from information_schema.columns where table_schema = current_schema()`,
}

interface ExpectedColumn {
  readonly isNullable: boolean
}

let expected: ReadonlyMap<string, ReadonlyMap<string, ExpectedColumn>> | undefined

/** The tables and columns that the migrations create, from a database in memory. */
export function readExpected(): NonNullable<typeof expected> {
  expected ??= createExpected()
  return expected
}

function createExpected(): NonNullable<typeof expected> {
  const statements = migrations.flatMap(({ list }) => list('sqlite'))
  const connection = new Connection(':memory:', statements.join(';\n'))
  const columns = connection.all(SQLITE_COLUMNS)
  connection.close()
  const tables = Map.groupBy(columns, ({ table }) => String(table))
  return new Map(
    [...tables].map(([table, members]) => [
      table,
      new Map(members.map(({ name, nullable }) => [String(name), { isNullable: nullable === 1 }])),
    ]),
  )
}

/**
 * Throws if the tables differ from those that the code expects, for example because a migration was changed after
 * it had been applied. Additional tables, and additional columns that need no value, are allowed.
 */
export async function checkSchema({ db, dialect }: Pick<Store, 'db' | 'dialect'>): Promise<void> {
  const { rows } = await COLUMNS[dialect].execute(db)
  const found = new Map(rows.map(column => [`${column.table}.${column.name}`, Boolean(column.needed)]))
  for (const [table, columns] of readExpected()) {
    for (const [name, { isNullable }] of columns) {
      const needed = found.get(`${table}.${name}`)
      if (needed === undefined) throw differs(`column ${table}.${name} is missing`)
      if (needed && isNullable) throw differs(`column ${table}.${name} must not be null`)
    }
    const further = rows.find(({ table: of, name, needed }) => of === table && needed && !columns.has(name))
    if (further) throw differs(`column ${table}.${further.name} is unknown`)
  }
}

function differs(how: string): Error {
  return new Error(
    `its schema does not match this version (${how}); restore a backup of this version, or start with a new database`,
  )
}
