import type { SortKey } from '../../../fhir/index.ts'
import {
  type DateRange,
  findSearchParameter,
  limits,
  listCareDateParameters,
  type Query,
} from '../../../fhir/index.ts'
import type { Database, SqlValue } from '../repository/database.ts'
import { findTable } from './missing.ts'
import type { QueryContext } from './query-context.ts'
import { isBounded, selectCurrent } from './select-current.ts'
import { all, any, join, list, name, type Sql, sql } from './sql.ts'

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
function selectSortValue(scene: QueryContext, type: string, key: SortKey, row: string): Sql {
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
function buildOrder(sort: readonly SortKey[]): Sql {
  const keys = sort.map(({ descending }, at) => name(`k${at} ${descending ? 'DESC' : 'ASC'} NULLS LAST`))
  return join([...keys, name('rid')], ', ')
}

/** Whether a row comes after the one with these keys, the last of which is its `rid`. */
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

/** A resource that was found. */
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

/** Where a search looks: the whole server, or what is in a patient's compartment (`Patient/1/Condition`). */
export interface SearchScope {
  readonly scene: QueryContext
  readonly database: Database
  readonly compartment?: string | undefined
  /** The range that a date of care must be in, where there is one. */
  readonly care?: DateRange | undefined
}

/** A page of what a query finds, in its order. Nothing out of the caller's reach is looked at. */
export function runQuery(
  ground: SearchScope,
  query: Query,
  after: readonly SqlValue[] | undefined,
  mostCharacters = limits.PAGE_CHARACTERS,
): FoundRows {
  const { sort, count } = query
  if (query.types.length === 0 || count === 0) return { hits: [], next: undefined }
  const keys = sort.map((_, at) => `, p.k${at}`).join('')
  const order = buildOrder(sort)
  const from = after ? sql` WHERE ${buildAfter(sort, after)}` : sql``
  const { text, values } = sql`SELECT p.rid${name(keys)} FROM (${rows(ground, query)}) p${from}
    ORDER BY ${order} LIMIT ${count + 1}`
  const found = ground.database.rows(text, values)
  const hits = loadPage(
    ground,
    found.slice(0, count).map(([rid]) => Number(rid)),
    mostCharacters,
  )
  const last = found[hits.length - 1]
  return { hits, next: found.length > hits.length && last ? [...last.slice(1), last[0] ?? null] : undefined }
}

/** The resources, as many as fit on a page; one at least. */
function loadPage(ground: SearchScope, rids: readonly number[], mostCharacters: number): readonly Hit[] {
  const hits: Hit[] = []
  let room = mostCharacters
  for (const rid of rids) {
    const hit = loadHit(ground, rid)
    room -= hit.content.length
    if (room < 0 && hits.length > 0) break
    hits.push(hit)
  }
  return hits
}

export function loadHit({ database, scene }: Pick<SearchScope, 'database' | 'scene'>, rid: number): Hit {
  const [row] = database.rows('SELECT tid, id, content FROM resource WHERE rid = ?', [rid])
  const [tid, id, content] = row ?? []
  return { rid, type: scene.names.typeOf(Number(tid)), id: String(id), content: String(content) }
}

/** The numbers of all resources that a query finds. */
export function findRids(ground: SearchScope, query: Query): readonly number[] {
  if (query.types.length === 0) return []
  const { text, values } = rows(ground, { ...query, sort: [] })
  return ground.database.rows(text, values).map(([rid]) => Number(rid))
}

/** How many there are; with a limit, undefined when there are more. */
export function countQuery(ground: SearchScope, query: Query, limit?: number): number | undefined {
  if (query.types.length === 0) return 0
  const counted = rows(ground, { ...query, sort: [] })
  const bound = limit === undefined ? sql`` : sql` LIMIT ${limit + 1}`
  const { text, values } = sql`SELECT count(*) FROM (${counted}${bound})`
  const count = Number(ground.database.rows(text, values)[0]?.[0])
  return limit !== undefined && count > limit ? undefined : count
}

/** Whether a count up to a limit is cheap: the query begins with few resources, or finds all of them. */
export function isCountable({ scene, compartment }: SearchScope, query: Query): boolean {
  return query.types.every(
    ({ type, clauses }) => compartment !== undefined || isBounded(scene, type, clauses),
  )
}

function rows({ scene, compartment, care }: SearchScope, { types, sort }: Query): Sql {
  const parts = types.map(({ type, clauses }) => {
    const keys = sort.map((key, at) => sql`, ${selectSortValue(scene, type, key, 'r')} AS ${name(`k${at}`)}`)
    const found = selectCurrent(scene, type, clauses, sql`r.rid AS rid${join(keys, '')}`, 'r', compartment)
    const dates = care ? listCareDateParameters(type) : []
    return care && dates.length > 0 ? sql`${found} AND ${isInRange(scene, type, dates, care)}` : found
  })
  return join(parts, ' UNION ALL ')
}

/** As `isInCareRange`. */
function isInRange(
  scene: QueryContext,
  type: string,
  dates: readonly string[],
  { low, high }: DateRange,
): Sql {
  const nids = list(dates.map(code => scene.names.parameterId(type, code)))
  const entry = sql`SELECT 1 FROM date e WHERE e.rid = r.rid AND e.nid IN (${nids})`
  return sql`(EXISTS (${entry} AND e.low <= ${high} AND e.high >= ${low}) OR NOT EXISTS (${entry}))`
}
