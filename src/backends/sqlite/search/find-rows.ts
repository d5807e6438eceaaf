import {
  type ChainClause,
  type HasClause,
  listCareDateParameters,
  type SearchClause,
  type SortKey,
} from '../../../fhir/index.ts'
import type { SqlValue } from '../repository/database.ts'
import { findShortest } from './clause-walk.ts'
import { isColumn } from './own-condition.ts'
import { countUpTo, type SearchScope } from './search-scope.ts'
import {
  buildConditions,
  buildCurrentCondition,
  FEW_LINKS,
  findStart,
  isDecidedByValues,
  type Start,
  selectCurrent,
  selectReferred,
  selectReferring,
} from './select-current.ts'
import { buildAfter, buildOrder, compareRows, selectSortValue } from './sort-order.ts'
import { all, join, list, name, type Sql, sql } from './sql.ts'
import type { Steps } from './steps.ts'
import { listSteps, listWalks, type Walk, walkRids } from './walk.ts'

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

/** The steps after which a search first considers to read an index in another order than its own. */
const PATIENCE = 2
/** How often it considers it again: after four times as many steps. A page that is a quarter full is full by then. */
const GROWTH = 4
/** Rows that are read in the order of their index while one row is found in another order. */
const ROWS_IN_ORDER = 12
const MANY = 10_000
/** Rows without conditions that are counted in the time in which one with conditions is read. */
const ROWS_COUNTED_AT_ONCE = 4

/**
 * The first rows of a search in its order. If it starts with few resources, one query finds and sorts them. Otherwise it
 * reads the index of the first sort key, or all resources of the type, in steps until the page is full. If the page does
 * not become full, because matches are rare, it reads the matches of the most selective clause instead.
 */
export function* findRows(scope: SearchScope, search: TypeSearch): Steps<readonly Row[]> {
  const few = findStart(scope, search.type, search.clauses, scope.compartment)
  if (few) return yield* readParts(scope, search, few)
  const walked = readWalks(scope, search, listWalks(scope.names, search.type, search))
  let next = PATIENCE
  for (let step = 1; ; step++) {
    const { done, value } = walked.next()
    if (done) return value
    yield
    if (step !== next) continue
    next *= GROWTH
    if (value * GROWTH >= search.limit) continue
    const rows = yield* collectRows(scope, search, step * scope.step * ROWS_IN_ORDER)
    if (rows) return rows
  }
}

/** The rows of a search from the matches of one clause or of the access filter; undefined if these are too many. */
function* collectRows(
  scope: SearchScope,
  search: TypeSearch,
  most: number,
): Steps<readonly Row[] | undefined> {
  const many = yield* findLargeStart(scope, search.type, search.clauses)
  if (many) return yield* readParts(scope, search, many)
  const walks = yield* findShortest(scope, search.type, search.clauses, most)
  return walks && (yield* withoutProgress(readWalks(scope, search, walks)))
}

/** The resources that a search starts with when it is worth reading many to find them. */
function* findLargeStart(
  scope: SearchScope,
  type: string,
  clauses: readonly SearchClause[],
): Steps<Start | undefined> {
  return (
    findStart(acceptMany(scope), type, clauses, scope.compartment) ??
    (yield* findLinkedStart(scope, type, clauses))
  )
}

/** The resources of a chain whose other end has few resources within the caller's access. */
function* findLinkedStart(
  scope: SearchScope,
  type: string,
  clauses: readonly SearchClause[],
): Steps<Start | undefined> {
  for (const clause of clauses) {
    if (clause.kind !== 'chain' && clause.kind !== 'has') continue
    const rids = yield* findLinked(scope, type, clause)
    if (rids && scope.isFew(rids, MANY)) return { rids, clause }
  }
  return undefined
}

/** The resources that a chain leads to; undefined if its other end has many. */
function* findLinked(
  scope: SearchScope,
  type: string,
  clause: ChainClause | HasClause,
): Steps<Sql | undefined> {
  const ends = clause.kind === 'has' ? [clause] : clause.targets
  const parts: Sql[] = []
  for (const end of ends) {
    const search = { type: end.type, clauses: [end.clause], sort: [], after: undefined, limit: FEW_LINKS + 1 }
    const rows = yield* findRows({ ...scope, compartment: undefined, care: undefined }, search)
    if (rows.length > FEW_LINKS) return undefined
    const found = selectNumbers(rows.map(([rid]) => Number(rid)))
    parts.push(
      clause.kind === 'has'
        ? selectReferred(scope, type, clause, found)
        : selectReferring(scope, type, clause, end.type, found),
    )
  }
  return join(parts, ' UNION ALL ')
}

function* withoutProgress<T>(steps: Generator<number, T>): Steps<T> {
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
    yield
  }
}

