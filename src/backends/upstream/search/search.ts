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
import { failTooCostly } from '../http/response.ts'
import { COUNTED, UPSTREAM_PAGES } from '../limits.ts'
import type { CheckedResource, PageCursor, PagePlace } from '../paging.ts'
import { resolveChains } from './chains.ts'
import { fetchPage, PAGE_SIZE } from './check-page.ts'
import { countMatches } from './collect.ts'
import { gather } from './gather.ts'
import {
  chooseCacheControl,
  MAX_FILTERED_PAGE,
  type PlannedPortion,
  planSearch,
  type SearchPlan,
} from './plan.ts'
import { findReverseIncludes } from './reverse-includes.ts'
import { createSortOrder } from './sort-order.ts'

/** A page of a search whose response has to be inspected. */
export async function performSearch(
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
  const toPage = (page: FoundPage, total: number | undefined) => toSearchPage(page, used, query.shape, total)
  if (resolved === 'nothing' || plan.portions.length === 0) return toPage(NONE, 0)
  if (query.shape.summary === 'count' || query.count === 0) {
    const count = await countMatches(context, toCountingSearch(request), COUNTED)
    return typeof count === 'object' ? count : toPage(NONE, count)
  }
  const page = await composePage(request, plan, cursor)
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

/** A page that the gateway composes, or that it passes on to a caller who may see everything. */
interface FoundPage extends PagePlace {
  readonly matches: readonly CheckedResource[]
  readonly includes: readonly CheckedResource[]
}

const NONE: FoundPage = { matches: [], includes: [], links: new Map(), isWhole: true }

/**
 * The upstream's total cannot be checked and is not passed on. A search with one page has its own total; of others the
 * gateway counts the matches only on request.
 */
async function computeTotal(
  context: GatewayContext,
  request: FhirRequest<Search>,
  { total }: Query,
  { matches, isWhole }: FoundPage,
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
  { matches, includes, links }: FoundPage,
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
  const place = await page.locate()
  if (isFailure(place)) return place
  const total = place.isWhole ? page.matches.length : undefined
  return toSearchPage(
    { ...page, ...place },
    dropFormat(used),
    isShapedHere ? findShape(params) : WHOLE,
    total,
  )
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

/**
 * Composes a page from the searches of a plan. What is left out changes neither pages nor links: one match more than the page
 * has is looked for, and only it makes a next page.
 */
async function composePage(
  request: FhirRequest,
  { context, portions, query, ownIncludes }: SearchPlan,
  from: PageCursor | undefined,
): Promise<FoundPage | Failure> {
  const candidates: CheckedResource[] = []
  // Included resources count as entries of a part.
  const mayBePart = query.includes.length === ownIncludes.length
  let isComplete = true
  const fetches = portions.map(portion => async (link: string, shown: number) => {
    const outgoing =
      link === '' ? portion.page(choosePageSize(portion, query, shown)) : buildGet(request, link)
    const part = await fetchPage(context, request, outgoing, portion.check, {
      mayBePart: mayBePart && link === '',
    })
    if (isFailure(part)) return portion.isImplied && isUnknownType(part) ? NO_ITEMS : part
    for (const it of part.includes) candidates.push(it)
    const findNext = async () => {
      const place = await part.locate()
      if (isFailure(place)) return place
      // The upstream counts more than it shows, and links to no other page.
      if (!place.isWhole && place.links.size === 0) isComplete = false
      return place.links.get('next')
    }
    return { items: part.matches, findNext }
  })
  const compare = createSortOrder(query.sort, context.baseUrl)
  const page = await gather(from, query.count, fetches, { getSize: ({ text }) => text.length, compare })
  if (isFailure(page)) return page
  if (page.isEndless) return failTooCostly(UPSTREAM_PAGES * PAGE_SIZE)
  const { items: matches, links, isWhole } = page
  const referring = await findReverseIncludes(context, request, ownIncludes, matches)
  if (isFailure(referring)) return referring
  const [portion] = portions
  return {
    matches,
    includes: portion?.check.includes(matches, [...candidates, ...referring]) ?? [],
    links,
    isWhole: isWhole && isComplete,
  }
}

const NO_ITEMS = { items: [], findNext: () => undefined }

function isUnknownType(failure: Failure): boolean {
  return failure.problem === 'upstream-declined' && (failure.status === 404 || failure.status === 501)
}

/** With those shown before, and one more. Many are requested where many may be left out, and for a later page. */
function choosePageSize({ isComplete }: PlannedPortion, { count }: Query, shown: number): number {
  const least = isComplete ? 0 : PAGE_SIZE
  const most = Math.max(PAGE_SIZE, isComplete ? count + 1 : Math.min(count + 1, MAX_FILTERED_PAGE))
  return Math.min(Math.max(shown + count + 1, least), most)
}
