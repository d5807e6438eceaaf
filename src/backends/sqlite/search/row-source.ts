import { listCareDateParameters, type SearchClause, type SortKey } from '../../../fhir/index.ts'
import { buildConditions, buildCurrentCondition, isDecidedByValues } from './current-condition.ts'
import { isColumn } from './own-condition.ts'
import type { SearchScope } from './search-scope.ts'
import type { Start } from './select-current.ts'
import { all, list, name, type Sql, sql } from './sql.ts'
import type { Walk } from './walk.ts'

/** Rows of the index, or of `resource`, that a statement reads. */
export interface Source {
  /** The tables, and the conditions that find the rows. The row `r` is that of the resource. */
  readonly from: Sql
  readonly rid: string
  /** The clauses that do not hold for all rows. */
  readonly clauses: readonly SearchClause[]
  readonly condition?: Sql | undefined
  /** Whether all these rows are of current resources. `r` then may have no column but `rid`. */
  readonly isCurrent: boolean
}

interface SortedClauses {
  readonly type: string
  readonly clauses: readonly SearchClause[]
  readonly sort: readonly SortKey[]
}

export function openStart(
  scope: SearchScope,
  { type, clauses, sort }: SortedClauses,
  { rids, clause }: Start,
): Source {
  const others = clauses.filter(it => it !== clause)
  const hasValues = clause && clause.kind !== 'chain' && clause.kind !== 'has'
  const isSorted = sort.some(({ parameter }) => isColumn(parameter))
  if (hasValues && !isSorted && isDecidedByValues(scope, type, clauses))
    return {
      from: sql`(SELECT DISTINCT rid FROM (${rids})) r WHERE 1`,
      rid: 'r.rid',
      clauses: others,
      isCurrent: true,
    }
  return {
    // The plus keeps SQLite from starting with all resources of the type.
    from: sql`resource r WHERE r.rid IN (${rids}) AND +r.tid = ${scope.names.typeId(type)}`,
    rid: 'r.rid',
    clauses: others,
    isCurrent: false,
  }
}

export function openWalk(clauses: readonly SearchClause[], walk: Walk, range: Sql): Source {
  const { index, join, where, rid, condition, clause } = walk
  const others = clauses.filter(it => it !== clause)
  return {
    from: sql`${index} ${join} WHERE ${all([where, range])}`,
    rid,
    clauses: others,
    condition,
    isCurrent: false,
  }
}

/** All conditions that the rows of a source must still meet. */
export function buildSourceCondition(scope: SearchScope, type: string, source: Source): Sql {
  const { clauses, rid, condition, isCurrent } = source
  const build = isCurrent ? buildConditions : buildCurrentCondition
  return all([
    ...(condition ? [condition] : []),
    build(scope, type, clauses, 'r', scope.compartment, rid),
    buildCareCondition(scope, type),
  ])
}

/** Whether the resource in the row `r` is in the range of care, as `isInCareRange` checks it. */
function buildCareCondition({ names, care }: SearchScope, type: string): Sql {
  const dates = listCareDateParameters(type)
  if (!care || dates.length === 0) return name('1')
  const nids = list(dates.map(code => names.parameterId(type, code)))
  const entry = sql`SELECT 1 FROM date e WHERE e.rid = r.rid AND +e.nid IN (${nids})`
  return sql`(EXISTS (${entry} AND e.low <= ${care.high} AND e.high >= ${care.low}) OR NOT EXISTS (${entry}))`
}

/** Whether a search finds every resource of its type, so that it needs no more rows than it returns. */
export function findsAll(
  { filter, care, compartment }: SearchScope,
  type: string,
  clauses: readonly SearchClause[],
): boolean {
  return clauses.length === 0 && filter(type) === 'everything' && !care && compartment === undefined
}
