import type { ChainClause, HasClause, TypeQuery } from '../../../../fhir/index.ts'
import type { SqlValue } from '../../repository/database.ts'
import { findShortest } from './clause-walk.ts'
import { toQuery } from './current-condition.ts'
import { divideByName } from './name-search.ts'
import { buildSourceCondition, findsAll, openStart, openWalk, type RowSource } from './row-source.ts'
import { fitStep, type SearchScope, type Steps } from './search-scope.ts'
import { FEW_LINKS, findStart, type Start, selectReferred, selectReferring } from './select-current.ts'
import { buildAfter, buildOrder, compareRows, selectSortValue } from './sort-order.ts'
import { all, join, name, type Sql, sql, union } from './sql.ts'
import { listSteps, listWalks, type Sorted, type Walk } from './walk.ts'

/** `rid`, then the values of the sort keys. */
export type SortedRow = readonly SqlValue[]

/** A search of one type. */
export interface TypeSearch extends TypeQuery, Sorted {
  readonly limit: number
}

/** The steps after which a search first considers reading another index, whose order is not its own. */
const PATIENCE = 2
/** How often it considers it again: after four times as many steps. A page that is a quarter full is full by then. */
const GROWTH = 4
/** So many rows are read in the order of the search in the time in which one is read in another order. */
const ROWS_IN_ORDER = 12
const MAX_START_RESOURCES = 10_000

/**
 * The first rows of a search in its order. If it starts with few resources, one query finds and sorts them. Otherwise it
 * reads the index of the first sort key, or all resources of the type, in steps until the page is full. If the page does
 * not become full, because matches are rare, it reads the matches of the most selective clause instead.
 */
export function* findRows(whole: SearchScope, search: TypeSearch): Steps<readonly SortedRow[]> {
  const scope = fitStep(whole, search)
  const named = divideByName(search)
  const few = findStart(scope, named?.withoutName ?? search, scope.compartment)
  if (few) return yield* readParts(scope, search, few)
  if (!named) return yield* findInOrder(scope, search)
  const rows = yield* findRows(scope, named.byOtherWord)
  return mergeRows(search, rows, yield* findInOrder(scope, named.byFamily))
}

function* findInOrder(scope: SearchScope, search: TypeSearch): Steps<readonly SortedRow[]> {
  const walked = readWalks(scope, search, listWalks(scope.names, search.type, search))
  let next = PATIENCE
  for (let step = 1; ; step++) {
    const { done, value } = walked.next()
    if (done) return value
    yield scope.stepWork
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
): Steps<readonly SortedRow[] | undefined> {
  const many = yield* findLargeStart(scope, search)
  if (many) return yield* readParts(scope, search, many)
  const walks = yield* findShortest(scope, search, most)
  return walks && (yield* withoutProgress(scope, readWalks(scope, search, walks)))
}

/** The resources that a search starts with if these may be many. */
export function* findLargeStart(scope: SearchScope, query: TypeQuery): Steps<Start | undefined> {
  const isFew: SearchScope['isFew'] = (rows, most = MAX_START_RESOURCES) => scope.isFew(rows, most)
  return findStart({ ...scope, isFew }, query, scope.compartment) ?? (yield* findLinkedStart(scope, query))
}

/** The resources of a chain whose other end has few resources within the caller's access. */
function* findLinkedStart(scope: SearchScope, { type, clauses }: TypeQuery): Steps<Start | undefined> {
  for (const clause of clauses) {
    if (clause.kind !== 'chain' && clause.kind !== 'has') continue
    const rids = yield* findLinked(scope, type, clause)
    if (rids && scope.isFew(rids, MAX_START_RESOURCES)) return { rids, clause }
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
    const search = { ...toQuery(end), sort: [], after: undefined, limit: FEW_LINKS + 1 }
    const rows = yield* findRows({ ...scope, compartment: undefined, care: undefined }, search)
    if (rows.length > FEW_LINKS) return undefined
    const found = selectNumbers(rows.map(([rid]) => Number(rid)))
    parts.push(
      clause.kind === 'has'
        ? selectReferred(scope, type, clause, found)
        : selectReferring(scope, type, clause, end.type, found),
    )
  }
  return union(parts)
}

/** The rows whose resources are still found. */
export function confirmRows(
  scope: SearchScope,
  types: readonly TypeQuery[],
  rows: readonly SortedRow[],
): readonly SortedRow[] {
  const rids = selectNumbers(rows.map(([rid]) => Number(rid)))
  const found = new Set<SqlValue>()
  for (const query of types) {
    const source = openStart(scope, query, { rids })
    const { text, values } =
      sql`SELECT r.rid FROM ${source.from} AND ${buildSourceCondition(scope, query.type, source)}`
    for (const [rid = null] of scope.database.rows(text, values)) found.add(rid)
  }
  return rows.filter(([rid = null]) => found.has(rid))
}

function* withoutProgress<T>({ stepWork }: SearchScope, steps: Generator<number, T>): Steps<T> {
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
    yield stepWork
  }
}

