import { listCareDateParameters, type SearchClause, type SortKey } from '../../../fhir/index.ts'
import type { SqlValue } from '../repository/database.ts'
import type { SearchScope } from './search-scope.ts'
import { buildCurrentCondition, findStart, type Start, selectCurrent } from './select-current.ts'
import { buildAfter, buildOrder, compareRows, selectSortValue } from './sort-order.ts'
import { all, join, list, name, type Sql, sql } from './sql.ts'
import type { Steps } from './steps.ts'
import { findWalk, listSteps, type Walk, walkRids } from './walk.ts'

/** `rid`, then the values of the sort keys. */
export type Row = readonly SqlValue[]

/** A search of one type. */
export interface TypeSearch {
  readonly type: string
  readonly clauses: readonly SearchClause[]
  readonly sort: readonly SortKey[]
  readonly limit: number
  /** Only rows after the one with these values of the sort keys and this `rid`. */
  readonly after: readonly SqlValue[] | undefined
}

/** The steps after which a search considers to start with more resources: the matches may all be at the end of an index. */
const PATIENCE = 2
const MANY = 10_000

/**
 * The first rows of a search in its order. If it starts with few resources, one query finds and sorts them. Otherwise it
 * reads the index of the first sort key, or all resources of the type, in steps until the page is full.
 */
export function* findRows(scope: SearchScope, search: TypeSearch): Steps<readonly Row[]> {
  const few = findStart(scope, search.type, search.clauses, scope.compartment)
  if (few) return readFew(scope, search, few)
  const walked = walkRows(scope, search)
  for (let step = 0; step < PATIENCE; step++) {
    const { done, value } = walked.next()
    if (done) return value
    yield
  }
  const many = findStart(acceptMany(scope), search.type, search.clauses, scope.compartment)
  return many ? readFew(scope, search, many) : yield* walked
}

function acceptMany(scope: SearchScope): SearchScope {
  return { ...scope, isFew: (rows, most = MANY) => scope.isFew(rows, most) }
}

function* walkRows(scope: SearchScope, search: TypeSearch): Steps<readonly Row[]> {
  const { type, sort, after, limit } = search
  const walk = findWalk(scope.names, type, sort, after)
  if (!walk) return yield* readInSteps(scope, search, walkRids(scope.names, type, sort, after))
  const rows = after?.[0] === null ? [] : yield* readInSteps(scope, search, walk)
  if (rows.length === limit || !walk.missing) return rows
  const missing = walkRids(scope.names, type, sort, after, walk.missing)
  return [...rows, ...(yield* readInSteps(scope, search, missing))].slice(0, limit)
}

function readFew(scope: SearchScope, search: TypeSearch, { rids, clause }: Start): readonly Row[] {
  const { sort, type, clauses } = search
  const keys = sort.map(key => selectSortValue(scope.names, type, key))
  // The plus keeps SQLite from starting with all resources of the type.
  const from = sql`resource r WHERE r.rid IN (${rids}) AND +r.tid = ${scope.names.typeId(type)}`
  const others = { ...search, clauses: clauses.filter(it => it !== clause) }
  return readRows(scope, others, { columns: selectColumns('r.rid', keys), from, rid: 'r.rid' })
}

function* readInSteps(scope: SearchScope, search: TypeSearch, walk: Walk): Steps<readonly Row[]> {
  const { sort, limit } = search
  const isDense = walk.isSorted && findsAll(scope, search)
  let rows: readonly Row[] | undefined
  for (const range of isDense ? [walk.start] : listSteps(scope, walk)) {
    if (rows) yield
    rows = [...(rows ?? []), ...readStep(scope, search, walk, range)]
    if (!walk.isSorted) rows = rows.toSorted(compareRows(sort))
    rows = rows.slice(0, limit)
    if (walk.isSorted && rows.length === limit) break
  }
  return rows ?? []
}

/** Whether a search finds every resource of its type, so that it needs no more rows than it returns. */
function findsAll({ filter, care }: SearchScope, { type, clauses }: TypeSearch): boolean {
  return clauses.length === 0 && filter(type) === 'everything' && !care
}

function readStep(scope: SearchScope, search: TypeSearch, walk: Walk, range: Sql): readonly Row[] {
  const [first, ...others] = search.sort.map(key => selectSortValue(scope.names, search.type, key))
  const keys = first ? [walk.value === undefined ? first : name(walk.value), ...others] : []
  return readRows(scope, search, {
    // A resource may have a value twice, in different systems for example.
    columns: sql`${name(walk.missing ? 'DISTINCT ' : '')}${selectColumns(walk.rid, keys)}`,
    from: sql`${walk.index} ${walk.join} WHERE ${all([walk.where, range])}`,
    rid: walk.rid,
    ...(walk.condition && { condition: walk.condition }),
    hasFirst: walk.value !== undefined,
  })
}

interface Source {
  readonly columns: Sql
  readonly from: Sql
  readonly rid: string
  readonly condition?: Sql
  /** Whether every row has a value of the first sort key. */
  readonly hasFirst?: boolean
}

function selectColumns(rid: string, keys: readonly Sql[]): Sql {
  return join([name(`${rid} AS rid`), ...keys.map((key, at) => sql`${key} AS ${name(`k${at}`)}`)], ', ')
}

function readRows(
  scope: SearchScope,
  { type, clauses, sort, after, limit }: TypeSearch,
  { columns, from, rid, condition, hasFirst = false }: Source,
): readonly Row[] {
  const { text, values } = sql`SELECT ${columns} FROM ${from} AND ${all([
    buildCurrentCondition(scope, type, clauses, 'r', scope.compartment),
    buildCareCondition(scope, type),
    ...(condition ? [condition] : []),
    ...(after ? [buildAfter(sort, name(rid), after)] : []),
  ])} ORDER BY ${buildOrder(sort, hasFirst)} LIMIT ${limit}`
  return scope.database.rows(text, values)
}

/** Whether the resource in the row `r` is in the range of care, as `isInCareRange` checks it. */
export function buildCareCondition({ names, care }: SearchScope, type: string): Sql {
  const dates = listCareDateParameters(type)
  if (!care || dates.length === 0) return name('1')
  const nids = list(dates.map(code => names.parameterId(type, code)))
  const entry = sql`SELECT 1 FROM date e WHERE e.rid = r.rid AND +e.nid IN (${nids})`
  return sql`(EXISTS (${entry} AND e.low <= ${care.high} AND e.high >= ${care.low}) OR NOT EXISTS (${entry}))`
}

/** All resources that a search finds, as a subquery. */
export function selectRows(scope: SearchScope, type: string, clauses: readonly SearchClause[]): Sql {
  const found = selectCurrent(scope, type, clauses, name('r.rid'), 'r', scope.compartment)
  return sql`${found} AND ${buildCareCondition(scope, type)}`
}

/** The number of resources that a search finds: of few in one query, of many in steps. */
export function* countRows(
  scope: SearchScope,
  type: string,
  clauses: readonly SearchClause[],
): Steps<number> {
  const accepting = acceptMany(scope)
  const counted = selectRows(accepting, type, clauses)
  const walk = walkRids(scope.names, type, [], undefined)
  const isFew = findStart(accepting, type, clauses, scope.compartment) !== undefined
  let count: number | undefined
  for (const range of isFew ? [walk.start] : listSteps(scope, walk)) {
    if (count !== undefined) yield
    const { text, values } = sql`SELECT count(*) FROM (${counted} AND ${range})`
    count = (count ?? 0) + Number(scope.database.rows(text, values)[0]?.[0])
  }
  return count ?? 0
}
