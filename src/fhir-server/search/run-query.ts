import { careDateParameters, type DateRange, type Query } from '../../fhir/index.ts'
import type { Database, SqlValue } from '../repository/database.ts'
import { isBounded, living } from './living.ts'
import type { Scene } from './scene.ts'
import { isAfter, orderOf, sortValue } from './sort.ts'
import { joined, list, name, type Sql, sql } from './sql.ts'

/** A resource that was found. */
export interface Hit {
  readonly rid: number
  readonly type: string
  readonly id: string
  readonly content: string
}

export interface Found {
  readonly hits: readonly Hit[]
  /** Where the next page begins, if there is one. */
  readonly next: readonly SqlValue[] | undefined
}

/** Where a search looks: the whole server, or what is in a patient's compartment (`Patient/1/Condition`). */
export interface Ground {
  readonly scene: Scene
  readonly database: Database
  readonly compartment?: string | undefined
  /** The range that a date of care must be in, where there is one. */
  readonly care?: DateRange | undefined
}

/** A page of what a query finds, in its order. Nothing out of the caller's reach is looked at. */
export function runQuery(ground: Ground, query: Query, after: readonly SqlValue[] | undefined): Found {
  const { sort, count } = query
  if (query.types.length === 0 || count === 0) return { hits: [], next: undefined }
  const keys = sort.map((_, at) => `, p.k${at}`).join('')
  const order = orderOf(sort)
  const from = after ? sql` WHERE ${isAfter(sort, after)}` : sql``
  const { text, values } = sql`WITH page AS MATERIALIZED (
      SELECT * FROM (${rows(ground, query)})${from} ORDER BY ${order} LIMIT ${count + 1})
    SELECT p.rid, r.tid, r.id, r.content${name(keys)} FROM page p CROSS JOIN resource r ON r.rid = p.rid
    ORDER BY ${name(order.text.replaceAll(/\b(k\d+|rid)\b/g, 'p.$1'))}`
  const found = ground.database.rows(text, values)
  const shown = found.slice(0, count)
  const last = shown.at(-1)
  return {
    hits: shown.map(row => hitOf(ground.scene, row)),
    next: found.length > count && last ? [...last.slice(4), last[0] ?? null] : undefined,
  }
}

/** How many there are; with a limit, undefined when there are more. */
export function countQuery(ground: Ground, query: Query, limit?: number): number | undefined {
  if (query.types.length === 0) return 0
  const counted = rows(ground, { ...query, sort: [] })
  const bound = limit === undefined ? sql`` : sql` LIMIT ${limit + 1}`
  const { text, values } = sql`SELECT count(*) FROM (${counted}${bound})`
  const count = Number(ground.database.rows(text, values)[0]?.[0])
  return limit !== undefined && count > limit ? undefined : count
}

/** Whether a count up to a limit is cheap: the query begins with few resources, or finds all of them. */
export function isCountable({ scene, compartment }: Ground, query: Query): boolean {
  return query.types.every(
    ({ type, clauses }) => compartment !== undefined || isBounded(scene, type, clauses),
  )
}

function rows({ scene, compartment, care }: Ground, { types, sort }: Query): Sql {
  const parts = types.map(({ type, clauses }) => {
    const keys = sort.map((key, at) => sql`, ${sortValue(scene, type, key, 'r')} AS ${name(`k${at}`)}`)
    const found = living(scene, type, clauses, sql`r.rid AS rid${joined(keys, '')}`, 'r', compartment)
    const dates = care ? careDateParameters(type) : []
    return care && dates.length > 0 ? sql`${found} AND ${isInRange(scene, type, dates, care)}` : found
  })
  return joined(parts, ' UNION ALL ')
}

/** As `isInCareRange`. */
function isInRange(scene: Scene, type: string, dates: readonly string[], { low, high }: DateRange): Sql {
  const nids = list(dates.map(code => scene.names.parameterId(type, code)))
  const entry = sql`SELECT 1 FROM date e WHERE e.rid = r.rid AND e.nid IN (${nids})`
  return sql`(EXISTS (${entry} AND e.low <= ${high} AND e.high >= ${low}) OR NOT EXISTS (${entry}))`
}

export function hitOf(scene: Scene, [rid, tid, id, content]: readonly SqlValue[]): Hit {
  return { rid: Number(rid), type: scene.names.typeOf(Number(tid)), id: String(id), content: String(content) }
}
