import type { SearchClause } from '../../../fhir/index.ts'
import { findShortest } from './clause-walk.ts'
import { isDecidedByValues } from './current-condition.ts'
import { divideStart, findLargeStart } from './find-rows.ts'
import { buildSourceCondition, findsAll, openStart, openWalk, type Source } from './row-source.ts'
import type { Steps } from './search-scope.ts'
import { countUpTo, type SearchScope } from './search-scope.ts'
import { type Start, selectCurrent } from './select-current.ts'
import { name, type Sql, sql } from './sql.ts'
import { listSteps, type Walk, walkRids } from './walk.ts'

/** So many rows without conditions are counted in the time in which one with conditions is read. */
const ROWS_COUNTED_AT_ONCE = 4

/** The number of resources that a search finds, in steps. */
export function* countRows(
  scope: SearchScope,
  type: string,
  clauses: readonly SearchClause[],
  most = Number.POSITIVE_INFINITY,
): Steps<number> {
  if (findsAll(scope, type, clauses) && Number.isFinite(most))
    return countUpTo(scope.database, selectCurrent(scope, type, clauses, name('r.rid'), 'r'), most + 1)
  let count: number | undefined
  for (const found of yield* divideFound(scope, type, clauses)) {
    if (count !== undefined) yield
    count = (count ?? 0) + countUpTo(scope.database, found)
    if (count > most) break
  }
  return count ?? 0
}

/** The resources that a search finds, as one subquery for each step. No resource is in two of them. */
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
