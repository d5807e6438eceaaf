import {
  type DateRange,
  findSearchParameter,
  limits,
  listCareDateParameters,
  type Query,
  type SortKey,
} from '../../../fhir/index.ts'
import type { SqlValue } from '../repository/database.ts'
import type { Names } from '../repository/names.ts'
import { findTable } from './own-condition.ts'
import type { SearchScope } from './search-scope.ts'
import { isBounded, selectCurrent } from './select-current.ts'
import { all, any, join, list, name, type Sql, sql } from './sql.ts'

// Of several values the lowest counts in ascending order, the highest in descending order (R4 search.html#sort).
const LOW_AND_HIGH: Readonly<Record<string, readonly [low: string, high: string]>> = {
  token: ['code', 'code'],
  reference: ['id', 'id'],
  string: ['normal', 'normal'],
  date: ['low', 'high'],
  quantity: ['low', 'high'],
  uri: ['uri', 'uri'],
}

/** The value by which a resource of `type` is sorted; null if it has none. */
function selectSortValue(names: Names, type: string, key: SortKey, row: string): Sql {
  if (key.parameter === '_id') return sql`${name(row)}.id`
  if (key.parameter === '_lastUpdated') return sql`${name(row)}.updated`
  const table = findSearchParameter(type, key.parameter) && findTable(type, key.parameter)
  const [low, high] = LOW_AND_HIGH[table ?? ''] ?? []
  if (table === undefined || low === undefined || high === undefined) return name('NULL')
  const value = name(key.descending ? `max(e.${high})` : `min(e.${low})`)
  const nid = names.parameterId(type, key.parameter)
  return sql`(SELECT ${value} FROM ${name(table)} e WHERE e.rid = ${name(row)}.rid AND e.nid = ${nid})`
}

/** The order of rows with columns `k0`, `k1`, … and `rid`. Rows without a value come last in both directions. */
function buildOrder(sort: readonly SortKey[]): Sql {
  const keys = sort.map(({ descending }, at) => name(`k${at} ${descending ? 'DESC' : 'ASC'} NULLS LAST`))
  return join([...keys, name('rid')], ', ')
}

/** Whether a row comes after the row with these keys, of which the last is its `rid`. */
function buildAfter(sort: readonly SortKey[], after: readonly SqlValue[]): Sql {
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

/** A resource that a search found. */
export interface Hit {
  readonly rid: number
  readonly type: string
  readonly id: string
  readonly content: string
}

export interface FoundRows {
  readonly hits: readonly Hit[]
  /** Where the next page begins, if there is one. */
  readonly next: readonly SqlValue[] | undefined
}

/** A page of the resources that a query finds, in its order, within the caller's access. */
export function runQuery(
  scope: SearchScope,
  query: Query,
  after: readonly SqlValue[] | undefined,
  mostCharacters = limits.PAGE_CHARACTERS,
): FoundRows {
  const { sort, count } = query
  if (query.types.length === 0 || count === 0) return { hits: [], next: undefined }
  const keys = sort.map((_, at) => `, p.k${at}`).join('')
  const order = buildOrder(sort)
  const from = after ? sql` WHERE ${buildAfter(sort, after)}` : sql``
  const { text, values } = sql`SELECT p.rid${name(keys)} FROM (${selectRows(scope, query)}) p${from}
    ORDER BY ${order} LIMIT ${count + 1}`
  const found = scope.database.rows(text, values)
  const hits = loadPage(
    scope,
    found.slice(0, count).map(([rid]) => Number(rid)),
    mostCharacters,
  )
  const last = found[hits.length - 1]
  return { hits, next: found.length > hits.length && last ? [...last.slice(1), last[0] ?? null] : undefined }
}

/** As many of the resources as fit on a page, but at least one. */
function loadPage(scope: SearchScope, rids: readonly number[], mostCharacters: number): readonly Hit[] {
  const hits: Hit[] = []
  let charactersLeft = mostCharacters
  for (const rid of rids) {
    const hit = loadHit(scope, rid)
    charactersLeft -= hit.content.length
    if (charactersLeft < 0 && hits.length > 0) break
    hits.push(hit)
  }
  return hits
}

export function loadHit({ database, names }: Pick<SearchScope, 'database' | 'names'>, rid: number): Hit {
  const [row] = database.rows('SELECT tid, id, content FROM resource WHERE rid = ?', [rid])
  const [tid, id, content] = row ?? []
  return { rid, type: names.typeOf(Number(tid)), id: String(id), content: String(content) }
}

/** The `rid`s of all resources that a query finds. */
export function findRids(scope: SearchScope, query: Query): readonly number[] {
  if (query.types.length === 0) return []
  const { text, values } = selectRows(scope, { ...query, sort: [] })
  return scope.database.rows(text, values).map(([rid]) => Number(rid))
}

/** The number of resources that a query finds; with a limit, undefined if there are more. */
export function countQuery(scope: SearchScope, query: Query, limit?: number): number | undefined {
  if (query.types.length === 0) return 0
  const counted = selectRows(scope, { ...query, sort: [] })
  const bound = limit === undefined ? sql`` : sql` LIMIT ${limit + 1}`
  const { text, values } = sql`SELECT count(*) FROM (${counted}${bound})`
  const count = Number(scope.database.rows(text, values)[0]?.[0])
  return limit !== undefined && count > limit ? undefined : count
}

/** Whether counting up to a limit is cheap: the query starts with few resources, or finds all of them. */
export function isCountable(scope: SearchScope, query: Query): boolean {
  return query.types.every(
    ({ type, clauses }) => scope.compartment !== undefined || isBounded(scope, type, clauses),
  )
}

function selectRows(scope: SearchScope, { types, sort }: Query): Sql {
  const { names, compartment, care } = scope
  const parts = types.map(({ type, clauses }) => {
    const keys = sort.map((key, at) => sql`, ${selectSortValue(names, type, key, 'r')} AS ${name(`k${at}`)}`)
    const found = selectCurrent(scope, type, clauses, sql`r.rid AS rid${join(keys, '')}`, 'r', compartment)
    const dates = care ? listCareDateParameters(type) : []
    return care && dates.length > 0
      ? sql`${found} AND ${buildRangeCondition(names, type, dates, care)}`
      : found
  })
  return join(parts, ' UNION ALL ')
}

/** Whether a resource is in a range of care, as `isInCareRange` checks it. */
function buildRangeCondition(
  names: Names,
  type: string,
  dates: readonly string[],
  { low, high }: DateRange,
): Sql {
  const nids = list(dates.map(code => names.parameterId(type, code)))
  const entry = sql`SELECT 1 FROM date e WHERE e.rid = r.rid AND e.nid IN (${nids})`
  return sql`(EXISTS (${entry} AND e.low <= ${high} AND e.high >= ${low}) OR NOT EXISTS (${entry}))`
}
