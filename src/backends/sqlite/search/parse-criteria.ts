import { isFailure } from '../../../core/index.ts'
import {
  failFor,
  type Params,
  parseQuery,
  type Query,
  type QueryReading,
  readCareRange,
  resourceTypes,
} from '../../../fhir/index.ts'
import { type Failure, type FhirRequest, findNamedTypes, type Search } from '../../../fhir-api/index.ts'
import { hasCompartment } from '../../../smart/index.ts'
import { INCLUDES, PARAMETER_WEIGHT, QUERY_VALUES, SORT_KEYS } from '../limits.ts'
import type { Repository } from '../repository/repository.ts'
import { countValues } from './planner/count-values.ts'
import { createSearchScope } from './planner/search-scope.ts'
import { findStoredTypes, isOfPatients } from './planner/stored-types.ts'

/** A query without the types of which the caller finds nothing. */
export interface Criteria extends Query {
  /** Whether the access filters of all types are such that a total may be cheap to count, also of those that were left out. */
  readonly isCountable: boolean
}

export function parseCriteria(repository: Repository, request: FhirRequest<Search>): Criteria | Failure {
  const { interaction, preferences } = request
  const types = findTypes(request)
  if (isFailure(types)) return types
  const query = parseBounded(types, findCriteria(interaction), {
    baseUrl: repository.baseUrl,
    lenient: preferences.lenient,
    work: request.work,
    chains: request.chains,
  })
  // The query is parsed for all types before, so that a failure reveals nothing about the data.
  if (isFailure(query)) return query
  return types.length === 1 ? { ...query, isCountable: true } : keepStoredTypes(repository, request, query)
}

/** A query, unless it is too costly. */
export function parseBounded(
  types: readonly string[],
  params: Params,
  reading: QueryReading,
): Query | Failure {
  const query = parseQuery(types, params, reading)
  return isFailure(query) ? query : (findExcess(query) ?? query)
}

function findExcess({ types, sort, includes }: Query): Failure | undefined {
  for (const { clauses } of types)
    if (clauses.reduce((sum, clause) => sum + PARAMETER_WEIGHT + countValues(clause), 0) > QUERY_VALUES)
      return failFor('query-values-too-many', { most: QUERY_VALUES, weight: PARAMETER_WEIGHT })
  if (sort.length > SORT_KEYS) return failFor('sort-keys-too-many', { most: SORT_KEYS })
  return includes.length > INCLUDES ? failFor('includes-too-many', { most: INCLUDES }) : undefined
}

/** Without `_type`: all types that the caller may search, stored or not. */
function findTypes({ interaction, access }: FhirRequest<Search>): readonly string[] | Failure {
  if (isOfOneType(interaction)) return [interaction.type]
  const named = findNamedTypes(interaction.params)
  if (isFailure(named) || named.length > 0) return named
  return resourceTypes.filter(
    type =>
      access.filterFor(type, 's').length > 0 &&
      (interaction.kind === 'search-system' || hasCompartment(type)),
  )
}

function keepStoredTypes(
  repository: Repository,
  { interaction, access }: FhirRequest<Search>,
  query: Query,
): Criteria {
  const compartment = interaction.kind === 'search-compartment' ? interaction.id : undefined
  const scope = { ...createSearchScope(repository, access, 's'), compartment }
  const types = query.types.map(({ type }) => type)
  const stored = new Set(findStoredTypes(scope, types))
  return {
    ...query,
    types: query.types.filter(({ type }) => stored.has(type)),
    isCountable:
      compartment !== undefined ||
      types.map(scope.filter).every(filter => filter === 'everything' || isOfPatients(filter)),
  }
}

/** The range of `$everything`, which is a search of a whole compartment. */
export function findCareRange(interaction: Search): ReturnType<typeof readCareRange> {
  return isOfCompartment(interaction) ? readCareRange(interaction.params) : undefined
}

/** The parameters that were understood, for the self link (R4 search.html#conformance). */
export function findUsed(interaction: Search, { used }: Query): Params {
  return [...interaction.params.filter(([name]) => isForAllTypes(interaction, name)), ...used]
}

function findCriteria(interaction: Search): Params {
  return interaction.params.filter(([name]) => !isForAllTypes(interaction, name))
}

/** `_type`, `start` and `end` apply to all types together, and are not parameters of each. */
function isForAllTypes(interaction: Search, name: string): boolean {
  if (isOfOneType(interaction)) return false
  return name === '_type' || (isOfCompartment(interaction) && (name === 'start' || name === 'end'))
}

function isOfCompartment(interaction: Search): boolean {
  return interaction.kind === 'search-compartment' && interaction.type === '*'
}

function isOfOneType(
  interaction: Search,
): interaction is Exclude<Search, { readonly kind: 'search-system' }> {
  return interaction.kind !== 'search-system' && !isOfCompartment(interaction)
}
