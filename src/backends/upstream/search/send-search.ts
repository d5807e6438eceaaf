import { isFailure } from '../../../core/index.ts'
import { isResourceType } from '../../../fhir/index.ts'
import type { Failure, FhirRequest } from '../../../fhir-api/index.ts'
import type { GatewayContext } from '../context.ts'
import { NO_CACHE, NO_STORE, setCacheControl } from '../http/build-request.ts'
import type { UpstreamRequest } from '../http/exchange.ts'
import { findParam, setParam } from '../http/query.ts'
import type { UpstreamResponse } from '../http/read-response.ts'
import {
  explainPageFailure,
  isTooLarge,
  parseBundle,
  toFailure,
  type UpstreamBundle,
} from '../http/response.ts'
import { LONG_STRING, LONG_STRING_OF_PAGE } from '../limits.ts'

/** The assumed size of a page that was requested without `_count`, where it may be too large. */
const ASSUMED_COUNT = 100

/**
 * Requests a page. If it is too large to be inspected, long strings are left out, of a single resource more than of several.
 * If that is not enough, requests a page with a quarter of the resources, down to one.
 */
export async function requestPage(
  context: GatewayContext,
  request: FhirRequest,
  first: UpstreamRequest,
  mayBePart = false,
): Promise<UpstreamBundle | Failure> {
  let outgoing = first
  for (;;) {
    const count = findStatedCount(outgoing) ?? ASSUMED_COUNT
    const longestOfPage = context.responseLimit * LONG_STRING_OF_PAGE
    const longest = count <= 1 ? Math.min(LONG_STRING, longestOfPage) : longestOfPage
    const response = await sendSearch(context, outgoing, {
      send: it => context.upstream.skim(it, longest),
      countEntries: it => (isFailure(it) ? 0 : countEntries(it.status, it.text)),
      mayBePart,
    })
    const page = readPage(request, response)
    if (!isTooLarge(page)) return page
    if (count <= 1) return explainPageFailure(page)
    outgoing = setParam(outgoing, '_count', String(Math.max(1, Math.floor(count / 4))))
  }
}

function readPage(request: FhirRequest, response: UpstreamResponse | Failure): UpstreamBundle | Failure {
  if (isFailure(response)) return response
  return response.status === 200 ? parseBundle(response) : toFailure(response, request)
}

/** For `SearchExchange`. The upstream may have refused the number of results that was requested with `no-store`. */
export function countEntries(status: number, text: string): number {
  if (status !== 200) return status === 400 ? Number.POSITIVE_INFINITY : 0
  return text.split('"fullUrl"').length - 1
}

function findStatedCount(outgoing: UpstreamRequest): number | undefined {
  const count = findParam(outgoing, '_count')
  return count === undefined ? undefined : Number(count)
}

/** Whether a page, or a part that is not stored, has as many entries as were requested, so that there may be more. */
export function isFullPage(outgoing: UpstreamRequest, entries: number, isPart = false): boolean {
  return entries >= (findStatedCount(outgoing) ?? (isPart ? USUAL_COUNT : 1))
}

/** A search that also asks for the number of all matches. */
export function requestTotal(outgoing: UpstreamRequest): UpstreamRequest {
  return setParam(outgoing, '_total', 'accurate')
}

/** How a search is sent, and its response read. */
export interface SearchExchange<Response> {
  send(outgoing: UpstreamRequest): Promise<Response>
  /** The number of entries; none if another request would not change the response; infinite if it cannot be counted. */
  countEntries(response: Response): number
  /** Ends a response that is not used. */
  discard?(response: Response): void
  /** Whether a full page is used too, without its links and total. */
  readonly mayBePart?: boolean
}

/** HAPI refuses a larger `max-results` (HAPI-1165). */
const MAX_RESULTS = 1_000
/** The size of a page of HAPI, unless the request or the site says otherwise. */
const USUAL_COUNT = 20
const MAX_SHAPE_CHARACTERS = 500

