import type { SearchClause, SortKey } from '../../../../fhir/index.ts'
import { compareValues, type SqlValue } from '../../repository/database.ts'
import type { Names } from '../../repository/names.ts'
import { WIDTHS } from '../../repository/schema.ts'
import { type Bounds, findBounds } from './own-condition.ts'
import type { SearchScope } from './search-scope.ts'
import { findSortColumn, isReversed } from './sort-order.ts'
import { list, name, type Sql, sql } from './sql.ts'

/** Rows of an index that are read in steps. */
export interface IndexPath {
  /** The index, its rows of the type, and the columns in whose order it is read. */
  readonly index: Sql
  readonly where: Sql
  readonly position: readonly string[]
  readonly descending: boolean
  /** Where the first step begins, and where the last one ends. */
  readonly start: Sql
  readonly end: Sql
}

/** A path by which a search finds resources of a type. */
export interface Walk extends IndexPath {
  /** Joins the row `r` of the resource, if the index is of another table. */
  readonly join: Sql
  readonly rid: string
  /** The value of the first sort key, if it is that of the index. */
  readonly value?: string
  /** A further condition of each row. */
  readonly condition?: Sql
  /** The clause that holds for all rows that meet the condition. */
  readonly clause?: SearchClause
  /** Whether a resource may be in several rows. */
  readonly repeats: boolean
  /** Whether the rows of a step come before those of the next one in the order of the search. */
  readonly isSorted: boolean
}

export interface Sorted {
  readonly clauses: readonly SearchClause[]
  readonly sort: readonly SortKey[]
  readonly after: readonly SqlValue[] | undefined
  /** Only resources that are sorted by a value within the bounds of the filter, not those that merely have one. */
  readonly isOfSortValue?: true
}

/**
 * The walks that cover all resources that a search may find, in its order: along the values of the first sort key, then
 * through the resources without a value. One walk through all resources if no index is in that order.
 */
export function listWalks(names: Names, type: string, search: Sorted): readonly Walk[] {
  const { clauses, sort, after } = search
  const [key] = sort
  const along = key && (walkColumn(names, type, key) ?? walkValues(names, type, key))
  if (!along) return [walkRids(names, type, sort, after)]
  const bounds = findBounds(clauses, key.parameter, along.width)
  const missing = along.missing && !bounds ? [walkRids(names, type, sort, after, along.missing)] : []
  return after?.[0] === null ? missing : [...walkBetween(along, search, key, bounds ?? {}), ...missing]
}

/**
 * Walks between the bounds of the filter. A resource of the table `span` may match although it is sorted before these
 * bounds: a walk through that table comes first.
 */
function walkBetween(
  along: Along,
  { sort, after, isOfSortValue }: Sorted,
  { descending }: SortKey,
  bounds: Bounds,
): readonly Walk[] {
  const [begin, last] = descending ? [bounds.last, bounds.from] : [bounds.first, bounds.to]
  // With further keys, resources of the same value must be in the same step.
  const complete = (it: Along) => ({
    ...it,
    descending,
    isSorted: true,
    position: sort.length === 1 ? [it.value, it.rid] : [it.value],
  })
  const main = complete(along)
  const isWithin =
    after !== undefined && (begin === undefined || isReached(after[0] ?? null, begin, descending))
  const start = isWithin ? startAfter(main, after) : limitValue(main, 'from', begin)
  const walk = { ...main, start, end: limitValue(main, 'to', last) }
  if (!along.spans || begin === undefined || isWithin || isOfSortValue) return [walk]
  const spans = complete(along.spans)
  return [
    {
      ...spans,
      start: after ? startAfter(spans, after) : name('1'),
      end: limitValue(spans, 'before', begin),
    },
    walk,
  ]
}

function isReached(value: SqlValue, begin: SqlValue, descending: boolean): boolean {
  const order = compareValues(value, begin)
  return descending ? order <= 0 : order >= 0
}

type Along = Pick<Walk, 'index' | 'where' | 'join' | 'rid' | 'condition' | 'repeats'> & {
  readonly value: string
  /** The widest range of a resource that is not in `spans`. */
  readonly width: number
  readonly spans?: Along
  /** Whether a resource has no value. */
  readonly missing?: Sql
}

const COLUMNS: Readonly<Record<string, readonly [index: string, column: string]>> = {
  _id: ['resource_id', 'r.id'],
  _lastUpdated: ['resource_updated', 'r.updated'],
}

function walkColumn(names: Names, type: string, { parameter }: SortKey): Along | undefined {
  const [index, value] = COLUMNS[parameter] ?? []
  if (index === undefined || value === undefined) return undefined
  return {
    index: name(`resource r INDEXED BY ${index}`),
    where: sql`r.tid = ${names.typeId(type)} AND r.deleted = 0`,
    join: sql``,
    rid: 'r.rid',
    value,
    width: 0,
    repeats: false,
  }
}

