import { isFailure } from '../../../core/index.ts'
import {
  createMatchTest,
  findShape,
  type Interaction,
  isResourceType,
  type Params,
  parseUncounted,
  type Query,
  type Resource,
  type Shape,
} from '../../../fhir/index.ts'
import {
  type Failure,
  type FhirRequest,
  getPath,
  type Search,
  type SearchPage,
  seesAll,
} from '../../../fhir-api/index.ts'
import type { GatewayContext } from '../context.ts'
import { dropFormat } from '../http/build-request.ts'
import { buildSearch, requireStrict, setCacheControl } from '../http/upstream-search.ts'
import type { CheckedResource, Links, PageCursor } from '../paging.ts'
import { EXCLUDED_TYPES } from '../read/access.ts'
import { resolveChains } from './chains.ts'
import { fetchPage } from './check-page.ts'
import { composePage, type FoundPage, NO_MATCHES } from './compose.ts'
import { computeTotal, countMatches } from './count.ts'
import { chooseCacheControl, planSearch } from './plan.ts'

/** A page of a search whose response has to be inspected. */
export async function performSearch(
  context: GatewayContext,
  original: FhirRequest<Search>,
  cursor: PageCursor | undefined,
): Promise<SearchPage | Failure> {
  const request = { ...original, interaction: toTypeSearch(original.interaction) }
  const { params } = original.interaction
  if (seesAll(request.access)) return searchOverTypes(context, request, params, cursor)
  const resolved = await resolveChains(context, request)
  if (isFailure(resolved)) return resolved
  const plan = await planSearch(context, resolved === 'nothing' ? request : resolved)
  if (isFailure(plan)) return plan
  const { query } = plan
  const used = listUsedParams(query, original)
  const toPage = (page: FoundPage, total: number | undefined) => toSearchPage(page, used, query.shape, total)
  if (resolved === 'nothing' || plan.portions.length === 0) return toPage(NO_MATCHES, 0)
  if (query.shape.summary === 'count' || query.count === 0) {
    const count = await countMatches(context, request)
    return isFailure(count) ? count : toPage(NO_MATCHES, count)
  }
  const page = await composePage(request, plan, cursor)
  if (isFailure(page)) return page
  const total = await computeTotal(context, request, query, page)
  return isFailure(total) ? total : toPage(page, total)
}

/** A search over one type (`?_type=Condition`) as a search of that type: some servers have no others. */
function toTypeSearch(interaction: Search): Search {
  const { kind, params, posted } = interaction
  const [type, ...others] = params.filter(([name]) => name === '_type').map(([, value]) => value)
  if (kind !== 'search-system' || type === undefined || others.length > 0 || !isResourceType(type))
    return interaction
  const rest = params.filter(([name]) => name !== '_type')
  return { kind: 'search-type', type, params: rest, ...(posted && { posted }) }
}

function toSearchPage(
  { matches, includes, links, extent, lacksIncludes }: FoundPage,
  used: Params,
  shape: Shape,
  total: number | undefined,
): SearchPage {
  const lacks = extent === 'cut' ? 'matches' : lacksIncludes ? 'includes' : undefined
  return { matches, includes, used, shape, total, cursors: links, ...(lacks && { lacks }) }
}

/** The parameters of the self link as the caller sent them, chains included. */
function listUsedParams(query: Query, { interaction }: FhirRequest<Search>): Query['used'] {
  const names = new Set(query.used.map(([name]) => name))
  return interaction.params.filter(
    ([name]) => names.has(name) || name.includes('.') || name.startsWith('_has:') || name === '_type',
  )
}

/** A search over several types for a caller who may see everything. The upstream interprets the parameters. */
async function searchOverTypes(
  context: GatewayContext,
  request: FhirRequest<Search>,
  used: Params,
  cursor: PageCursor | undefined,
): Promise<SearchPage | Failure> {
  const { params, posted } = request.interaction
  const path = getPath(request.interaction)
  const isShapedHere = context.isRecorded && requestsSubset(request.interaction)
  const sent = isShapedHere ? params.filter(([name]) => !SHAPES.has(name)) : params
  const outgoing = buildSearch(request, path, dropFormat(sent), posted === true, context.urls)
  const isSeen = (resource: Resource) => !EXCLUDED_TYPES.has(resource.resourceType)
  const fresh = setCacheControl(requireStrict(outgoing), chooseCacheControl(context, request))
  const check = {
    matchesQuery: (resource: Resource) => params.every(pair => mayMatch(resource, pair, context.baseUrl)),
    isMatch: isSeen,
    isInclude: isSeen,
    includes: (_matches: unknown, candidates: readonly CheckedResource[]) => candidates,
  }
  const page = await fetchPage(context, request, fresh, check, cursor)
  if (isFailure(page)) return page
  const { continuation } = page
  const next = continuation.kind === 'end' ? undefined : continuation.cursor
  const links: Links = new Map(next && [['next', next]])
  const isWhole = continuation.kind === 'end' && cursor === undefined
  const extent = isWhole ? 'whole' : continuation.kind === 'cut' ? 'cut' : 'part'
  return toSearchPage(
    { ...page, links, extent },
    dropFormat(used),
    isShapedHere ? findShape(params) : WHOLE,
    isWhole ? page.matches.length : undefined,
  )
}

function mayMatch(resource: Resource, [name, value]: Params[number], baseUrl: string): boolean {
  const clause = parseUncounted(resource.resourceType, name, value, baseUrl)
  return clause.kind === 'error' || createMatchTest(resource.resourceType, clause, baseUrl)(resource)
}

const WHOLE: Shape = { summary: 'false', elements: [] }
const SHAPES: ReadonlySet<string> = new Set(['_elements', '_summary'])

/** Whether the response would lack the elements that show whose resources it contains: the audit trail needs them. */
export function requestsSubset(interaction: Interaction): boolean {
  return (
    'params' in interaction &&
    interaction.params.some(
      ([name, value]) =>
        name === '_elements' || (name === '_summary' && value !== 'false' && value !== 'count'),
    )
  )
}
