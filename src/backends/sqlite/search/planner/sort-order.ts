import { findSearchParameter, type SortKey } from '../../../../fhir/index.ts'
import { compareValues, type SqlValue } from '../../repository/database.ts'
import type { Names } from '../../repository/names.ts'
import { findTable } from './own-condition.ts'
import { all, any, name, type Sql, sql } from './sql.ts'

// Of several values the lowest counts in ascending order, the highest in descending order (R4 search.html#sort).
const LOW_AND_HIGH: Readonly<Record<string, readonly [low: string, high: string]>> = {
  token: ['code', 'code'],
  reference: ['id', 'id'],
  string: ['normal', 'normal'],
  date: ['low', 'high'],
  quantity: ['low', 'high'],
  uri: ['uri', 'uri'],
}

/** The table and the column of the values by which resources of a type are sorted; undefined if there are none. */
export function findSortColumn(
  type: string,
  { parameter, descending }: SortKey,
): { readonly table: string; readonly column: string } | undefined {
  const table = findSearchParameter(type, parameter) && findTable(type, parameter)
  const [low, high] = LOW_AND_HIGH[table ?? ''] ?? []
  const column = descending ? high : low
  return table === undefined || column === undefined ? undefined : { table, column }
}

/** The value by which the resource of `type` in the row `r` is sorted; null if it has none. */
export function selectSortValue(names: Names, type: string, key: SortKey): Sql {
  if (key.parameter === '_id') return name('r.id')
  if (key.parameter === '_lastUpdated') return name('r.updated')
  const sorted = findSortColumn(type, key)
  if (!sorted) return name('NULL')
  const value = name(`${key.descending ? 'max' : 'min'}(e.${sorted.column})`)
  const nid = names.parameterId(type, key.parameter)
  // The plus keeps SQLite from reading the values of all resources in their order.
  return sql`(SELECT ${value} FROM ${name(sorted.table)} e WHERE e.rid = r.rid AND +e.nid = ${nid})`
}

/** Whether resources with the same values are sorted by descending `rid`: as the index of a single key is read. */
export function isReversed(sort: readonly SortKey[]): boolean {
  return sort.at(-1)?.descending ?? false
}

/**
 * The order of rows with columns `k0`, `k1`, … and `rid`. Rows without a value come last in both directions: in descending
 * order they do by default. `hasFirst`: every row has `k0`, so that SQLite can use the order of an index.
 */
export function buildOrder(sort: readonly SortKey[], hasFirst: boolean): Sql {
  const keys = sort.map(({ descending }, at) =>
    descending ? `k${at} DESC` : at === 0 && hasFirst ? 'k0' : `k${at} NULLS LAST`,
  )
  return name([...keys, isReversed(sort) ? 'rid DESC' : 'rid'].join(', '))
}

/** Whether a row comes after the row with these keys, of which the last is its `rid`. */
export function buildAfter(sort: readonly SortKey[], rid: Sql, after: readonly SqlValue[]): Sql {
  const same: Sql[] = []
  const later: Sql[] = []
  sort.forEach(({ descending }, at) => {
    const column = name(`k${at}`)
    const value = after[at] ?? null
    if (value !== null)
      later.push(
        all([...same, sql`(${column} ${name(descending ? '<' : '>')} ${value} OR ${column} IS NULL)`]),
      )
    same.push(sql`${column} IS ${value}`)
  })
  const beyond = sql`${rid} ${name(isReversed(sort) ? '<' : '>')} ${after[sort.length] ?? 0}`
  return sql`(${any([...later, all([...same, beyond])])})`
}

/** Compares rows (`rid`, then the values of the keys) as `buildOrder` sorts them. */
export function compareRows(
  sort: readonly SortKey[],
): (a: readonly SqlValue[], b: readonly SqlValue[]) => number {
  return (a, b) => {
    for (const [at, { descending }] of sort.entries()) {
      const [x = null, y = null] = [a[at + 1], b[at + 1]]
      if (x === null || y === null) {
        if (x !== y) return x === null ? 1 : -1
        continue
      }
      const order = compareValues(x, y)
      if (order !== 0) return descending ? -order : order
    }
    const order = Number(a[0]) - Number(b[0])
    return isReversed(sort) ? -order : order
  }
}
