import { isFailure } from '../../../core/index.ts'
import { isResourceType } from '../../../fhir/index.ts'
import type { Failure, FhirRequest } from '../../../fhir-api/index.ts'
import type { GatewayContext } from '../context.ts'
import type { UpstreamRequest } from '../http/exchange.ts'
import type { SkimmedResponse } from '../http/read-response.ts'
import {
  explainPageFailure,
  isTooLarge,
  parseBeginning,
  parseBundle,
  toFailure,
  type UpstreamBundle,
} from '../http/response.ts'
import {
  findParam,
  findStatedCount,
  NO_CACHE,
  NO_STORE,
  requestsIncludes,
  setCacheControl,
  setParam,
  toRequest,
  type UpstreamSearch,
} from '../http/upstream-search.ts'
import { LONG_STRING, LONG_STRING_OF_PAGE } from '../limits.ts'

/** The assumed size of a page that was requested without `_count`, where it may be too large. */
const ASSUMED_COUNT = 100

export interface RequestedPage extends UpstreamBundle {
  readonly paging: Paging
  /** The number of resources that fit on a page, if those of the first request were too large. */
  readonly fits?: number
  /** Whether these are the first entries of a page that was too large. */
  readonly isBeginning?: true
}

/**
 * Requests a page. If it is too large to be inspected, long strings are left out, of a single resource more than of several.
 * If that is not enough, the page ends after the last entry that fits, where the next one can continue with the entry after
 * it. Otherwise requests a page with a quarter of the resources, down to one.
 */
export async function requestPage(
  context: GatewayContext,
  request: FhirRequest,
  first: UpstreamSearch,
  offset?: number,
): Promise<RequestedPage | Failure> {
  let outgoing = first
  for (;;) {
    const count = findStatedCount(outgoing) ?? ASSUMED_COUNT
    const longestOfPage = context.responseLimit * LONG_STRING_OF_PAGE
    const longest = count <= 1 ? Math.min(LONG_STRING, longestOfPage) : longestOfPage
    const { response, paging } = await sendSearch(
      context,
      outgoing,
      {
        send: it => context.upstream.skim(it, { longest, acceptsBeginning: true }),
        isRefused: it => !isFailure(it) && it.status === 400,
      },
      offset,
    )
    const begun = paging === 'offset' && !requestsIncludes(outgoing) && readBeginning(response)
    if (begun) return { ...begun, paging, fits: begun.entries.length, isBeginning: true }
    const page = readPage(request, response)
    if (!isTooLarge(page)) {
      if (isFailure(page)) return page
      return { ...page, paging, ...(outgoing !== first && { fits: count }) }
    }
    if (count <= 1) return explainPageFailure(page)
    outgoing = setParam(outgoing, '_count', String(Math.max(1, Math.floor(count / 4))))
  }
}

/** The first entries of a page that is too large. */
function readBeginning(response: SkimmedResponse | Failure) {
  return isFailure(response) || !response.excess || response.status !== 200
    ? undefined
    : parseBeginning(response)
}

function readPage(request: FhirRequest, response: SkimmedResponse | Failure): UpstreamBundle | Failure {
  if (isFailure(response)) return response
  if (response.excess) return response.excess
  return response.status === 200 ? parseBundle(response) : toFailure(response, request)
}

/**
 * How the pages of a search follow each other: by the number of matches before them, or by the links of the upstream. Only
 * with an offset every page except the last is known to have a link, whatever the upstream is.
 */
export type Paging = 'offset' | 'links'

/** How a search is sent, and its response read. */
export interface SearchExchange<Response> {
  send(outgoing: UpstreamRequest): Promise<Response>
  /** Whether the upstream has refused the parameters. */
  isRefused(response: Response): boolean
}

interface SentSearch<Response> {
  readonly response: Response
  readonly paging: Paging
  /** Whether the upstream must not store the search. */
  readonly isForeign: boolean
}

/**
 * Sends a search so that the upstream keeps as little as possible. HAPI keeps a search and its results for an hour, which
 * slows down the equal searches of everybody, unless the request has `_offset` or `no-store`. With `no-store` it ends after a
 * number of rows of its database without saying so, and a resource may have several: it is not used
 * (docs/decisions/0241-searches-that-the-upstream-does-not-store.md).
 */
export async function sendSearch<Response>(
  { profile }: Pick<GatewayContext, 'profile'>,
  search: UpstreamSearch,
  exchange: SearchExchange<Response>,
  /** The number of matches before a later page. */
  offset?: number,
): Promise<SentSearch<Response>> {
  const cacheControl = search.headers['cache-control']
  const { pagesByOffset, cachedSearches } = profile()
  const isForeign = cachedSearches && namesOtherServer(search)
  const isFresh = cacheControl === NO_CACHE || cacheControl === NO_STORE
  if (offset !== undefined || isForeign || (isFresh && pagesByOffset)) {
    const response = await exchange.send(toRequest(setOffset(search, offset ?? 0)))
    if (offset !== undefined || !exchange.isRefused(response))
      return { response, paging: 'offset', isForeign }
  }
  const sent = isFresh || isForeign ? setCacheControl(search, NO_CACHE) : search
  return { response: await exchange.send(toRequest(sent)), paging: 'links', isForeign: false }
}

/** The size of a page of HAPI, unless the request or the site says otherwise. */
const USUAL_COUNT = 20

/**
 * Searches for the matches after a number of them. HAPI neither stores such a search nor answers it from earlier results. Each
 * page is a search of its own, so that the order must be complete. Without `_count` HAPI ignores the offset.
 */
function setOffset(search: UpstreamSearch, offset: number): UpstreamSearch {
  const { 'cache-control': _, ...headers } = search.headers
  const sort = findParam(search, '_sort')
  const isComplete = sort !== undefined && /(?:^|%2C|,)-?_id$/.test(sort)
  const order = sort === undefined ? '_id' : `${sort}%2C_id`
  const sorted = isComplete ? search : setParam(search, '_sort', order)
  const sized =
    findStatedCount(sorted) === undefined ? setParam(sorted, '_count', String(USUAL_COUNT)) : sorted
  return { ...setParam(sized, '_offset', String(offset)), headers }
}

const ABSOLUTE = /^https?:\/\/[^|]*\/([A-Z][A-Za-z]*)\/[A-Za-z0-9.-]{1,64}(?:\/_history\/[^|]*)?(?:\|.*)?$/

/**
 * Whether a parameter refers to a resource of another server. HAPI takes the stored result of such a search for that of the
 * search for its own resource with the same type and id, so that it must not be stored.
 */
function namesOtherServer(search: UpstreamSearch): boolean {
  const query = search.params.join('&')
  if (!/https?(?::|%3A)/i.test(query) || findParam(search, '_offset') !== undefined) return false
  return [...new URLSearchParams(query).values()]
    .flatMap(value => value.split(','))
    .some(value => isResourceType(ABSOLUTE.exec(value)?.[1] ?? ''))
}
