import type { Dispatcher, Pool } from 'undici'
import type { Credentials } from './credentials.ts'
import type { Deadlines } from './exchange.ts'
import {
  describeError,
  exchange,
  isTimeout,
  type RawResponse,
  type TransportFailure,
  type UpstreamRequest,
} from './exchange.ts'

export interface SendOptions {
  readonly pool: Pool
  /** The path of the upstream's base URL, without a trailing slash. */
  readonly basePath: string
  readonly credentials: Credentials
  readonly responseLimit: number
}

/** A response whose body is a stream. */
export interface StreamingResponse extends RawResponse {
  readonly stream: Dispatcher.ResponseData['body']
}

/** Sends a request with the credentials of the gateway, once. */
export function sendOnce(
  request: UpstreamRequest,
  timeoutMs: number,
  time: Deadlines,
  { pool, basePath, credentials, responseLimit: limit }: SendOptions,
): Promise<RawResponse | TransportFailure> {
  const path = joinPath(basePath, request.path)
  const send = (signed: UpstreamRequest) =>
    exchange(pool, signed, { path, timeoutMs, limit, deadlines: time })
  const signed = authorize(request, credentials)
  return signed instanceof Promise ? signed.then(it => ('failure' in it ? it : send(it))) : send(signed)
}

/** The same, with the body as a stream. */
export async function passOnce(
  request: UpstreamRequest,
  timeoutMs: number,
  { pool, basePath, credentials }: SendOptions,
): Promise<StreamingResponse | TransportFailure> {
  const signed = await authorize(request, credentials)
  if ('failure' in signed) return signed
  const { method, headers, body = null } = signed
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(), timeoutMs)
  try {
    const path = joinPath(basePath, request.path)
    const answer = await pool.request({
      ...{ method, path, headers, body, signal: late.signal, bodyTimeout: timeoutMs },
    })
    // The request may be sent again, and then nobody reads this body.
    if (answer.statusCode === 401) await answer.body.dump()
    return { status: answer.statusCode, headers: answer.headers, body: NOTHING, stream: answer.body }
  } catch (error) {
    return toTransportFailure(error, late.signal.aborted)
  } finally {
    clearTimeout(timer)
  }
}

const NOTHING = Buffer.alloc(0)

function toTransportFailure(error: unknown, isLate: boolean): TransportFailure {
  if (isLate || (error instanceof Error && isTimeout(error))) return { failure: 'late' }
  return { failure: 'unreachable', unsent: false, cause: describeError(error) }
}

function authorize(
  request: UpstreamRequest,
  credentials: Credentials,
): UpstreamRequest | Promise<UpstreamRequest | TransportFailure> {
  const held = credentials.getAuthorization()
  if (!(held instanceof Promise)) return addAuthorization(request, held)
  return held.then(
    it => addAuthorization(request, it),
    error => ({ failure: 'unsigned', cause: describeError(error) }),
  )
}

function addAuthorization(request: UpstreamRequest, authorization: string | undefined): UpstreamRequest {
  return authorization === undefined
    ? request
    : { ...request, headers: { ...request.headers, authorization } }
}

/** The path of a base URL without one is `/`. */
function joinPath(basePath: string, path: string): string {
  const whole = basePath + path
  return whole.startsWith('/') ? whole : `/${whole}`
}
