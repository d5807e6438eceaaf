import type { SqlValue } from '../../repository/database.ts'

/** A piece of SQL and the values of its question marks. Text from a request is only ever a value. */
export interface Sql {
  readonly text: string
  readonly values: readonly SqlValue[]
}

/**
 * SQL from a template, into which values and other SQL are put. The number of a LIMIT is part of the text: if it is a value,
 * SQLite plans the statement anew each time it runs, which takes 30 ms for a search by 400 values.
 */
export function sql(strings: TemplateStringsArray, ...parts: readonly (SqlValue | Sql)[]): Sql {
  let text = strings[0] ?? ''
  const values: SqlValue[] = []
  parts.forEach((part, at) => {
    if (isSql(part)) {
      text += part.text
      values.push(...part.values)
    } else if (text.endsWith('LIMIT ')) {
      text += formatLimit(part)
    } else {
      text += '?'
      values.push(part)
    }
    text += strings[at + 1] ?? ''
  })
  return { text, values }
}

function formatLimit(limit: SqlValue): string {
  if (!Number.isSafeInteger(limit)) throw new Error('Cannot limit rows: expected a whole number')
  return String(limit)
}

/** Fixed SQL (a table, a column, an alias), never text from a request. */
export function name(text: string): Sql {
  return { text, values: [] }
}

export function join(parts: readonly Sql[], separator: string): Sql {
  return {
    text: parts.map(part => part.text).join(separator),
    values: parts.flatMap(part => part.values),
  }
}

export function list(values: readonly SqlValue[]): Sql {
  return { text: values.map(() => '?').join(', '), values }
}

/** False. A value: a constant makes SQLite drop all other conditions, and with them the use of a partial index. */
export const FALSE: Sql = { text: '?', values: [0] }

/** True if there are no parts. */
export function all(parts: readonly Sql[]): Sql {
  return parts.length === 0 ? name('1') : join(parts, ' AND ')
}

/** False if there are no parts. Nested by halves: SQLite accepts expressions up to 1,000 deep. */
export function any(parts: readonly Sql[]): Sql {
  const [only] = parts
  if (!only) return FALSE
  if (parts.length === 1) return only
  const half = Math.ceil(parts.length / 2)
  return sql`((${any(parts.slice(0, half))}) OR (${any(parts.slice(half))}))`
}

const UNITED = 250

/** All rows of the selects. Nested by halves: SQLite accepts 500 parts of a compound. */
export function union(selects: readonly Sql[]): Sql {
  const [only] = selects
  if (only && selects.length === 1) return only
  if (selects.length <= UNITED) return join(selects.map(nestUnion), ' UNION ALL ')
  const half = Math.ceil(selects.length / 2)
  return union([union(selects.slice(0, half)), union(selects.slice(half))])
}

function nestUnion(select: Sql): Sql {
  return select.text.includes(' UNION ALL ') ? sql`SELECT * FROM (${select})` : select
}

function isSql(part: SqlValue | Sql): part is Sql {
  return typeof part === 'object' && part !== null && 'text' in part
}
