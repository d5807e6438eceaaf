import { listCareDateParameters, type SearchClause, type SortKey } from '../../../fhir/index.ts'
import type { SqlValue } from '../repository/database.ts'
import { findShortest } from './clause-walk.ts'
import { countUpTo, type SearchScope } from './search-scope.ts'
import { buildCurrentCondition, findStart, type Start, selectCurrent } from './select-current.ts'
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

/**
 * The first rows of a search in its order. If it starts with few resources, one query finds and sorts them. Otherwise it
 * reads the index of the first sort key, or all resources of the type, in steps until the page is full. If the page does
 * not become full, because matches are rare, it reads the matches of the most selective clause instead.
 */
export function* findRows(scope: SearchScope, search: TypeSearch): Steps<readonly Row[]> {
  const few = findStart(scope, search.type, search.clauses, scope.compartment)
  if (few) return readFew(scope, search, few)
  const walked = readWalks(scope, search, listWalks(scope.names, search.type, search))
  let next = PATIENCE
  for (let step = 1; ; step++) {
    const { done, value } = walked.next()
    if (done) return value
    yield
    if (step !== next) continue
    next *= GROWTH
    if (value * GROWTH >= search.limit) continue
    const shorter = collectRows(scope, search, step * scope.step * ROWS_IN_ORDER)
    if (shorter) return yield* shorter
  }
}

/** The rows of a search from the matches of one clause or of the access filter; undefined if these are too many. */
function collectRows(
  scope: SearchScope,
  search: TypeSearch,
  most: number,
): Steps<readonly Row[]> | undefined {
  const many = findStart(acceptMany(scope), search.type, search.clauses, scope.compartment)
  if (many) return readMany(scope, search, many)
  const walks = findShortest(scope, search.type, search.clauses, most)
  return walks && withoutProgress(readWalks(scope, search, walks))
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

function readFew(scope: SearchScope, search: TypeSearch, { rids, clause }: Start): readonly Row[] {
  const { sort, type, clauses } = search
  const keys = sort.map(key => selectSortValue(scope.names, type, key))
  // The plus keeps SQLite from starting with all resources of the type.
  const from = sql`resource r WHERE r.rid IN (${rids}) AND +r.tid = ${scope.names.typeId(type)}`
  const others = { ...search, clauses: clauses.filter(it => it !== clause) }
  return readRows(scope, others, { columns: selectColumns('r.rid', keys), from, rid: 'r.rid' })
}

function* readMany(scope: SearchScope, search: TypeSearch, start: Start): Steps<readonly Row[]> {
  let rows: readonly Row[] | undefined
  for (const part of divideStart(scope, start)) {
    if (rows) yield
    rows = mergeRows(search, rows ?? [], readFew(scope, search, part))
  }
  return rows ?? []
}

/** The resources that a search starts with, in parts for one step each. */
function* divideStart({ database, step }: SearchScope, { rids, clause }: Start): Generator<Start> {
  const { text, values } = sql`SELECT DISTINCT rid FROM (${rids}) ORDER BY rid`
  const found = database.rows(text, values).map(([rid]) => Number(rid))
  for (let at = 0; at < found.length; at += step) {
    const part = sql`SELECT value FROM json_each(${JSON.stringify(found.slice(at, at + step))})`
    yield { rids: part, ...(clause && { clause }) }
  }
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
  return walk.isSorted && findsAll(scope, search) ? [walk.start] : listSteps(scope, walk)
}

/** The first rows of both, each once. */
function mergeRows({ sort, limit }: TypeSearch, rows: readonly Row[], found: readonly Row[]): readonly Row[] {
  const known = new Set(rows.map(([rid]) => rid))
  const fresh = found.filter(([rid = null]) => !known.has(rid))
  return [...rows, ...fresh].toSorted(compareRows(sort)).slice(0, limit)
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
    columns: sql`${name(walk.repeats ? 'DISTINCT ' : '')}${selectColumns(walk.rid, keys)}`,
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
    buildCurrentCondition(scope, type, clauses, 'r', scope.compartment, rid),
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

/** The number of resources that a search finds, in steps. */
export function* countRows(
  scope: SearchScope,
  type: string,
  clauses: readonly SearchClause[],
): Steps<number> {
  let count: number | undefined
  for (const rids of listCounted(scope, type, clauses)) {
    if (count !== undefined) yield
    count = (count ?? 0) + countUpTo(scope.database, rids)
  }
  return count ?? 0
}

/** The resources that a search finds, as subqueries that have none in common. */
function* listCounted(
  scope: SearchScope,
  type: string,
  clauses: readonly SearchClause[],
): Generator<Sql, void> {
  const start = findStart(acceptMany(scope), type, clauses, scope.compartment)
  if (start) {
    for (const part of divideStart(scope, start)) yield selectStarted(scope, type, clauses, part)
    return
  }
  const walk = findCountWalk(scope, type, clauses)
  for (const range of listSteps(scope, walk)) yield selectStep(scope, type, clauses, walk, range)
}

function selectStarted(
  scope: SearchScope,
  type: string,
  clauses: readonly SearchClause[],
  { rids, clause }: Start,
): Sql {
  const others = clauses.filter(it => it !== clause)
  // The plus keeps SQLite from starting with all resources of the type.
  return sql`SELECT r.rid FROM resource r WHERE r.rid IN (${rids}) AND +r.tid = ${scope.names.typeId(type)}
    AND ${buildCurrentCondition(scope, type, others, 'r', scope.compartment)} AND ${buildCareCondition(scope, type)}`
}

/** The shortest walk that passes each resource in one step only. */
function findCountWalk(scope: SearchScope, type: string, clauses: readonly SearchClause[]): Walk {
  const [walk, ...others] = findShortest(scope, type, clauses, Number.POSITIVE_INFINITY) ?? []
  const isInOneStep = walk?.position.join() === walk?.rid && others.length === 0
  return walk && isInOneStep ? walk : walkRids(scope.names, type, [], undefined)
}

function selectStep(
  scope: SearchScope,
  type: string,
  clauses: readonly SearchClause[],
  walk: Walk,
  range: Sql,
): Sql {
  return sql`SELECT DISTINCT ${name(walk.rid)} FROM ${walk.index} ${walk.join} WHERE ${all([
    walk.where,
    range,
    buildCurrentCondition(scope, type, clauses, 'r', scope.compartment, walk.rid),
    buildCareCondition(scope, type),
  ])}`
}
