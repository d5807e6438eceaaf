import { isFailure } from '../../../core/index.ts'
import {
  createMatchTest,
  type IncludeRule,
  isInCompartment,
  type Params,
  parseQuery,
  type Query,
  type Resource,
} from '../../../fhir/index.ts'
import type { AccessCheck, Failure, FhirRequest, Search } from '../../../fhir-api/index.ts'
import type { GatewayContext } from '../context.ts'
import {
  buildSearch,
  NO_CACHE,
  NO_STORE,
  requireStrict,
  setCacheControl,
  type UpstreamSearch,
} from '../http/upstream-search.ts'
import { PAGE_SIZE, type PageCheck } from './check-page.ts'
import { findIncludes, listOwnIncludes, narrowIncludes } from './includes.ts'
import { createPanelExpansion } from './panels.ts'
import type { Portion } from './portions.ts'
import { findPatient, listSearches } from './portions.ts'
import { findOneType, findTypes, type SearchRequest } from './search-request.ts'

/** The searches of the upstream that together answer a search, and the checks of their responses. */
export interface SearchPlan {
  readonly query: Query
  /** Knows the panel membership that the plan is made from. */
  readonly context: GatewayContext
  /** Includes that no portion requests. */
  readonly ownIncludes: readonly IncludeRule[]
  /** None where the caller may see nobody's data. */
  readonly portions: readonly PlannedPortion[]
}

export interface PlannedPortion {
  /** The request for the first page, from which the gateway composes its own. */
  readonly page: (size: number) => UpstreamSearch
  /** The request for all matches. */
  readonly all: () => UpstreamSearch
  readonly check: PageCheck
  /** Whether few matches are outside the access filter. */
  readonly isComplete: boolean
  /** Whether the caller has not named the type: the upstream need not know it. */
  readonly isImplied: boolean
}

/** The largest page of which many matches may be left out: it is checked in memory. */
export const MAX_FILTERED_PAGE = 250

/** One resource more than a page has: then there is a next page. */
export function setPageSize({ used, count }: Pick<Query, 'used' | 'count'>, least = PAGE_SIZE): Params {
  return [...dropCount({ used }), ['_count', String(Math.min(Math.max(count + 1, least), MAX_FILTERED_PAGE))]]
}

/** Sorts by `_id` last: the gateway sends the search again for the next page, and resources with equal sort keys must keep their order. */
function sortById(params: Params): Params {
  const keys = params.filter(([name]) => name === '_sort').flatMap(([, value]) => value.split(','))
  const sorted = keys.some(key => /^-?_id$/.test(key)) ? keys : [...keys, '_id']
  return [...params.filter(([name]) => name !== '_sort'), ['_sort', sorted.join(',')]]
}

function dropCount({ used }: Pick<Query, 'used'>): Params {
  return used.filter(([name]) => name !== '_count')
}

// The gateway shapes and counts itself, and sends narrowed includes and types.
const REPLACED = /^(?:_summary|_elements|_total|_contained|_type|_(?:rev)?include(?::.*)?)$/

// With an id that does not exist HAPI finds nothing: the result would reveal which ids exist.
const UNSENT = '_id:not'

