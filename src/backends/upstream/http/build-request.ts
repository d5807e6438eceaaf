import { formatExact, type Params } from '../../../fhir/index.ts'
import type { Call } from '../context.ts'
import type { UpstreamRequest } from './exchange.ts'
import type { Addresses } from './urls.ts'

const JSON_TYPE = 'application/fhir+json; charset=utf-8'

/** The headers of every request to the upstream: our own. Nothing of the caller's goes by unless it is named. */
export function buildHeaders({ requestId }: Pick<Call, 'requestId'>): Readonly<Record<string, string>> {
  return { accept: 'application/fhir+json', 'accept-encoding': 'gzip, br', 'x-request-id': requestId }
}

/** A read of an address below the base. */
export function buildGet(call: Pick<Call, 'requestId'>, path: string): UpstreamRequest {
  return { method: 'GET', path, headers: buildHeaders(call) }
}

/** A write of what was judged. */
export function buildWrite(
  call: Pick<Call, 'requestId'>,
  method: 'POST' | 'PUT',
  path: string,
  body: unknown,
  addresses: Addresses,
  more: Readonly<Record<string, string>> = {},
): UpstreamRequest {
  return {
    method,
    path,
    headers: {
      ...buildHeaders(call),
      'content-type': JSON_TYPE,
      prefer: `return=representation, ${STRICT}`,
      ...more,
    },
    body: addresses.inward(formatExact(body)),
  }
}

// Many servers take addresses of 8 kB and no longer.
const LONGEST = 6000

/**
 * A search by GET, or by POST where it was posted: then its parameters are in no log of the upstream. What many patients
 * make too long for an address is posted too.
 */
export function buildSearch(
  call: Pick<Call, 'requestId'>,
  path: string,
  params: Params,
  posted: boolean,
  addresses: Addresses,
): UpstreamRequest {
  const query = buildQuery(params, addresses)
  if (!posted && query.length <= LONGEST) return buildGet(call, query === '' ? path : `${path}?${query}`)
  return {
    method: 'POST',
    path: `${path}/_search`,
    headers: { ...buildHeaders(call), 'content-type': 'application/x-www-form-urlencoded' },
    body: query,
  }
}

/** R4 http.html#Prefer: a parameter that the upstream does not know is an error, and not ignored. */
export const STRICT = 'handling=strict'

export function withStrict(request: UpstreamRequest): UpstreamRequest {
  return { ...request, headers: { ...request.headers, prefer: STRICT } }
}

export function buildQuery(params: Params, addresses: Addresses): string {
  return params
    .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(addresses.inward(value))}`)
    .join('&')
}
