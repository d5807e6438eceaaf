import type { SearchClause } from '../../../../fhir/index.ts'
import { SCAN_WEIGHT } from '../../limits.ts'

/** The values that a resource is compared with. */
export function countValues(clause: SearchClause): number {
  switch (clause.kind) {
    case 'chain':
      return clause.targets.reduce((sum, target) => sum + 1 + countValues(target.clause), 0)
    case 'has':
      return 1 + countValues(clause.clause)
    case 'missing':
      return 1
    case 'part':
      return clause.values.length * SCAN_WEIGHT
    case 'string':
      return clause.values.length * (clause.match === 'contains' ? SCAN_WEIGHT : 1)
    case 'uri':
      return clause.values.length * (clause.match === 'above' ? SCAN_WEIGHT : 1)
    default:
      return clause.values.length
  }
}

/** The subqueries by which a resource is compared: one for each parameter, and for each type that a chain leads to. */
export function countSubqueries(clause: SearchClause): number {
  switch (clause.kind) {
    case 'chain':
      return clause.targets.reduce((sum, target) => sum + 1 + countSubqueries(target.clause), 0)
    case 'has':
      return 1 + countSubqueries(clause.clause)
    default:
      return 1
  }
}