export async function planSearch(
  context: GatewayContext,
  request: SearchRequest,
): Promise<SearchPlan | Failure> {
  const { interaction, access } = request
  const types = findTypes(interaction, access)
  if (isFailure(types)) return types
  const single = findOneType(interaction)
  const params =
    single === undefined ? interaction.params.filter(([name]) => name !== '_type') : interaction.params
  const isForUpstream = ([name]: Params[number]) =>
    single !== undefined && !request.isStrict && context.isUpstreamParameter(single, name)
  const read = parseQuery(
    types,
    params.filter(pair => !isForUpstream(pair)),
    {
      baseUrl: context.baseUrl,
      lenient: request.preferences.lenient,
      work: request.work,
      chains: request.chains,
    },
  )
  if (isFailure(read)) return read
  const understood = new Set(read.used)
  const query = { ...read, used: params.filter(pair => understood.has(pair) || isForUpstream(pair)) }
  const expansion = createPanelExpansion(context, request)
  const portions = await listSearches(context, request, types, expansion)
  const { stableOrder } = context.profile()
  const isFound = query.used.every(([name]) => name !== UNSENT)
  const ownIncludes = listOwnIncludes(query.includes, types, access)
  const includes = narrowIncludes(
    query.includes.filter(it => !ownIncludes.includes(it)),
    access,
  )
  const check = createPageCheck(context, request, new Set(types), query)
  return {
    query,
    context: expansion.context,
    ownIncludes,
    portions: portions.map((portion, at) => {
      const isComplete = portion.isComplete && isFound
      const build = (params: Params) => {
        const own = params.filter(
          pair => !REPLACED.test(pair[0]) && pair[0] !== UNSENT && !portion.replaced.has(pair),
        )
        const added = portion.params.filter(it => !isRepeated(it, own, context.baseUrl))
        const sent = [...own, ...added, ...includes]
        const outgoing = buildSearch(request, portion.path, sent, interaction.posted === true, context.urls)
        return setCacheControl(requireStrict(outgoing), chooseCacheControl(context, request))
      }
      const isFirst = createFirstTest(portions, at)
      return {
        page: size => {
          const params = [...dropCount(query), ['_count', String(size)] as const]
          return build(stableOrder ? params : sortById(params))
        },
        all: () => build(isComplete ? query.used : setPageSize(query)),
        check: {
          ...check,
          isMatch: (resource, access) => check.isMatch(resource, access) && isFirst(resource, access),
        },
        isComplete,
        isImplied: types.length > 1 && interaction.params.every(([name]) => name !== '_type'),
      }
    }),
  }
}

/** Whether a portion is the first that finds a resource: several portions must show it once, also if the upstream ignores a parameter. */
function createFirstTest(portions: readonly Portion[], at: number) {
  return (resource: Resource, check: AccessCheck) =>
    portions.length === 1 || portions.findIndex(it => it.finds(resource, check)) === at
}

/** The `Cache-Control` of a search: always fresh where something is decided by the result, else as the caller or the site says. */
export function chooseCacheControl(
  { searchCache }: GatewayContext,
  { preferences, isStrict }: SearchRequest,
): string | undefined {
  const { cacheControl = searchCache === 'bypass' ? NO_CACHE : undefined } = preferences
  if (isStrict || cacheControl?.includes('no-store')) return NO_STORE
  // HAPI ends after a number of rows with `max-results`, without saying so.
  return cacheControl?.includes('no-cache') || cacheControl?.includes('max-results') ? NO_CACHE : cacheControl
}

/** Whether the caller's own parameters contain this one, with another form of the reference. */
function isRepeated([name, value]: Params[number], own: Params, baseUrl: string): boolean {
  return own.some(([code, text]) => {
    if (code !== name) return false
    const patient = findPatient(text, baseUrl)
    return text === value || (patient !== undefined && `Patient/${patient}` === value)
  })
}

export function createPageCheck(
  { baseUrl }: GatewayContext,
  { interaction }: FhirRequest<Search>,
  types: ReadonlySet<string>,
  { includes, types: parsedTypes }: Pick<Query, 'includes' | 'types'>,
): PageCheck {
  const isForward = includes.some(it => it.direction === 'forward')
  const isReverse = includes.some(it => it.direction === 'reverse')
  const inCompartment = (resource: Resource) =>
    interaction.kind !== 'search-compartment' || isInCompartment(resource, interaction.id, baseUrl)
  const tests = new Map(
    parsedTypes.map(({ type, clauses }) => [type, clauses.map(it => createMatchTest(type, it, baseUrl))]),
  )
  return {
    matchesQuery: resource => tests.get(resource.resourceType)?.every(test => test(resource)) ?? true,
    isMatch: (resource, check) =>
      types.has(resource.resourceType) && inCompartment(resource) && check.allows('s', resource),
    isInclude: (resource, check) =>
      (isForward && check.allows('r', resource)) || (isReverse && check.allows('s', resource)),
    includes: (matches, candidates) => findIncludes(matches, candidates, includes, baseUrl),
  }
}