/**
 * Sends a search so that the upstream keeps as little as possible. HAPI keeps a search and its results for an hour, which
 * slows down the equal searches of everybody, unless the request has `no-store`. Then there is only one page: entries after
 * `_count` are left out, included ones too, without a link, and the total is wrong. `no-store` is sent with searches by
 * which the gateway decides, with those of which a part is enough, and with those that had one page the last time. A full page
 * of which a part is not enough is requested again without it.
 */
export async function sendSearch<Response>(
  context: Pick<GatewayContext, 'profile' | 'singlePages'>,
  outgoing: UpstreamRequest,
  exchange: SearchExchange<Response>,
): Promise<Response> {
  const cacheControl = outgoing.headers['cache-control']
  const isForeign = namesOtherServer(outgoing)
  const isFresh = cacheControl === NO_CACHE || cacheControl === NO_STORE
  if (!isFresh && !isForeign) return exchange.send(outgoing)
  const fresh = setCacheControl(outgoing, NO_CACHE)
  if (!context.profile().cachedSearches) return exchange.send(fresh)
  const count = findCount(outgoing)
  const shape = findShape(outgoing)
  const { mayBePart = false } = exchange
  if (isForeign || mayBePart || cacheControl === NO_STORE || context.singlePages.get(shape)) {
    const unstored = await exchange.send(forbidStorage(outgoing, count))
    const entries = exchange.countEntries(unstored)
    if (entries < count || (mayBePart && Number.isFinite(entries))) return unstored
    exchange.discard?.(unstored)
  }
  const response = await exchange.send(isForeign ? pageByOffset(outgoing) : fresh)
  if (exchange.countEntries(response) >= count) context.singlePages.delete(shape)
  else if (shape.length <= MAX_SHAPE_CHARACTERS) context.singlePages.set(shape, true)
  return response
}

/** At least one: a search for none has no entries. */
function findCount(outgoing: UpstreamRequest): number {
  const count = findStatedCount(outgoing) ?? USUAL_COUNT
  return count >= 1 ? Math.min(count, MAX_RESULTS) : 1
}

function forbidStorage(outgoing: UpstreamRequest, count: number): UpstreamRequest {
  const asked = findParam(outgoing, '_count')
  const sized =
    asked === String(count) || asked === '0' ? outgoing : setParam(outgoing, '_count', String(count))
  return setCacheControl(sized, `${NO_STORE}, max-results=${count}`)
}

/** The path with the names of the parameters: searches that differ in values alone mostly have as many pages. */
function findShape({ path, body = '' }: UpstreamRequest): string {
  return `${path} ${body}`.replace(/(?<!_count)=[^& ]*/g, '')
}

const ABSOLUTE = /^https?:\/\/[^|]*\/([A-Z][A-Za-z]*)\/[A-Za-z0-9.-]{1,64}(?:\/_history\/[^|]*)?(?:\|.*)?$/

/**
 * Whether a parameter refers to a resource of another server. HAPI takes the stored result of such a search for that of the
 * search for its own resource with the same type and id, so that it must not be stored.
 */
function namesOtherServer({ path, body = '' }: UpstreamRequest): boolean {
  const query = `${path.slice(path.indexOf('?') + 1)}&${body}`
  if (!/https?(?::|%3A)/i.test(query) || findParam({ path, body }, '_offset') !== undefined) return false
  return [...new URLSearchParams(query).values()]
    .flatMap(value => value.split(','))
    .some(value => isResourceType(ABSOLUTE.exec(value)?.[1] ?? ''))
}

/** HAPI stores no search with `_offset`, and its pages have links. Each page is a search of its own, so that the order must be complete. */
function pageByOffset(outgoing: UpstreamRequest): UpstreamRequest {
  const { 'cache-control': _, ...headers } = outgoing.headers
  const sort = findParam(outgoing, '_sort')
  const sorted = setParam({ ...outgoing, headers }, '_sort', sort === undefined ? '_id' : `${sort}%2C_id`)
  return setParam(sorted, '_offset', '0')
}
