import { findSearchParameter, formatExact, type Params } from '../../../fhir/index.ts'
import type { FhirRequest } from '../../../fhir-api/index.ts'
import { streamBinary } from './binary-body.ts'
import type { UpstreamRequest } from './exchange.ts'
import type { UrlRewriter } from './urls.ts'

const JSON_TYPE = 'application/fhir+json; charset=utf-8'

/** The headers of every request to the upstream. No header of the caller is passed on unless it is named. */
export function buildHeaders({
  requestId,
}: Pick<FhirRequest, 'requestId'>): Readonly<Record<string, string>> {
  return { accept: 'application/fhir+json', 'accept-encoding': 'gzip, br', 'x-request-id': requestId }
}

/** A read of one resource, without compression: that costs the upstream and the gateway more time than it saves on the way. */
export function buildRead(
  request: Pick<FhirRequest, 'requestId'>,
  path: string,
  more: Readonly<Record<string, string>> = {},
): UpstreamRequest {
  const { 'accept-encoding': _, ...headers } = buildHeaders(request)
  return { method: 'GET', path, headers: { ...headers, ...more } }
}

export function buildGet(request: Pick<FhirRequest, 'requestId'>, path: string): UpstreamRequest {
  return { method: 'GET', path, headers: buildHeaders(request) }
}

export function buildWrite(
  request: Pick<FhirRequest, 'requestId' | 'content'>,
  method: 'POST' | 'PUT',
  path: string,
  body: unknown,
  urls: UrlRewriter,
  more: Readonly<Record<string, string>> = {},
): UpstreamRequest {
  const text = urls.toUpstreamBody(formatExact(body))
  // The response to a long one might be too large to be read.
  const streamed = request.content && streamBinary(text, request.content)
  const answer = streamed || text.length > LONG_BODY ? 'minimal' : 'representation'
  return {
    method,
    path,
    headers: {
      ...buildHeaders(request),
      'content-type': JSON_TYPE,
      prefer: `return=${answer}, ${STRICT}`,
      ...(streamed?.length !== undefined && { 'content-length': String(streamed.length) }),
      ...more,
    },
    ...(streamed ? { content: streamed.body } : { body: text }),
  }
}

const LONG_BODY = 4 * 1024 * 1024

/** R4 http.html#Prefer: the upstream refuses unknown parameters and does not ignore them. */
export const STRICT = 'handling=strict'

/** A path with its parameters. */
export function buildPath(path: string, params: Params, urls: UrlRewriter, type?: string): string {
  return joinQuery(path, buildQuery(params, urls, type))
}

export function joinQuery(path: string, query: string): string {
  return query === '' ? path : `${path}?${query}`
}

export function buildQuery(params: Params, urls: UrlRewriter, type?: string): string {
  return encodeParams(params, urls, type).join('&')
}

/**
 * The parameters as `name=value`. With the type of a search, references with the gateway's base URL are sent as `Type/id`; a
 * parameter of type uri is not a reference.
 */
export function encodeParams(params: Params, urls: UrlRewriter, type?: string): readonly string[] {
  return params.map(([name, value]) => {
    const sent =
      type !== undefined && mayBeReference(type, name) ? urls.toLocal(value) : urls.toUpstream(value)
    return `${encodeURIComponent(name)}=${encodeURIComponent(sent)}`
  })
}

function mayBeReference(type: string, name: string): boolean {
  const [code = ''] = name.split(':')
  return name.includes('.') || findSearchParameter(type, code)?.type === 'reference'
}

/** The parameters without those that choose the format: the gateway reads JSON. */
export function dropFormat(params: Params): Params {
  return params.filter(([name]) => name !== '_format' && name !== '_pretty')
}
