import type { Dispatcher, Pool } from 'undici'
import type { Credentials } from './credentials.ts'
import type { Deadlines } from './deadlines.ts'
import {
  exchange,
  isTimeout,
  messageOf,
  type RawResponse,
  type TransportFailure,
  type UpstreamRequest,
} from './exchange.ts'

export interface Sending {
  readonly pool: Pool
  /** Of the upstream's base, without a slash at its end. */
  readonly basePath: string
  readonly credentials: Credentials
  readonly responseLimit: number
}

/** An answer of which only the head has come; the rest is in the stream. */
export interface Passing extends RawResponse {
  readonly stream: Dispatcher.ResponseData['body']
}

/** Sends a request with the credentials of the gateway, once. */
export function sendOnce(
  request: UpstreamRequest,
  timeoutMs: number,
  time: Deadlines,
  { pool, basePath, credentials, responseLimit: limit }: Sending,
): Promise<RawResponse | TransportFailure> {
  const path = pathUnder(basePath, request.path)
  const send = (signed: UpstreamRequest) =>
    exchange(pool, signed, { path, timeoutMs, limit, deadlines: time })
  const signed = authorized(request, credentials)
  return signed instanceof Promise ? signed.then(it => ('failure' in it ? it : send(it))) : send(signed)
}

/** The same, and the body as it comes. */
export async function passOnce(
  request: UpstreamRequest,
  timeoutMs: number,
  { pool, basePath, credentials }: Sending,
): Promise<Passing | TransportFailure> {
  const signed = await authorized(request, credentials)
  if ('failure' in signed) return signed
  const { method, headers, body = null } = signed
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(), timeoutMs)
  try {
    const path = pathUnder(basePath, request.path)
    const answer = await pool.request({
      ...{ method, path, headers, body, signal: late.signal, bodyTimeout: timeoutMs },
    })
    // It may be asked again, and then nobody reads this one.
    if (answer.statusCode === 401) await answer.body.dump()
    return { status: answer.statusCode, headers: answer.headers, body: NOTHING, stream: answer.body }
  } catch (error) {
    return failureOf(error, late.signal.aborted)
  } finally {
    clearTimeout(timer)
  }
}

const NOTHING = Buffer.alloc(0)

function failureOf(error: unknown, isLate: boolean): TransportFailure {
  if (isLate || (error instanceof Error && isTimeout(error))) return { failure: 'late' }
  return { failure: 'away', unsent: false, cause: messageOf(error) }
}

function authorized(
  request: UpstreamRequest,
  credentials: Credentials,
): UpstreamRequest | Promise<UpstreamRequest | TransportFailure> {
  const held = credentials.authorization()
  if (!(held instanceof Promise)) return signedWith(request, held)
  return held.then(
    it => signedWith(request, it),
    error => ({ failure: 'unsigned', cause: messageOf(error) }),
  )
}

function signedWith(request: UpstreamRequest, authorization: string | undefined): UpstreamRequest {
  return authorization === undefined
    ? request
    : { ...request, headers: { ...request.headers, authorization } }
}

/** A base at the root of its host is `/` itself. */
function pathUnder(basePath: string, path: string): string {
  const whole = basePath + path
  return whole.startsWith('/') ? whole : `/${whole}`
}