function acceptMany(scope: SearchScope): SearchScope {
  return { ...scope, isFew: (rows, most = MANY) => scope.isFew(rows, most) }
}

function readFew(scope: SearchScope, search: TypeSearch, start: Start): readonly Row[] {
  const keys = search.sort.map(key => selectSortValue(scope.names, search.type, key))
  const source = openStart(scope, search, start)
  return readRows(scope, search, { ...source, columns: selectColumns(source.rid, keys), hasFirst: false })
}

function* readParts(scope: SearchScope, search: TypeSearch, start: Start): Steps<readonly Row[]> {
  let rows: readonly Row[] | undefined
  for (const part of divideStart(scope, start)) {
    if (rows) yield
    const found = readFew(scope, search, part)
    rows = rows ? mergeRows(search, rows, found) : found
  }
  return rows ?? []
}

/** The resources that a search starts with, in parts for one step each. */
function* divideStart(scope: SearchScope, start: Start): Generator<Start> {
  const { database, step, isFew } = scope
  if (isFew(start.rids, step)) return yield start
  const { text, values } = sql`SELECT DISTINCT rid FROM (${start.rids}) ORDER BY rid`
  const found = database.rows(text, values).map(([rid]) => Number(rid))
  for (let at = 0; at < found.length; at += step)
    yield { ...start, rids: selectNumbers(found.slice(at, at + step)) }
}

function selectNumbers(rids: readonly number[]): Sql {
  return sql`SELECT value AS rid FROM json_each(${JSON.stringify(rids)})`
}

/** Reads along walks. Yields the number of rows that are known to be on the page. */
function* readWalks(
  scope: SearchScope,
  search: TypeSearch,
  walks: readonly Walk[],
): Generator<number, readonly Row[]> {
  let rows: readonly Row[] | undefined
  for (const walk of walks)
    for (const range of listPageSteps(scope, search, walk)) {
      if (rows) yield walk.isSorted ? rows.length : 0
      const found = readStep(scope, search, walk, range)
      rows = walk.isSorted
        ? [...(rows ?? []), ...found].slice(0, search.limit)
        : mergeRows(search, rows ?? [], found)
      if (walk.isSorted && rows.length === search.limit) return rows
    }
  return rows ?? []
}

function listPageSteps(scope: SearchScope, search: TypeSearch, walk: Walk): Iterable<Sql> {
  return walk.isSorted && findsAll(scope, search.type, search.clauses) ? [walk.start] : listSteps(scope, walk)
}

/** The first rows of both, each once. */
function mergeRows({ sort, limit }: TypeSearch, rows: readonly Row[], found: readonly Row[]): readonly Row[] {
  const known = new Set(rows.map(([rid]) => rid))
  const fresh = found.filter(([rid = null]) => !known.has(rid))
  return [...rows, ...fresh].toSorted(compareRows(sort)).slice(0, limit)
}

/** Whether a search finds every resource of its type, so that it needs no more rows than it returns. */
function findsAll(
  { filter, care, compartment }: SearchScope,
  type: string,
  clauses: readonly SearchClause[],
): boolean {
  return clauses.length === 0 && filter(type) === 'everything' && !care && compartment === undefined
}

function readStep(scope: SearchScope, search: TypeSearch, walk: Walk, range: Sql): readonly Row[] {
  const [first, ...others] = search.sort.map(key => selectSortValue(scope.names, search.type, key))
  const keys = first ? [walk.value === undefined ? first : name(walk.value), ...others] : []
  return readRows(scope, search, {
    ...openWalk(search.clauses, walk, range),
    // A resource may have a value twice, in different systems for example.
    columns: sql`${name(walk.repeats ? 'DISTINCT ' : '')}${selectColumns(walk.rid, keys)}`,
    hasFirst: walk.value !== undefined,
  })
}

/** Rows of the index, or of `resource`, that a statement reads. */
interface Source {
  /** The tables, and the conditions that find the rows. The row `r` is that of the resource. */
  readonly from: Sql
  readonly rid: string
  /** The clauses that do not hold for all rows. */
  readonly clauses: readonly SearchClause[]
  readonly condition?: Sql | undefined
  /** Whether only current resources are in these rows. `r` may then have no other column than `rid`. */
  readonly isCurrent: boolean
}

interface SortedSource extends Source {
  readonly columns: Sql
  /** Whether every row has a value of the first sort key. */
  readonly hasFirst: boolean
}

function openStart(
  scope: SearchScope,
  { type, clauses, sort }: Pick<TypeSearch, 'type' | 'clauses' | 'sort'>,
  { rids, clause }: Start,
): Source {
  const others = clauses.filter(it => it !== clause)
  const hasValues = clause && clause.kind !== 'chain' && clause.kind !== 'has'
  const isSorted = sort.some(({ parameter }) => isColumn(parameter))
  if (hasValues && !isSorted && isDecidedByValues(scope, type, clauses))
    return {
      from: sql`(SELECT DISTINCT rid FROM (${rids})) r WHERE 1`,
      ...{ rid: 'r.rid', clauses: others, isCurrent: true },
    }
  return {
    // The plus keeps SQLite from starting with all resources of the type.
    from: sql`resource r WHERE r.rid IN (${rids}) AND +r.tid = ${scope.names.typeId(type)}`,
    ...{ rid: 'r.rid', clauses: others, isCurrent: false },
  }
}

