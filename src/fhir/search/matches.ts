import { searchParameter } from '../definitions.ts'
import type { Resource } from '../r4.ts'
import type { SearchClause } from './clause.ts'
import { holds } from './compare.ts'
import { entriesOf } from './index-entries.ts'
import { parseSearch } from './parse-search.ts'

/**
 * Whether a search by this one parameter would find the resource. Undefined when that cannot be told: an unknown
 * parameter, an unsupported modifier, a bad value, or a chain. Who guards by it must then refuse.
 */
export function matches(
  resource: Resource,
  name: string,
  value: string,
  baseUrl: string,
): boolean | undefined {
  const clause = parseSearch(resource.resourceType, name, value, baseUrl)
  return clause.kind === 'error' ? undefined : matchesClause(resource, clause, baseUrl)
}

export function matchesClause(
  resource: Resource,
  clause: SearchClause,
  baseUrl: string,
): boolean | undefined {
  if (clause.kind === 'chain' || clause.kind === 'has') return undefined
  const parameter = searchParameter(resource.resourceType, clause.parameter)
  return parameter === undefined ? undefined : holds(clause, entriesOf(resource, parameter, baseUrl))
}
