import {
  listCareDateParameters,
  type SearchClause,
  type SortKey,
  type TypeQuery,
} from '../../../../fhir/index.ts'
import { buildAccessCondition } from './access-condition.ts'
import { buildConditions, isDecidedByValues } from './current-condition.ts'
import { isColumn } from './own-condition.ts'
import type { SearchScope } from './search-scope.ts'
import type { Start } from './select-current.ts'
import { all, list, name, type Sql, sql } from './sql.ts'
import type { Walk } from './walk.ts'

/** Rows of the index, or of `resource`, that a statement reads. */
export interface RowSource {
  /** The tables, and the conditions that find the rows. The row `r` is that of the resource. */
  readonly from: Sql
  readonly rid: string
  /** The clauses that do not hold for all rows. */
  readonly clauses: readonly SearchClause[]
  readonly condition?: Sql | undefined
  /** Whether all these rows are of current resources. `r` then may have no column but `rid`. */
  readonly isCurrent: boolean
}

export function openStart(
  scope: SearchScope,
  query: TypeQuery,
  { rids, clause }: Start,
  sort: readonly SortKey[] = [],
): RowSource {
  const hasValues = clause && clause.kind !== 'chain' && clause.kind !== 'has'
  const isSorted = sort.some(({ parameter }) => isColumn(parameter))
  const isCurrent = hasValues === true && !isSorted && isDecidedByValues(scope, query)
  return {
    from: isCurrent
      ? sql`(SELECT DISTINCT rid FROM (${rids})) r WHERE 1`
      : // The plus keeps SQLite from starting with all resources of the type.
        sql`resource r WHERE r.rid IN (${rids}) AND +r.tid = ${scope.names.typeId(query.type)}`,
    rid: 'r.rid',
    clauses: query.clauses.filter(it => it !== clause),
    isCurrent,
  }
}

export function openWalk(clauses: readonly SearchClause[], walk: Walk, range: Sql): RowSource {
  const { index, join, where, rid, condition, clause } = walk
  return {
    from: sql`${index} ${join} WHERE ${all([where, range])}`,
    rid,
    clauses: clauses.filter(it => it !== clause),
    condition,
    isCurrent: false,
  }
}

/** All conditions that the rows of a source must still meet. */
export function buildSourceCondition(scope: SearchScope, type: string, source: RowSource): Sql {
  const { clauses, rid, condition, isCurrent } = source
  const { compartment } = scope
  return all([
    ...(condition ? [condition] : []),
    ...(isCurrent ? [] : [name('r.deleted = 0')]),
    buildConditions(scope, { type, clauses }, 'r', rid),
    ...(compartment === undefined
      ? []
      : [buildAccessCondition(scope, type, [{ patient: compartment }], 'r')]),
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
export function findsAll({ filter, care, compartment }: SearchScope, { type, clauses }: TypeQuery): boolean {
  return clauses.length === 0 && filter(type) === 'everything' && !care && compartment === undefined
}
