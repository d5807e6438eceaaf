import { type RawBuilder, sql } from 'kysely'
import { SHAPE } from './shape.ts'
import type { Store } from './store.ts'

interface Column {
  readonly table: string
  readonly name: string
  /** Whether a row cannot be added without a value for it. */
  readonly needed: boolean
}

const COLUMNS: Readonly<Record<Store['dialect'], RawBuilder<Column>>> = {
  sqlite: sql`select m.name as "table", c.name, c."notnull" = 1 and c.dflt_value is null and c.pk = 0 as needed
    from sqlite_schema m join pragma_table_info(m.name) c where m.type = 'table'`,
  postgres: sql`select table_name as "table", column_name as name,
    is_nullable = 'NO' and column_default is null as needed
    from information_schema.columns where table_schema = current_schema()`,
}

/**
 * Throws when the tables are not those that the code expects, for example because a migration was changed after it had
 * been applied. Further tables, and further columns that need no value, do no harm.
 */
export async function checkSchema({ db, dialect }: Pick<Store, 'db' | 'dialect'>): Promise<void> {
  const { rows } = await COLUMNS[dialect].execute(db)
  const found = new Map(rows.map(column => [`${column.table}.${column.name}`, Boolean(column.needed)]))
  for (const [table, shape] of Object.entries<Readonly<Record<string, string>>>(SHAPE)) {
    for (const [name, kind] of Object.entries(shape)) {
      const needed = found.get(`${table}.${name}`)
      if (needed === undefined) throw differs(`column ${table}.${name} is missing`)
      if (needed && kind === 'nullable') throw differs(`column ${table}.${name} must not be null`)
    }
    const further = rows.find(({ table: of, name, needed }) => of === table && needed && !(name in shape))
    if (further) throw differs(`column ${table}.${further.name} is not known`)
  }
}

function differs(how: string): Error {
  return new Error(
    `its schema is not that of this version (${how}); restore a backup that this version made, or start with a new database`,
  )
}
