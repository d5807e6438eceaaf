import type { TypeQuery } from '../../../../fhir/index.ts'
import { findShortest } from './clause-walk.ts'
import { isDecidedByValues } from './current-condition.ts'
import { divideStart, findLargeStart } from './find-rows.ts'
import { buildSourceCondition, findsAll, openStart, openWalk, type RowSource } from './row-source.ts'
import { countUpTo, fitStep, type SearchScope, type Steps } from './search-scope.ts'
import { selectCurrent } from './select-current.ts'
import { name, type Sql, sql } from './sql.ts'
import { listSteps, type Walk, walkRids } from './walk.ts'

/** So many rows without conditions are counted in the time in which one with conditions is read. */
const ROWS_COUNTED_AT_ONCE = 4

/** The number of resources that a search finds, in steps. */
export function* countRows(
  scope: SearchScope,
  query: TypeQuery,
  most = Number.POSITIVE_INFINITY,
): Steps<number> {
  if (findsAll(scope, query) && Number.isFinite(most))
    return countUpTo(scope.database, selectCurrent(scope, query, 'r'), most + 1)
  let count: number | undefined
  for (const found of yield* divideFound(scope, query)) {
    if (count !== undefined) yield fitStep(scope, query).stepWork
    count = (count ?? 0) + countUpTo(scope.database, found)
    if (count > most) break
  }
  return count ?? 0
}

/** The resources that a search finds, as one subquery for each step. No resource is in two of them. */
export function* divideFound(whole: SearchScope, query: TypeQuery): Steps<Iterable<Sql>> {
  const scope = fitStep(whole, query)
  const start = yield* findLargeStart(scope, query)
  const sources = start
    ? divideStart(scope, start).map(part => openStart(scope, query, part))
    : listWalked(scope, query, yield* findCountWalk(scope, query))
  return sources.map(
    source =>
      sql`SELECT DISTINCT ${name(source.rid)} AS rid FROM ${source.from} AND ${buildSourceCondition(scope, query.type, source)}`,
  )
}

function* listWalked(scope: SearchScope, query: TypeQuery, walk: Walk): Generator<RowSource> {
  const isCurrent = isDecidedByValues(scope, query)
  const step = findsAll(scope, query) ? scope.step * ROWS_COUNTED_AT_ONCE : scope.step
  for (const range of listSteps({ ...scope, step }, walk))
    yield { ...openWalk(query.clauses, isCurrent ? { ...walk, join: sql`` } : walk, range), isCurrent }
}

/** The shortest walk that passes each resource in one step only. */
function* findCountWalk(scope: SearchScope, query: TypeQuery): Steps<Walk> {
  const [walk, ...others] = (yield* findShortest(scope, query, Number.POSITIVE_INFINITY)) ?? []
  const isInOneStep = walk?.position.join() === walk?.rid && others.length === 0
  return walk && isInOneStep ? walk : walkRids(scope.names, query.type, [], undefined)
}
