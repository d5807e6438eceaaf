import type { IncomingHttpHeaders } from 'node:http'
import type { Transform } from 'node:stream'
import { isFailure } from '../../../core/index.ts'
import { type Failure, type FhirRequest, type FhirResponse, failBroken } from '../../../fhir-api/index.ts'
import type { GatewayContext } from '../context.ts'
import type { Upstream } from '../http/client.ts'
import { pipe } from '../http/decode.ts'
import type { UpstreamRequest } from '../http/exchange.ts'
import { createJsonCheck } from '../http/json-check.ts'
import type { PassedResponse } from '../http/read-response.ts'
import { addDoubt, isJson, toFailure } from '../http/response.ts'
import type { UrlRewriter } from '../http/urls.ts'
import { checkBody } from './check-body.ts'

/** Passes on the upstream's response for a caller who may see everything. Only URLs are replaced, and the parts that `rewrite` changes. */
export async function passThrough(
  context: GatewayContext,
  request: FhirRequest,
  outgoing: UpstreamRequest,
  rewrite?: BodyRewrite,
): Promise<FhirResponse | Failure> {
  const answer = await passOrStream(context, request, outgoing)
  if (!rewrite || isFailure(answer) || answer.body === undefined) return answer
  const { body } = answer
  return {
    ...answer,
    body: typeof body === 'string' ? rewrite.text(body) : pipe(body, rewrite.createStream()),
  }
}

/** A change of a body, in memory or as a stream. */
export interface BodyRewrite {
  text(body: string): string
  createStream(): Transform
}

/** Streams a response that is too long for memory, unless it is a part of another one. The audit trail records it with the patient `*`. */
async function passOrStream(
  { upstream, urls }: GatewayContext,
  request: FhirRequest,
  outgoing: UpstreamRequest,
) {
  const answer = request.isEntry ? await askWhole(upstream, outgoing) : await upstream.pass(outgoing)
  if (isFailure(answer)) return answer
  const { status, headers, body } = answer
  const isRefused = status >= 300 && status !== 304
  const response = isRefused
    ? toFailure({ status, headers, text: typeof body === 'string' ? body : '' }, request)
    : await toFhirResponse(request, answer, urls)
  if (!isFailure(response)) return response
  if (typeof body !== 'string') body.destroy()
  return addDoubt(response, outgoing, answer)
}

async function askWhole(upstream: Upstream, outgoing: UpstreamRequest): Promise<PassedResponse | Failure> {
  const answer = await upstream.ask(outgoing)
  return isFailure(answer) ? answer : { ...answer, body: answer.text }
}

async function toFhirResponse(
  request: FhirRequest,
  { status, headers, body }: PassedResponse,
  urls: UrlRewriter,
): Promise<FhirResponse | Failure> {
  if (body !== '' && !isJson(headers['content-type'])) return failBroken('it is not JSON')
  const checked = typeof body === 'string' && status !== 304 ? await checkBody(request, { text: body }) : {}
  if (isFailure(checked)) return checked
  const picked = pickHeaders(headers, urls)
  return {
    status,
    headers:
      request.interaction.kind === 'operation' ? { ...picked, ...pickOperationHeaders(headers) } : picked,
    body: typeof body === 'string' ? body || undefined : pipe(body, createJsonCheck()),
    isUnparsed: true,
    ...checked,
  }
}

// R4 async.html and Bulk Data: the state of an asynchronous job.
const OF_JOBS = ['retry-after', 'x-progress', 'expires'] as const
const PLAIN_JSON = 'application/json; charset=utf-8'

/** An operation may respond with JSON that is not a resource: GraphQL, the result of a bulk export. */
function pickOperationHeaders(headers: IncomingHttpHeaders): Readonly<Record<string, string>> {
  const isPlain = /^application\/json\b/i.test(headers['content-type'] ?? '')
  return {
    ...Object.fromEntries(
      OF_JOBS.flatMap(name => (headers[name] === undefined ? [] : [[name, String(headers[name])]])),
    ),
    ...(isPlain && { 'content-type': PLAIN_JSON }),
  }
}

/** The headers that are passed on, with public URLs. */
export function pickHeaders(
  headers: IncomingHttpHeaders,
  urls: UrlRewriter,
): Readonly<Record<string, string>> {
  const { etag, location } = headers
  const lastModified = headers['last-modified']
  const place = location === undefined ? undefined : urls.toPublicUrl(location)
  const source = headers['content-location']
  const from = source === undefined ? undefined : urls.toPublicUrl(source)
  return {
    ...(etag !== undefined && { etag }),
    ...(lastModified !== undefined && { 'last-modified': lastModified }),
    ...(place !== undefined && { location: place }),
    ...(from !== undefined && { 'content-location': from }),
  }
}
