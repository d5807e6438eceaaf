import type { Params } from '../../../fhir/index.ts'
import type { FhirRequest } from '../../../fhir-api/index.ts'
import { buildHeaders, encodeParams, joinQuery, STRICT } from './build-request.ts'
import type { UpstreamRequest } from './exchange.ts'
import type { UrlRewriter } from './urls.ts'

/** A search, or a page of one, to be sent to the upstream. Its query is a value until then. */
export interface UpstreamSearch {
  /** Below the upstream's base, without the query: `/Observation`. */
  readonly path: string
  /** `name=value`, percent-encoded, in the order in which they are sent. */
  readonly params: readonly string[]
  readonly headers: Readonly<Record<string, string>>
  /** The link of a page is sent as it is. */
  readonly method: 'GET' | 'POST' | 'GET, or POST if it is long'
}

// Many servers accept URLs of up to 8 kB.
const MAX_QUERY_CHARACTERS = 6000

/** A posted search is posted, so that no log of the upstream has its parameters. A query that is too long for a URL is posted too. */
export function buildSearch(
  request: Pick<FhirRequest, 'requestId'>,
  path: string,
  params: Params,
  posted: boolean,
  urls: UrlRewriter,
): UpstreamSearch {
  return {
    path,
    params: encodeParams(params, urls, path.split('/').at(-1)),
    headers: buildHeaders(request),
    method: posted ? 'POST' : 'GET, or POST if it is long',
  }
}

/** The page of a link, or another path with a query. */
export function buildPage(request: Pick<FhirRequest, 'requestId'>, link: string): UpstreamSearch {
  const start = link.indexOf('?')
  return {
    path: start < 0 ? link : link.slice(0, start),
    params: start < 0 ? [] : link.slice(start + 1).split('&'),
    headers: buildHeaders(request),
    method: 'GET',
  }
}

export function toRequest({ path, params, headers, method }: UpstreamSearch): UpstreamRequest {
  const query = params.join('&')
  if (method === 'GET' || (method !== 'POST' && query.length <= MAX_QUERY_CHARACTERS))
    return { method: 'GET', path: joinQuery(path, query), headers }
  return {
    method: 'POST',
    path: `${path}/_search`,
    headers: { ...headers, 'content-type': 'application/x-www-form-urlencoded' },
    body: query,
  }
}

/** The first value of a parameter, percent-encoded. */
export function findParam({ params }: UpstreamSearch, name: string): string | undefined {
  return params.find(it => it.startsWith(`${name}=`))?.slice(name.length + 1)
}

/** The search with a new value of a parameter. */
export function setParam(search: UpstreamSearch, name: string, value: string): UpstreamSearch {
  const { params } = search
  const param = `${name}=${value}`
  const at = params.findIndex(it => it.startsWith(`${name}=`))
  return { ...search, params: at < 0 ? [...params, param] : params.with(at, param) }
}

/** Whether a search requests further resources beside its matches. */
export function requestsIncludes({ params }: UpstreamSearch): boolean {
  return params.some(it => /^_(?:rev)?include(?:[:=]|%3A)/i.test(it))
}

/** The number of resources that a search requests on a page, if it says so. */
export function findStatedCount(search: UpstreamSearch): number | undefined {
  const count = findParam(search, '_count')
  return count === undefined ? undefined : Number(count)
}

/** A search that also asks for the number of all matches. */
export function requestTotal(search: UpstreamSearch): UpstreamSearch {
  return setParam(search, '_total', 'accurate')
}

export function requireStrict(search: UpstreamSearch): UpstreamSearch {
  return { ...search, headers: { ...search.headers, prefer: STRICT } }
}

/** RFC 9111, 5.2.1.4: some upstreams answer searches from earlier results unless a request says this. */
export const NO_CACHE = 'no-cache'

/** `Cache-Control` of a search by which the gateway decides: the upstream need not store its result (`sendSearch`). */
export const NO_STORE = 'no-cache, no-store'

export function setCacheControl(search: UpstreamSearch, cacheControl: string | undefined): UpstreamSearch {
  return cacheControl === undefined
    ? search
    : { ...search, headers: { ...search.headers, 'cache-control': cacheControl } }
}
