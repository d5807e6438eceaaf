import type { SortKey } from '../../../fhir/index.ts'
import { findSearchParameter } from '../../../fhir/index.ts'
import type { SqlValue } from '../repository/database.ts'
import { findTable } from './missing.ts'
import type { QueryContext } from './query-context.ts'
import { all, any, join, name, type Sql, sql } from './sql.ts'

// Of several values the smallest counts upwards, the largest downwards (R4 search.html#sort).
const LOW_AND_HIGH: Readonly<Record<string, readonly [low: string, high: string]>> = {
  token: ['code', 'code'],
  reference: ['id', 'id'],
  string: ['normal', 'normal'],
  date: ['low', 'high'],
  quantity: ['low', 'high'],
  uri: ['uri', 'uri'],
}

/** The value by which a resource of `type` is sorted; null when it has none. */
export function selectSortValue(scene: QueryContext, type: string, key: SortKey, row: string): Sql {
  if (key.parameter === '_id') return sql`${name(row)}.id`
  if (key.parameter === '_lastUpdated') return sql`${name(row)}.updated`
  const table = findSearchParameter(type, key.parameter) && findTable(type, key.parameter)
  const [low, high] = LOW_AND_HIGH[table ?? ''] ?? []
  if (table === undefined || low === undefined || high === undefined) return name('NULL')
  const value = name(key.descending ? `max(e.${high})` : `min(e.${low})`)
  const nid = scene.names.parameterId(type, key.parameter)
  return sql`(SELECT ${value} FROM ${name(table)} e WHERE e.rid = ${name(row)}.rid AND e.nid = ${nid})`
}

/** The order of rows with columns `k0`, `k1`, … and `rid`. What has no value comes last, either way. */
export function buildOrder(sort: readonly SortKey[]): Sql {
  const keys = sort.map(({ descending }, at) => name(`k${at} ${descending ? 'DESC' : 'ASC'} NULLS LAST`))
  return join([...keys, name('rid')], ', ')
}

/** Whether a row comes after the one with these keys, the last of which is its `rid`. */
export function buildAfter(sort: readonly SortKey[], after: readonly SqlValue[]): Sql {
  const same: Sql[] = []
  const later: Sql[] = []
  sort.forEach(({ descending }, at) => {
    const [column, value] = [name(`k${at}`), after[at] ?? null]
    if (value !== null)
      later.push(
        all([...same, sql`(${column} ${name(descending ? '<' : '>')} ${value} OR ${column} IS NULL)`]),
      )
    same.push(sql`${column} IS ${value}`)
  })
  return any([...later, all([...same, sql`rid > ${after[sort.length] ?? 0}`])])
}
