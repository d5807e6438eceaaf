import {
  couldMatch,
  formatExact,
  isProblem,
  type Params,
  parseSearch,
  type Query,
  type Resource,
  type Shape,
} from '../../../fhir/index.ts'
import { getPath, type Search, type SearchPage, seesAll } from '../../../fhir-api/index.ts'
import type { Call, Context } from '../context.ts'
import { EXCLUDED_TYPES } from '../excluded-types.ts'
import { buildGet, buildSearch, withStrict } from '../http/build-request.ts'
import type { UpstreamRequest } from '../http/exchange.ts'
import { COUNTED, UPSTREAM_PAGES } from '../limits.ts'
import type { Problem } from '../problem.ts'
import { failTooCostly } from '../problem.ts'
import { resolveChains } from './chains.ts'
import { countMatches } from './collect.ts'
import { toEntry } from './entry.ts'
import {
  type CheckedResource,
  fetchPage,
  type PageCheck,
  type PageCursor,
  type UpstreamPage,
} from './fetch-page.ts'
import { gather } from './gather.ts'
import { AT_ONCE, planSearch } from './plan.ts'

/** A page of a search whose response has to be inspected. */
export async function findPage(
  context: Context,
  call: Call<Search>,
  spot: PageCursor | undefined,
): Promise<SearchPage | Problem> {
  if (seesAll(call.access)) return searchOverTypes(context, call, spot?.link)
  const resolved = await resolveChains(context, call)
  if (resolved !== 'nothing' && isProblem(resolved)) return resolved as Problem
  const plan = await planSearch(context, resolved === 'nothing' ? call : resolved)
  if (isProblem(plan)) return plan
  const { query } = plan
  const used = usedBy(query, call)
  const toPage = (page: UpstreamPage, total: number | undefined) =>
    toSearchPage(page, used, query.shape, total)
  if (resolved === 'nothing' || !plan.request) return toPage(NONE, 0)
  if (query.shape.summary === 'count' || query.count === 0) {
    const count = await countMatches(context, counting(call), COUNTED)
    return typeof count === 'object' ? count : toPage(NONE, count)
  }
  // What was begun here goes on here, though the upstream can be told by now.
  const isTheirs = plan.isExact && spot?.link !== '' && spot?.skip === undefined
  const theirs = isTheirs
    ? await fetchPage(context, call, spot ? buildGet(call, spot.link) : plan.request, plan.check)
    : undefined
  if (theirs && isProblem(theirs)) return theirs
  const request = (theirs && plan.wide()) ?? plan.request
  // By a page that is short of what was left out one could count it, where another page follows.
  const page =
    theirs && (theirs.lost === 0 || !theirs.links.has('next'))
      ? theirs
      : await scan(context, call, { ...plan, request, count: query.count, from: spot })
  if (isProblem(page)) return page
  const total = await totalOf(context, call, query, page)
  return typeof total === 'object' ? total : toPage(page, total)
}

const NONE: UpstreamPage = { matches: [], includes: [], links: new Map(), strays: 0, lost: 0, isWhole: true }

/**
 * What the upstream counted cannot be checked, so it is not passed on: a search that is all on one page has its own
 * total, any other one only where it was asked for.
 */
async function totalOf(
  context: Context,
  call: Call<Search>,
  { total }: Query,
  { matches, isWhole }: UpstreamPage,
): Promise<number | undefined | Problem> {
  if (total === 'none') return undefined
  if (isWhole) return matches.length
  if (total !== 'accurate') return undefined
  return countMatches(context, counting(call), COUNTED)
}

// As large pages as the upstream gives, and nothing but what is counted.
const NOT_COUNTED = /^(?:_count|_summary|_elements|_sort|_total|_(?:rev)?include(?::.*)?)$/

function counting(call: Call<Search>): Call<Search> {
  const params = call.interaction.params.filter(([name]) => !NOT_COUNTED.test(name))
  return { ...call, interaction: { ...call.interaction, params: [...params, ['_count', '500']] } }
}

function toSearchPage(
  { matches, includes, links }: UpstreamPage,
  used: Params,
  shape: Shape,
  total: number | undefined,
): SearchPage {
  return {
    matches: matches.map(toEntry),
    includes: includes.map(toEntry),
    used,
    shape,
    total,
    cursors: links,
  }
}

/** What was understood, as it was said: a chain that was looked up stands in the self link as it was. */
function usedBy(query: Query, { interaction }: Call<Search>): Query['used'] {
  const names = new Set(query.used.map(([name]) => name))
  return interaction.params.filter(
    ([name]) => names.has(name) || name.includes('.') || name.startsWith('_has:') || name === '_type',
  )
}

/**
 * A search over several types, or a page of the upstream's own making, for a caller who may see everything. What the
 * parameters mean is then the upstream's business.
 */
async function searchOverTypes(
  context: Context,
  call: Call<Search>,
  link: string | undefined,
): Promise<SearchPage | Problem> {
  const { params, posted } = call.interaction
  const path = getPath(call.interaction)
  const request =
    link === undefined
      ? buildSearch(call, path, dropFormat(params), posted === true, context.addresses)
      : buildGet(call, link)
  const seen = (resource: Resource) => !EXCLUDED_TYPES.has(resource.resourceType)
  const page = await fetchPage(context, call, withStrict(request), {
    isAsked: resource => params.every(pair => couldBeAsked(resource, pair, context.baseUrl)),
    isMatch: seen,
    isInclude: seen,
    includes: (_matches, candidates) => candidates,
  })
  if (isProblem(page)) return page
  const total = page.isWhole ? page.matches.length : undefined
  return toSearchPage(page, dropFormat(params), WHOLE, total)
}

function couldBeAsked(resource: Resource, [name, value]: Params[number], baseUrl: string): boolean {
  const clause = parseSearch(resource.resourceType, name, value, baseUrl)
  return clause.kind === 'error' || couldMatch(resource, clause, baseUrl)
}

const WHOLE: Shape = { summary: 'false', elements: [] }

export function dropFormat(params: Params): Params {
  return params.filter(([name]) => name !== '_format' && name !== '_pretty')
}

interface ScanOptions {
  /** For the begin. */
  readonly request: UpstreamRequest
  readonly check: PageCheck
  readonly count: number
  readonly from: PageCursor | undefined
}

/** A page of a search that the upstream could not be told all of, made here. */
async function scan(
  context: Context,
  call: Call,
  { request, check: judge, count, from }: ScanOptions,
): Promise<UpstreamPage | Problem> {
  const candidates: CheckedResource[] = []
  let isTold = true
  const fetch = async (link: string) => {
    const part = await fetchPage(context, call, link === '' ? request : buildGet(call, link), judge)
    if (isProblem(part)) return part
    for (const it of part.includes) candidates.push(it)
    // It counts more than it shows, and does not say where the rest is.
    if (!part.isWhole && part.links.size === 0) isTold = false
    return { items: part.matches, next: part.links.get('next') }
  }
  const page = await gather(from, count, fetch, undefined, ({ exact }) => formatExact(exact).length)
  if (isProblem(page)) return page
  if (page.isEndless) return failTooCostly(UPSTREAM_PAGES * AT_ONCE)
  const { items: matches, links, isWhole } = page
  return {
    matches,
    strays: 0,
    lost: 0,
    includes: judge.includes(matches, candidates),
    links,
    isWhole: isWhole && isTold,
  }
}
