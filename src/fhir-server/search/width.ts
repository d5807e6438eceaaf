import { fail, type Query, type SearchClause } from '../../fhir/index.ts'
import type { Problem } from '../problem.ts'

// SQLite takes 32,766 values and expressions 1,000 deep; long before that a search is a burden to everybody else.
const MAX_VALUES = 400
const MAX_SORT_KEYS = 8
const MAX_INCLUDES = 200

/** Why a query asks for too much at once. */
export function tooWide({ types, sort, includes }: Query): Problem | undefined {
  for (const { clauses } of types)
    if (clauses.reduce((sum, clause) => sum + widthOf(clause), 0) > MAX_VALUES)
      return costly(
        `Cannot search by over ${MAX_VALUES} values, or by a chain over so many types: name the type`,
      )
  if (sort.length > MAX_SORT_KEYS) return costly(`Cannot sort by over ${MAX_SORT_KEYS} parameters`)
  return includes.length > MAX_INCLUDES
    ? costly(`Cannot include by over ${MAX_INCLUDES} parameters`)
    : undefined
}

function widthOf(clause: SearchClause): number {
  switch (clause.kind) {
    case 'chain':
      return clause.targets.reduce((sum, target) => sum + 1 + widthOf(target.clause), 0)
    case 'has':
      return 1 + widthOf(clause.clause)
    case 'missing':
      return 1
    default:
      return clause.values.length
  }
}

function costly(text: string): Problem {
  return fail({ problem: 'too-costly', text })
}
