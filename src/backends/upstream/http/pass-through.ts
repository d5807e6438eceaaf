import type { IncomingHttpHeaders } from 'node:http'
import { Readable } from 'node:stream'
import { fail, isProblem } from '../../../fhir/index.ts'
import type { FhirResponse } from '../../../fhir-api/index.ts'
import type { Call, Context } from '../context.ts'
import type { Problem } from '../problem.ts'
import { createLinkSealer, type LinkSealing, sealLinks } from '../search/seal-links.ts'
import { pipe } from './decode.ts'
import type { UpstreamRequest } from './exchange.ts'
import { toFailure } from './failure.ts'
import { isJson } from './parse-resource.ts'
import type { Addresses } from './urls.ts'

/** The upstream's answer as it is, for a caller who may see everything: only addresses are changed. */
export async function passThrough(
  context: Context,
  call: Call,
  request: UpstreamRequest,
  seal?: LinkSealing,
): Promise<FhirResponse | Problem> {
  const answer = await (call.isEntry ? whole(context, call, request) : streamed(context, call, request))
  if (!seal || isProblem(answer) || answer.body === undefined) return answer
  const { body } = answer
  return {
    ...answer,
    body: typeof body === 'string' ? sealLinks(body, seal) : pipe(body, createLinkSealer(seal)),
  }
}

async function whole({ upstream, addresses }: Context, call: Call, request: UpstreamRequest) {
  const answer = await upstream.ask(request)
  if (isProblem(answer)) return answer
  if (answer.status >= 300 && answer.status !== 304) return toFailure(answer, call.access)
  return released(answer, answer.text === '' ? undefined : answer.text, addresses)
}

const LONGEST_COMPLAINT = 1024 * 1024

async function streamed(
  { upstream, addresses, responseLimit, isRecorded }: Context,
  call: Call,
  request: UpstreamRequest,
) {
  const answer = await upstream.pass(request)
  if (isProblem(answer)) return answer
  const { status, headers, body } = answer
  if (status >= 300 && status !== 304)
    return toFailure({ status, headers, text: await textOf(body) }, call.access)
  if (status === 204 || status === 304 || headers['content-length'] === '0') {
    body.resume()
    return released(answer, undefined, addresses)
  }
  const out = released(answer, body, addresses)
  if (isProblem(out)) body.destroy()
  if (isProblem(out) || !isRecorded) return out
  const held = await heldBack(body, responseLimit)
  return held === undefined ? AWAY : { ...out, body: held }
}

const AWAY: Problem = fail({ problem: 'upstream-unreachable' })

/**
 * What is recorded before it goes out is looked into, for whose data it carries: the whole of a body unless it is too
 * long for that; then it passes by, and is filed as anybody's. Undefined where it was cut.
 */
async function heldBack(body: Readable, limit: number): Promise<string | Readable | undefined> {
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of body.iterator({ destroyOnReturn: false })) {
      chunks.push(chunk)
      size += chunk.length
      if (size > limit) return Readable.from(followed(chunks, body)).on('close', () => body.destroy())
    }
  } catch {
    return undefined
  }
  return Buffer.concat(chunks).toString('utf8')
}

async function* followed(chunks: readonly Buffer[], body: Readable): AsyncGenerator<Buffer> {
  yield* chunks
  yield* body
}

function released(
  { status, headers }: { readonly status: number; readonly headers: IncomingHttpHeaders },
  body: string | Readable | undefined,
  addresses: Addresses,
): FhirResponse | Problem {
  if (body !== undefined && !isJson(headers['content-type']))
    return fail({ problem: 'upstream-broken', why: 'it is not JSON' })
  return { status, headers: pickHeaders(headers, addresses), body, isUnparsed: true }
}

/** The headers that go out: those that are named, with our addresses. All else stays behind. */
export function pickHeaders(
  headers: IncomingHttpHeaders,
  addresses: Addresses,
): Readonly<Record<string, string>> {
  const { etag, location } = headers
  const lastModified = headers['last-modified']
  const place = location === undefined ? undefined : addresses.outwardAddress(location)
  const source = headers['content-location']
  const from = source === undefined ? undefined : addresses.outwardAddress(source)
  return {
    ...(etag !== undefined && { etag }),
    ...(lastModified !== undefined && { 'last-modified': lastModified }),
    ...(place !== undefined && { location: place }),
    ...(from !== undefined && { 'content-location': from }),
  }
}

async function textOf(body: Readable): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of body) {
      size += chunk.length
      if (size > LONGEST_COMPLAINT) break
      chunks.push(chunk)
    }
  } catch {
    // What it wanted to say is lost; its status is enough.
  }
  return Buffer.concat(chunks).toString('utf8')
}
