import { type Failure, isFailure } from '../../../fhir-api/index.ts'
import type { GatewayContext } from '../context.ts'
import type { UpstreamRequest } from '../http/exchange.ts'
import { findParam, setParam } from '../http/query.ts'
import type { UpstreamResponse } from '../http/read-response.ts'
import { explainPageFailure, isTooLarge, parseBundle, type UpstreamBundle } from '../http/response.ts'
import { LONG_STRING, LONG_STRING_OF_PAGE } from '../limits.ts'
import { sendSearch, USUAL_COUNT as USUAL_PART } from './send-search.ts'

/** The upstream's response to the request for a page. */
export type PageResponse =
  | ({ readonly kind: 'page' } & UpstreamBundle)
  /** Any other status than 200. */
  | { readonly kind: 'declined'; readonly response: UpstreamResponse }

/** The assumed size of a page that was requested without `_count`. */
const USUAL_COUNT = 100

/**
 * Requests a page. If it is too large to be inspected, long strings are left out, of a single resource more than of several.
 * If that is not enough, requests a page with a quarter of the resources, down to one.
 */
export async function requestPage(
  context: GatewayContext,
  first: UpstreamRequest,
  mayBePart = false,
): Promise<PageResponse | Failure> {
  let outgoing = first
  for (;;) {
    const count = findCount(outgoing) ?? USUAL_COUNT
    const longestOfPage = context.responseLimit * LONG_STRING_OF_PAGE
    const longest = count <= 1 ? Math.min(LONG_STRING, longestOfPage) : longestOfPage
    const response = await sendSearch(context, outgoing, {
      send: it => context.upstream.skim(it, longest),
      countEntries: it => (isFailure(it) ? 0 : countEntries(it.status, it.text)),
      mayBePart,
    })
    const page = readPage(response)
    if (!isTooLarge(page)) return page
    if (count <= 1) return explainPageFailure(page)
    outgoing = setParam(outgoing, COUNT, String(Math.max(1, Math.floor(count / 4))))
  }
}

function readPage(response: UpstreamResponse | Failure): PageResponse | Failure {
  if (isFailure(response)) return response
  if (response.status !== 200) return { kind: 'declined', response }
  const bundle = parseBundle(response)
  return isFailure(bundle) ? bundle : { kind: 'page', ...bundle }
}

const COUNT = '_count'

/** For `SearchExchange`. The upstream may have refused the number of results that was requested with `no-store`. */
export function countEntries(status: number, text: string): number {
  if (status !== 200) return status === 400 ? Number.POSITIVE_INFINITY : 0
  return text.split('"fullUrl"').length - 1
}

function findCount(outgoing: UpstreamRequest): number | undefined {
  const count = findParam(outgoing, COUNT)
  return count === undefined ? undefined : Number(count)
}

/** Whether a page, or a part that is not stored, has as many entries as were requested, so that there may be more. */
export function isFullPage(outgoing: UpstreamRequest, entries: number, isPart = false): boolean {
  return entries >= (findCount(outgoing) ?? (isPart ? USUAL_PART : 1))
}

/** A search that also asks for the number of all matches. */
export function requestTotal(outgoing: UpstreamRequest): UpstreamRequest {
  return setParam(outgoing, '_total', 'accurate')
}
