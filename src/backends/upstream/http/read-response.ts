import type { IncomingHttpHeaders } from 'node:http'
import { Readable } from 'node:stream'
import { failFor, JsonSkimmer, OMITTED } from '../../../fhir/index.ts'
import { type Failure, failBroken } from '../../../fhir-api/index.ts'
import { SKIMMED_BYTES } from '../limits.ts'
import { createByteLimit, type Decoded, decode, decodeStream, pipe } from './decode.ts'
import type { RawResponse, StreamLimit } from './exchange.ts'
import type { UrlRewriter } from './urls.ts'

/** A decoded response with public URLs. */
export interface UpstreamResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

/** A decoded response with public URLs, whose body is a stream if it is too long for memory. */
export interface PassedResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string | Readable
}

/** A response in which `OMITTED` replaces long strings. */
export interface SkimmedResponse extends UpstreamResponse {
  /** The number of bytes of a long response. */
  readonly bytes: number
  /** The failure of a response that is too large, if `text` is its beginning. */
  readonly excess?: Failure
}

export interface Skimming {
  /** Strings with more bytes are left out. */
  readonly longest: number
  /** Whether the beginning of a response is of use that is too large all the same. */
  readonly acceptsBeginning?: boolean
}

interface ReadOptions {
  readonly urls: UrlRewriter
  readonly responseLimit: number
  readonly streamLimit: StreamLimit
  readonly warn: (text: string) => void
}

export function readPassed(
  response: RawResponse,
  options: ReadOptions,
): PassedResponse | Failure | Promise<PassedResponse | Failure> {
  const { status, headers, body } = response
  if (!Buffer.isBuffer(body)) return streamBody(response, body, options)
  // An empty body may be declared as compressed all the same (HAPI, `Prefer: return=minimal`).
  if (body.length === 0) return { status, headers, body: '' }
  const finish = (whole: Decoded) => {
    if (Buffer.isBuffer(whole))
      return { status, headers, body: options.urls.toPublic(whole.toString('utf8')) }
    return whole
      ? streamBody(response, Readable.from([body]), options)
      : failWithWarning(BAD_ENCODING, options)
  }
  const decoded = decode(body, getEncoding(headers), options.responseLimit)
  return decoded instanceof Promise ? decoded.then(finish) : finish(decoded)
}

/** Decodes a body that is too long for memory. */
function streamBody(
  { status, headers }: RawResponse,
  body: Readable,
  options: ReadOptions,
): PassedResponse | Failure {
  const decoded = decodeStream(body, getEncoding(headers))
  if (!decoded) {
    body.destroy()
    return failWithWarning(BAD_ENCODING, options)
  }
  const limited = decoded === body ? decoded : pipe(decoded, createByteLimit(options.streamLimit.bytes))
  return { status, headers, body: pipe(limited, options.urls.createPublicStream()) }
}

const BAD_ENCODING = 'its body has an unknown or invalid content encoding'

const TOO_MUCH = failFor('upstream-bytes-too-many', { most: SKIMMED_BYTES })

/** Reads a response without its long strings, so that the rest of it may be checked in memory. */
export function skimResponse(
  { status, headers, body }: PassedResponse,
  skimming: Skimming,
  options: ReadOptions,
): SkimmedResponse | Promise<SkimmedResponse | Failure> {
  if (typeof body === 'string') return { status, headers, text: body, bytes: 0 }
  return skimStream({ status, headers }, body, skimming, options)
}

async function skimStream(
  { status, headers }: Pick<PassedResponse, 'status' | 'headers'>,
  body: Readable,
  { longest, acceptsBeginning = false }: Skimming,
  options: ReadOptions,
): Promise<SkimmedResponse | Failure> {
  const skimmer = new JsonSkimmer({ longest, replace: () => OMITTED })
  let bytes = 0
  try {
    for await (const chunk of body) {
      bytes += chunk.length
      skimmer.push(chunk)
      if (skimmer.length > options.responseLimit) {
        const excess = failTooLarge(options)
        return acceptsBeginning ? { status, headers, text: skimmer.finish(), bytes, excess } : excess
      }
      if (bytes > SKIMMED_BYTES) return TOO_MUCH
    }
  } catch {
    return failFor('upstream-unreachable')
  }
  return { status, headers, text: skimmer.finish(), bytes }
}

function failWithWarning(why: string, { warn }: ReadOptions): Failure {
  warn(`Cannot use a response of the upstream: ${why}`)
  return failBroken(why)
}

export function failTooLarge({ warn, responseLimit }: ReadOptions): Failure {
  const excess = `it is larger than ${responseLimit} bytes`
  warn(`Cannot use a response of the upstream: ${excess}`)
  return failBroken(excess, excess)
}

function getEncoding(headers: IncomingHttpHeaders): string {
  return String(headers['content-encoding'] ?? '')
    .trim()
    .toLowerCase()
}