function readFew(scope: SearchScope, search: TypeSearch, start: Start): readonly SortedRow[] {
  const keys = search.sort.map(key => selectSortValue(scope.names, search.type, key))
  const source = openStart(scope, search, start, search.sort)
  return readRows(scope, search, { ...source, columns: selectColumns(source.rid, keys), hasFirst: false })
}

function* readParts(scope: SearchScope, search: TypeSearch, start: Start): Steps<readonly SortedRow[]> {
  let rows: readonly SortedRow[] | undefined
  for (const part of divideStart(scope, start)) {
    if (rows) yield scope.stepWork
    const found = readFew(scope, search, part)
    rows = rows ? mergeRows(search, rows, found) : found
  }
  return rows ?? []
}

/** The resources that a search starts with, in parts for one step each. */
export function* divideStart(scope: SearchScope, start: Start): Generator<Start> {
  const { step, isFew } = scope
  if (isFew(start.rids, step)) return yield start
  const pages = start.isOfPatient ? readOfPatient(scope, start) : [readAll(scope, start)]
  for (const found of pages)
    for (let at = 0; at < found.length; at += step)
      yield { ...start, rids: selectNumbers(found.slice(at, at + step)) }
}

function readAll({ database }: SearchScope, { rids }: Start): readonly number[] {
  const { text, values } = sql`SELECT DISTINCT rid FROM (${rids}) ORDER BY rid`
  return database.rows(text, values).map(([rid]) => Number(rid))
}

/** The resources of one patient may be any number. An index has them in this order. */
function* readOfPatient({ database, step }: SearchScope, { rids }: Start): Generator<readonly number[]> {
  for (let last = 0; ; ) {
    const { text, values } =
      sql`SELECT DISTINCT rid FROM (${rids}) WHERE rid > ${last} ORDER BY rid LIMIT ${step}`
    const found = database.rows(text, values).map(([rid]) => Number(rid))
    yield found
    if (found.length < step) return
    last = found.at(-1) ?? last
  }
}

function selectNumbers(rids: readonly number[]): Sql {
  return sql`SELECT value AS rid FROM json_each(${JSON.stringify(rids)})`
}

/** Reads along walks. Yields the number of rows that are known to be on the page. */
function* readWalks(
  scope: SearchScope,
  search: TypeSearch,
  walks: readonly Walk[],
): Generator<number, readonly SortedRow[]> {
  let rows: readonly SortedRow[] | undefined
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
function mergeRows(
  { sort, limit }: TypeSearch,
  rows: readonly SortedRow[],
  found: readonly SortedRow[],
): readonly SortedRow[] {
  const known = new Set(rows.map(([rid]) => rid))
  const fresh = found.filter(([rid = null]) => !known.has(rid))
  return [...rows, ...fresh].toSorted(compareRows(sort)).slice(0, limit)
}

function readStep(scope: SearchScope, search: TypeSearch, walk: Walk, range: Sql): readonly SortedRow[] {
  const [first, ...others] = search.sort.map(key => selectSortValue(scope.names, search.type, key))
  const keys = first ? [walk.value === undefined ? first : name(walk.value), ...others] : []
  return readRows(scope, search, {
    ...openWalk(search.clauses, walk, range),
    // A resource may have a value twice, in different systems for example.
    columns: sql`${name(walk.repeats ? 'DISTINCT ' : '')}${selectColumns(walk.rid, keys)}`,
    hasFirst: walk.value !== undefined,
  })
}

interface SortedSource extends RowSource {
  readonly columns: Sql
  /** Whether every row has a value of the first sort key. */
  readonly hasFirst: boolean
}

function selectColumns(rid: string, keys: readonly Sql[]): Sql {
  return join([name(`${rid} AS rid`), ...keys.map((key, at) => sql`${key} AS ${name(`k${at}`)}`)], ', ')
}

function readRows(
  scope: SearchScope,
  { type, sort, after, limit }: TypeSearch,
  source: SortedSource,
): readonly SortedRow[] {
  const { columns, from, rid, hasFirst } = source
  const { text, values } = sql`SELECT ${columns} FROM ${from} AND ${all([
    buildSourceCondition(scope, type, source),
    ...(after ? [buildAfter(sort, name(rid), after)] : []),
  ])} ORDER BY ${buildOrder(sort, hasFirst)} LIMIT ${limit}`
  return scope.database.rows(text, values)
}
