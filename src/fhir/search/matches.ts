import { findSearchParameter } from '../definitions.ts'
import type { Resource, SearchParameter } from '../resource.ts'
import type { SearchClause } from './clause.ts'
import { holds } from './compare.ts'
import type { IndexEntry } from './entry.ts'
import { indexParameter } from './index-entries.ts'
import { parseSearch } from './parse-search.ts'

/**
 * Whether a search by this one parameter finds the resource. Undefined if that is unknown: an unknown parameter, an
 * unsupported modifier, an invalid value, or a chain. An access check must then refuse.
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

/**
 * The same for several parameters of one resource, whose entries are determined once for each parameter. Parameters that
 * recur, such as those of a granular scope, are parsed once.
 */
export function createMatcher(
  resource: Resource,
  baseUrl: string,
): (parameter: readonly [name: string, value: string]) => boolean | undefined {
  const found = new Map<SearchParameter, readonly IndexEntry[]>()
  return pair => {
    const clause = readClause(resource.resourceType, pair, baseUrl)
    if (clause.kind === 'error' || clause.kind === 'chain' || clause.kind === 'has') return undefined
    const parameter = findSearchParameter(resource.resourceType, clause.parameter)
    if (parameter === undefined) return undefined
    const entries = found.get(parameter) ?? indexParameter(resource, parameter, baseUrl)
    found.set(parameter, entries)
    return holds(clause, entries)
  }
}

type Clause = ReturnType<typeof parseSearch>

const clauses = new WeakMap<readonly [string, string], Map<string, Clause>>()

function readClause(type: string, pair: readonly [name: string, value: string], baseUrl: string): Clause {
  const known = clauses.get(pair) ?? new Map<string, Clause>()
  clauses.set(pair, known)
  const key = `${type} ${baseUrl}`
  const clause = known.get(key) ?? parseSearch(type, ...pair, baseUrl)
  known.set(key, clause)
  return clause
}

export function matchesClause(
  resource: Resource,
  clause: SearchClause,
  baseUrl: string,
): boolean | undefined {
  if (clause.kind === 'chain' || clause.kind === 'has') return undefined
  const parameter = findSearchParameter(resource.resourceType, clause.parameter)
  return parameter === undefined ? undefined : holds(clause, indexParameter(resource, parameter, baseUrl))
}