function openWalk(clauses: readonly SearchClause[], walk: Walk, range: Sql): Source {
  const { index, join, where, rid, condition, clause } = walk
  const others = clauses.filter(it => it !== clause)
  return {
    from: sql`${index} ${join} WHERE ${all([where, range])}`,
    ...{ rid, clauses: others, condition, isCurrent: false },
  }
}

/** The conditions of the rows of a source. */
function buildSourceCondition(scope: SearchScope, type: string, source: Source): Sql {
  const { clauses, rid, condition, isCurrent } = source
  const build = isCurrent ? buildConditions : buildCurrentCondition
  return all([
    ...(condition ? [condition] : []),
    build(scope, type, clauses, 'r', scope.compartment, rid),
    buildCareCondition(scope, type),
  ])
}

function selectColumns(rid: string, keys: readonly Sql[]): Sql {
  return join([name(`${rid} AS rid`), ...keys.map((key, at) => sql`${key} AS ${name(`k${at}`)}`)], ', ')
}

function readRows(
  scope: SearchScope,
  { type, sort, after, limit }: TypeSearch,
  source: SortedSource,
): readonly Row[] {
  const { columns, from, rid, hasFirst } = source
  const { text, values } = sql`SELECT ${columns} FROM ${from} AND ${all([
    buildSourceCondition(scope, type, source),
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
function selectRows(scope: SearchScope, type: string, clauses: readonly SearchClause[]): Sql {
  const found = selectCurrent(scope, type, clauses, name('r.rid'), 'r', scope.compartment)
  return sql`${found} AND ${buildCareCondition(scope, type)}`
}

/** The number of resources that a search finds, in steps. */
export function* countRows(
  scope: SearchScope,
  type: string,
  clauses: readonly SearchClause[],
  most = Number.POSITIVE_INFINITY,
): Steps<number> {
  if (findsAll(scope, type, clauses) && Number.isFinite(most))
    return countUpTo(scope.database, selectRows(scope, type, clauses), most + 1)
  let count: number | undefined
  for (const found of yield* divideFound(scope, type, clauses)) {
    if (count !== undefined) yield
    count = (count ?? 0) + countUpTo(scope.database, found)
    if (count > most) break
  }
  return count ?? 0
}

/** The resources that a search finds, as subqueries for one step each. None is in two of them. */
export function* divideFound(
  scope: SearchScope,
  type: string,
  clauses: readonly SearchClause[],
): Steps<Iterable<Sql>> {
  const sources = yield* findSources(scope, type, clauses)
  return Iterator.from(sources).map(
    source =>
      sql`SELECT DISTINCT ${name(source.rid)} AS rid FROM ${source.from} AND ${buildSourceCondition(scope, type, source)}`,
  )
}

function* findSources(
  scope: SearchScope,
  type: string,
  clauses: readonly SearchClause[],
): Steps<Iterable<Source>> {
  const start = yield* findLargeStart(scope, type, clauses)
  return start
    ? listStarted(scope, type, clauses, start)
    : listWalked(scope, type, clauses, yield* findCountWalk(scope, type, clauses))
}

function* listStarted(
  scope: SearchScope,
  type: string,
  clauses: readonly SearchClause[],
  start: Start,
): Generator<Source> {
  for (const part of divideStart(scope, start)) yield openStart(scope, { type, clauses, sort: [] }, part)
}

function* listWalked(
  scope: SearchScope,
  type: string,
  clauses: readonly SearchClause[],
  walk: Walk,
): Generator<Source> {
  const isCurrent = isDecidedByValues(scope, type, clauses)
  const step = findsAll(scope, type, clauses) ? scope.step * ROWS_COUNTED_AT_ONCE : scope.step
  for (const range of listSteps({ ...scope, step }, walk))
    yield { ...openWalk(clauses, isCurrent ? { ...walk, join: sql`` } : walk, range), isCurrent }
}

/** The shortest walk that passes each resource in one step only. */
function* findCountWalk(scope: SearchScope, type: string, clauses: readonly SearchClause[]): Steps<Walk> {
  const [walk, ...others] = (yield* findShortest(scope, type, clauses, Number.POSITIVE_INFINITY)) ?? []
  const isInOneStep = walk?.position.join() === walk?.rid && others.length === 0
  return walk && isInOneStep ? walk : walkRids(scope.names, type, [], undefined)
}