/** The indexes that are in the order of a value and then of `rid`. */
const INDEXES: Readonly<Record<string, string>> = {
  'token.code': 'token_code',
  'string.normal': 'string_normal',
  'date.low': 'date_low',
  'date.high': 'date_high',
  'quantity.low': 'quantity_low',
  'quantity.high': 'quantity_high',
  'uri.uri': 'uri_uri',
}

function walkValues(names: Names, type: string, key: SortKey): Along | undefined {
  const { table = '', column = '' } = findSortColumn(type, key) ?? {}
  const index = INDEXES[`${table}.${column}`]
  if (index === undefined) return undefined
  const nid = names.parameterId(type, key.parameter)
  // The plus keeps SQLite from reading the values of all resources.
  const entriesOf = (rid: string) =>
    sql`SELECT 1 FROM ${name(table)} x WHERE x.rid = ${name(rid)} AND +x.nid = ${nid}`
  const isBetter = name(`x.${column} ${key.descending ? '>' : '<'} w.${column}`)
  const common = { where: sql`w.nid = ${nid}`, join: JOIN_RESOURCE, rid: 'w.rid', width: WIDTHS[table] ?? 0 }
  const end = key.descending ? 'high' : 'low'
  return {
    ...common,
    index: name(`${table} w INDEXED BY ${index}`),
    value: `w.${column}`,
    repeats: true,
    condition: sql`NOT EXISTS (${entriesOf('w.rid')} AND ${isBetter})`,
    missing: sql`NOT EXISTS (${entriesOf('r.rid')})`,
    spans: { ...common, index: name(`span w INDEXED BY span_${end}`), value: `w.${end}`, repeats: false },
  }
}

/** The rows of the references to one resource. */
export function walkReferences(where: Sql): IndexPath {
  return {
    index: name('reference w INDEXED BY reference_id'),
    where,
    position: ['w.rid'],
    descending: false,
    start: name('1'),
    end: name('1'),
  }
}

export const JOIN_RESOURCE = name('CROSS JOIN resource r ON r.rid = w.rid')

/** The walk through all resources of a type, or through those that have no value for the first sort key. */
export function walkRids(
  names: Names,
  type: string,
  sort: readonly SortKey[],
  after: readonly SqlValue[] | undefined,
  missing?: Sql,
): Walk {
  const isSorted = sort.length === (missing ? 1 : 0)
  const walk = {
    index: name('resource r INDEXED BY resource_live'),
    where: sql`r.tid = ${names.typeId(type)} AND r.deleted = 0`,
    join: sql``,
    rid: 'r.rid',
    position: ['r.rid'],
    descending: isReversed(sort),
    isSorted,
    end: name('1'),
    repeats: false,
    ...(missing && { condition: missing }),
  }
  const isWithin = isSorted && after !== undefined && (!missing || after[0] === null)
  return { ...walk, start: isWithin ? buildRange(walk, 'after', after.slice(-1)) : name('1') }
}

type Direction = Pick<Walk, 'position' | 'descending'>

/** The rows of a walk that come after a position, or until it. */
function buildRange(
  { position, descending }: Direction,
  part: 'after' | 'until',
  values: readonly SqlValue[],
): Sql {
  const operator = part === 'after' ? (descending ? '<' : '>') : descending ? '>=' : '<='
  return sql`(${name(position.join(', '))}) ${name(operator)} (${list(values)})`
}

/** With further keys the walk begins with the value of the last row. */
function startAfter(walk: Direction & { readonly value: string }, after: readonly SqlValue[]): Sql {
  return walk.position.length > 1 ? buildRange(walk, 'after', after) : limitValue(walk, 'from', after[0])
}

/** The rows of a walk from a value on, up to a value or before it. */
function limitValue(
  { value, descending }: Pick<Direction, 'descending'> & { readonly value: string },
  part: 'from' | 'to' | 'before',
  limit: SqlValue | undefined,
): Sql {
  if (limit === undefined) return name('1')
  const forward = { from: '>=', to: '<=', before: '<' }
  const backward = { from: '<=', to: '>=', before: '>' }
  return sql`${name(value)} ${name((descending ? backward : forward)[part])} ${limit}`
}

/** The steps of a walk as conditions. The end of a step is found when the step is requested. */
export function* listSteps(
  { database, step }: Pick<SearchScope, 'database' | 'step'>,
  walk: IndexPath,
): Generator<Sql, void> {
  const columns = name(walk.position.join(', '))
  const order = name(walk.position.map(it => `${it}${walk.descending ? ' DESC' : ''}`).join(', '))
  let { start } = walk
  for (;;) {
    const { text, values } =
      sql`SELECT ${columns} FROM ${walk.index} WHERE ${walk.where} AND ${start} AND ${walk.end}
      ORDER BY ${order} LIMIT 1 OFFSET ${step - 1}`
    const [end] = database.rows(text, values)
    if (!end) return yield sql`${start} AND ${walk.end}`
    yield sql`${start} AND ${buildRange(walk, 'until', end)}`
    start = buildRange(walk, 'after', end)
  }
}
