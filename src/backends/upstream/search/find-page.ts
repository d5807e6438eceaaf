import {
  couldMatch,
  findShape,
  type Interaction,
  isResourceType,
  type Params,
  parseSearch,
  type Query,
  type Resource,
  type Shape,
} from '../../../fhir/index.ts'
import {
  type Failure,
  type FhirRequest,
  getPath,
  isFailure,
  type Search,
  type SearchPage,
  seesAll,
} from '../../../fhir-api/index.ts'
import { EXCLUDED_TYPES } from '../access.ts'
import type { GatewayContext } from '../context.ts'
import { buildGet, buildSearch, requireStrict, setCacheControl } from '../http/build-request.ts'
import type { UpstreamRequest } from '../http/exchange.ts'
import { failTooCostly } from '../http/response.ts'
import { COUNTED, UPSTREAM_PAGES } from '../limits.ts'
import { resolveChains } from './chains.ts'
import { countMatches } from './collect.ts'
import { fetchPage, PAGE_SIZE } from './pages.ts'
import type { CheckedResource, PageCursor, UpstreamPage } from './paging.ts'
import { gather } from './paging.ts'
import { chooseCacheControl, planSearch, type SearchPlan } from './plan.ts'

/** A page of a search whose response has to be inspected. */
export async function findPage(
  context: GatewayContext,
  original: FhirRequest<Search>,
  cursor: PageCursor | undefined,
): Promise<SearchPage | Failure> {
  const request = { ...original, interaction: toTypeSearch(original.interaction) }
  const { params } = original.interaction
  if (seesAll(request.access)) return searchOverTypes(context, request, params, cursor?.link)
  const resolved = await resolveChains(context, request)
  if (resolved !== 'nothing' && isFailure(resolved)) return resolved
  const plan = await planSearch(context, resolved === 'nothing' ? request : resolved)
  if (isFailure(plan)) return plan
  const { query } = plan
  const used = listUsedParams(query, original)
  const toPage = (page: UpstreamPage, total: number | undefined) =>
    toSearchPage(page, used, query.shape, total)
  if (resolved === 'nothing' || !plan.request) return toPage(NONE, 0)
  if (query.shape.summary === 'count' || query.count === 0) {
    const count = await countMatches(context, toCountingSearch(request), COUNTED)
    return typeof count === 'object' ? count : toPage(NONE, count)
  }
  // Pages that the gateway began to compose are continued by the gateway.
  const isTheirs = plan.isExact && cursor?.link !== '' && cursor?.skip === undefined
  const outgoing = cursor ? buildGet(request, cursor.link) : plan.request
  const theirs = isTheirs ? await fetchPage(context, request, outgoing, plan.check) : undefined
  if (theirs && isFailure(theirs)) return theirs
  // A short page before another page would reveal how many matches are left out.
  const page =
    theirs && (theirs.omitted === 0 || !theirs.links.has('next'))
      ? theirs
      : await scan(context, request, plan, plan.wide() ?? plan.request, cursor)
  if (isFailure(page)) return page
  const total = await computeTotal(context, request, query, page)
  return typeof total === 'object' ? total : toPage(page, total)
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

const NONE: UpstreamPage = {
  matches: [],
  includes: [],
  links: new Map(),
  strays: 0,
  omitted: 0,
  isWhole: true,
  findNewest: () => '',
}

/**
 * The upstream's total cannot be checked and is not passed on. A search with one page has its own total; of others the
 * gateway counts the matches only on request.
 */
async function computeTotal(
  context: GatewayContext,
  request: FhirRequest<Search>,
  { total }: Query,
  { matches, isWhole }: UpstreamPage,
): Promise<number | undefined | Failure> {
  if (total === 'none') return undefined
  if (isWhole) return matches.length
  if (total !== 'accurate') return undefined
  return countMatches(context, toCountingSearch(request), COUNTED)
}

// Parameters that do not change the number of matches.
const NOT_COUNTED = /^(?:_count|_summary|_elements|_sort|_total|_(?:rev)?include(?::.*)?)$/

function toCountingSearch(request: FhirRequest<Search>): FhirRequest<Search> {
  const params = request.interaction.params.filter(([name]) => !NOT_COUNTED.test(name))
  return { ...request, interaction: { ...request.interaction, params: [...params, ['_count', '500']] } }
}

function toSearchPage(
  { matches, includes, links }: UpstreamPage,
  used: Params,
  shape: Shape,
  total: number | undefined,
): SearchPage {
  return { matches, includes, used, shape, total, cursors: links }
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
  link: string | undefined,
): Promise<SearchPage | Failure> {
  const { params, posted } = request.interaction
  const path = getPath(request.interaction)
  const isShapedHere = context.isRecorded && requestsSubset(request.interaction)
  const sent = isShapedHere ? params.filter(([name]) => !SHAPES.has(name)) : params
  const outgoing =
    link === undefined
      ? buildSearch(request, path, dropFormat(sent), posted === true, context.urls)
      : buildGet(request, link)
  const isSeen = (resource: Resource) => !EXCLUDED_TYPES.has(resource.resourceType)
  const fresh = setCacheControl(requireStrict(outgoing), chooseCacheControl(context, request))
  const page = await fetchPage(context, request, fresh, {
    matchesQuery: resource => params.every(pair => mayMatch(resource, pair, context.baseUrl)),
    isMatch: isSeen,
    isInclude: isSeen,
    includes: (_matches, candidates) => candidates,
  })
  if (isFailure(page)) return page
  const total = page.isWhole ? page.matches.length : undefined
  return toSearchPage(page, dropFormat(used), isShapedHere ? findShape(params) : WHOLE, total)
}

function mayMatch(resource: Resource, [name, value]: Params[number], baseUrl: string): boolean {
  const clause = parseSearch(resource.resourceType, name, value, baseUrl)
  return clause.kind === 'error' || couldMatch(resource, clause, baseUrl)
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

export function dropFormat(params: Params): Params {
  return params.filter(([name]) => name !== '_format' && name !== '_pretty')
}

/** Composes a page of a search that the upstream cannot filter exactly. */
async function scan(
  context: GatewayContext,
  request: FhirRequest,
  plan: SearchPlan,
  first: UpstreamRequest,
  from: PageCursor | undefined,
): Promise<UpstreamPage | Failure> {
  const { check, query } = plan
  const candidates: CheckedResource[] = []
  let isComplete = true
  const fetch = async (link: string) => {
    const outgoing = link === '' ? first : buildGet(request, link)
    const part = await fetchPage(context, request, outgoing, check)
    if (isFailure(part)) return part
    for (const it of part.includes) candidates.push(it)
    // The upstream counts more than it shows, and links to no other page.
    if (!part.isWhole && part.links.size === 0) isComplete = false
    return { items: part.matches, next: part.links.get('next') }
  }
  const page = await gather(from, query.count, fetch, undefined, ({ text }) => text.length)
  if (isFailure(page)) return page
  if (page.isEndless) return failTooCostly(UPSTREAM_PAGES * PAGE_SIZE)
  const { items: matches, links, isWhole } = page
  return {
    matches,
    strays: 0,
    omitted: 0,
    includes: check.includes(matches, candidates),
    links,
    isWhole: isWhole && isComplete,
    findNewest: () => '',
  }
}
