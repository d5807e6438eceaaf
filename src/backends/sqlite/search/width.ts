import { fail, type Query, type SearchClause } from '../../../fhir/index.ts'
import { INCLUDES, QUERY_VALUES, SCAN_WEIGHT, SORT_KEYS } from '../limits.ts'
import type { Problem } from '../problem.ts'

/** Why a query asks for too much at once. */
export function findExcess({ types, sort, includes }: Query): Problem | undefined {
  for (const { clauses } of types)
    if (clauses.reduce((sum, clause) => sum + widthOf(clause), 0) > QUERY_VALUES)
      return costly(
        `Cannot search by more than ${QUERY_VALUES} values, or by a chain through so many types: name the type`,
      )
  if (sort.length > SORT_KEYS) return costly(`Cannot sort by more than ${SORT_KEYS} parameters`)
  return includes.length > INCLUDES ? costly(`Cannot include by more than ${INCLUDES} parameters`) : undefined
}

function widthOf(clause: SearchClause): number {
  switch (clause.kind) {
    case 'chain':
      return clause.targets.reduce((sum, target) => sum + 1 + widthOf(target.clause), 0)
    case 'has':
      return 1 + widthOf(clause.clause)
    case 'missing':
      return 1
    case 'string':
      return clause.values.length * (clause.match === 'contains' ? SCAN_WEIGHT : 1)
    case 'uri':
      return clause.values.length * (clause.match === 'above' ? SCAN_WEIGHT : 1)
    default:
      return clause.values.length
  }
}

function costly(text: string): Problem {
  return fail({ problem: 'too-costly', text })
}
