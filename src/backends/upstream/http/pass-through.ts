import type { IncomingHttpHeaders } from 'node:http'
import { Readable, type Transform } from 'node:stream'
import { fail } from '../../../fhir/index.ts'
import type { FhirResponse } from '../../../fhir-api/index.ts'
import { type Failure, type FhirRequest, isFailure } from '../../../fhir-api/index.ts'
import type { GatewayContext } from '../context.ts'
import type { StreamedResponse } from './client.ts'
import { pipe } from './decode.ts'
import type { UpstreamRequest } from './exchange.ts'
import { isJson, toFailure } from './response.ts'
import type { UrlRewriter } from './urls.ts'

/** Passes on the upstream's response for a caller who may see everything. Only URLs are replaced, and the parts that `rewrite` changes. */
export async function passThrough(
  context: GatewayContext,
  request: FhirRequest,
  outgoing: UpstreamRequest,
  rewrite?: BodyRewrite,
): Promise<FhirResponse | Failure> {
  const answer = await (request.isEntry
    ? passWhole(context, request, outgoing)
    : passStream(context, request, outgoing))
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

async function passWhole(
  { upstream, urls }: GatewayContext,
  request: FhirRequest,
  outgoing: UpstreamRequest,
) {
  const answer = await upstream.ask(outgoing)
  if (isFailure(answer)) return answer
  if (answer.status >= 300 && answer.status !== 304) return toFailure(answer, request)
  return toFhirResponse(answer, answer.text === '' ? undefined : answer.text, urls)
}

const LONGEST_OUTCOME = 1024 * 1024

async function passStream(
  { upstream, urls, responseLimit, isRecorded }: GatewayContext,
  request: FhirRequest,
  outgoing: UpstreamRequest,
) {
  const answer = await upstream.pass(outgoing)
  if (isFailure(answer)) return answer
  const { status, headers, body } = answer
  if (status >= 300 && status !== 304)
    return toFailure({ status, headers, text: await readText(body) }, request)
  if (await isEmpty(answer)) return toFhirResponse(answer, undefined, urls)
  const out = toFhirResponse(answer, body, urls)
  if (isFailure(out)) body.destroy()
  if (isFailure(out) || !isRecorded) return out
  const held = await bufferBody(body, responseLimit)
  return held === undefined ? AWAY : { ...out, body: held }
}

/** A response without Content-Type may be empty, and compressed all the same (HAPI, `Prefer: return=minimal`). */
async function isEmpty({ status, headers, body }: StreamedResponse): Promise<boolean> {
  const isBare = status === 204 || status === 304 || headers['content-length'] === '0'
  if (isBare) body.resume()
  return isBare || (headers['content-type'] === undefined && (await readText(body)) === '')
}

const AWAY: Failure = fail({ problem: 'upstream-unreachable' })

/**
 * The audit trail records whose data a response contains, so the whole body is read before it is sent. A body that is too
 * long is streamed, and recorded without a patient. Undefined where the body is incomplete.
 */
async function bufferBody(body: Readable, limit: number): Promise<string | Readable | undefined> {
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of body.iterator({ destroyOnReturn: false })) {
      chunks.push(chunk)
      size += chunk.length
      if (size > limit) return Readable.from(concatenate(chunks, body)).on('close', () => body.destroy())
    }
  } catch {
    return undefined
  }
  return Buffer.concat(chunks).toString('utf8')
}

async function* concatenate(chunks: readonly Buffer[], body: Readable): AsyncGenerator<Buffer> {
  yield* chunks
  yield* body
}

function toFhirResponse(
  { status, headers }: { readonly status: number; readonly headers: IncomingHttpHeaders },
  body: string | Readable | undefined,
  urls: UrlRewriter,
): FhirResponse | Failure {
  if (body !== undefined && !isJson(headers['content-type']))
    return fail({ problem: 'upstream-broken', why: 'it is not JSON' })
  return { status, headers: pickHeaders(headers, urls), body, isUnparsed: true }
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

async function readText(body: Readable): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of body) {
      size += chunk.length
      if (size > LONGEST_OUTCOME) break
      chunks.push(chunk)
    }
  } catch {
    // The status is enough.
  }
  return Buffer.concat(chunks).toString('utf8')
}
