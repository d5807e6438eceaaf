import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import type { Pool } from 'undici'
import type { Problem } from '../problem.ts'
import type { Addresses } from './addresses.ts'
import { type Breaker, breaker } from './breaker.ts'
import type { Credentials } from './credentials.ts'
import { deadlines } from './deadlines.ts'
import { decoded, decodedStream, joined } from './decode.ts'
import { exchange, type Failure, isTimeout, type RawAnswer, type UpstreamRequest } from './exchange.ts'

/** What the upstream answered: unpacked, and with our addresses in the place of its own. */
export interface UpstreamAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

export interface StreamedAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Readable
}

/** The FHIR server that the gateway stands in front of. */
export interface Upstream {
  /** The whole answer, in memory. */
  ask(request: UpstreamRequest): Promise<UpstreamAnswer | Problem>
  /** The answer as it comes, for what has not to be looked at. */
  pass(request: UpstreamRequest): Promise<StreamedAnswer | Problem>
  /** Asks without regard to earlier failures, and lets others go on when it is there again. */
  probe(request: UpstreamRequest, timeoutMs: number): Promise<UpstreamAnswer | Problem>
}

export interface UpstreamOptions {
  readonly pool: Pool
  /** Of the upstream's base, without a slash at its end. */
  readonly basePath: string
  readonly addresses: Addresses
  readonly credentials: Credentials
  readonly timeoutMs: number
  readonly responseLimit: number
  readonly clock: () => number
  /** Told how an exchange went; `reason` where the upstream is away. */
  readonly onExchange: (reason: string | undefined) => void
  /** Told what is wrong with the upstream. */
  readonly warn: (text: string) => void
}

const TRIES = 3

export function openUpstream(options: UpstreamOptions): Upstream {
  const { pool, basePath, addresses, clock, timeoutMs, responseLimit: limit } = options
  const circuit = breaker(clock)
  const time = deadlines()

  function once(request: UpstreamRequest, ms: number): Promise<RawAnswer | Failure> {
    const send = (signed: UpstreamRequest) =>
      exchange(pool, signed, {
        path: pathUnder(basePath, request.path),
        timeoutMs: ms,
        limit,
        deadlines: time,
      })
    const signed = authorized(request, options.credentials)
    return signed instanceof Promise ? signed.then(send) : send(signed)
  }

  async function ask(request: UpstreamRequest): Promise<UpstreamAnswer | Problem> {
    if (!circuit.admits()) return { problem: 'upstream-away' }
    const deadline = clock() + timeoutMs
    let renewed = false
    try {
      for (let attempt = 1; ; attempt++) {
        const answer = await once(request, Math.max(deadline - clock(), 1))
        observe(answer, circuit, options)
        if (isUnauthorized(answer) && !renewed) {
          // Its own credentials may have ended early: they are renewed once.
          options.credentials.forget()
          renewed = true
        } else if (!isWorthAnother(request, answer) || attempt >= TRIES || clock() >= deadline)
          return read(answer)
      }
    } catch (error) {
      return unexpected(error)
    }
  }

  async function probe(request: UpstreamRequest, ms: number): Promise<UpstreamAnswer | Problem> {
    try {
      const answer = await once(request, ms)
      observe(answer, circuit, options)
      return await read(answer)
    } catch (error) {
      return unexpected(error)
    }
  }

  function read(answer: RawAnswer | Failure): UpstreamAnswer | Problem | Promise<UpstreamAnswer | Problem> {
    if ('failure' in answer) return problemOf(answer, options)
    const encoding = encodingOf(answer.headers)
    // Mostly it is not packed, and there is nothing to wait for.
    return encoding === ''
      ? readable(answer, answer.body)
      : decoded(answer.body, encoding, limit).then(body => readable(answer, body))
  }

  function readable({ status, headers }: RawAnswer, body: Buffer | undefined): UpstreamAnswer | Problem {
    if (!body) return broken('its body is too long, or packed in a way that cannot be read', options)
    return { status, headers, text: addresses.outward(body.toString('utf8')) }
  }

  function unexpected(error: unknown): Problem {
    options.warn(error instanceof Error ? error.message : String(error))
    return { problem: 'upstream-away' }
  }

  return {
    ask,
    probe,
    pass: async request =>
      circuit.admits() ? passed(request, options, circuit).catch(unexpected) : { problem: 'upstream-away' },
  }
}

async function passed(
  request: UpstreamRequest,
  options: UpstreamOptions,
  circuit: Breaker,
): Promise<StreamedAnswer | Problem> {
  const { pool, basePath, addresses, timeoutMs } = options
  const { method, headers, body } = await authorized(request, options.credentials)
  const late = new AbortController()
  const timer = setTimeout(() => late.abort(), timeoutMs)
  try {
    const path = pathUnder(basePath, request.path)
    const answer = await pool.request({
      ...{ method, path, headers, body: body ?? null, signal: late.signal, bodyTimeout: timeoutMs },
    })
    observe({ status: answer.statusCode, headers: answer.headers, body: Buffer.alloc(0) }, circuit, options)
    const unpacked = decodedStream(answer.body, encodingOf(answer.headers))
    if (!unpacked) {
      answer.body.destroy()
      return broken('its body is packed in a way that cannot be read', options)
    }
    const whole = joined(unpacked, addresses.outwardStream())
    return { status: answer.statusCode, headers: answer.headers, body: whole }
  } catch (error) {
    const failure = failureOf(error, late.signal.aborted)
    observe(failure, circuit, options)
    return problemOf(failure, options)
  } finally {
    clearTimeout(timer)
  }
}

function failureOf(error: unknown, isLate: boolean): Failure {
  if (isLate || (error instanceof Error && isTimeout(error))) return { failure: 'late' }
  return { failure: 'away', unsent: false, cause: error instanceof Error ? error.message : String(error) }
}

function authorized(
  request: UpstreamRequest,
  credentials: Credentials,
): UpstreamRequest | Promise<UpstreamRequest> {
  const held = credentials.authorization()
  return held instanceof Promise ? held.then(it => signedWith(request, it)) : signedWith(request, held)
}

function signedWith(request: UpstreamRequest, authorization: string | undefined): UpstreamRequest {
  return authorization === undefined
    ? request
    : { ...request, headers: { ...request.headers, authorization } }
}

function isUnauthorized(answer: RawAnswer | Failure): boolean {
  return 'status' in answer && answer.status === 401
}

/** Only what changes nothing is sent again, and only where nothing came back. */
function isWorthAnother({ method }: UpstreamRequest, answer: RawAnswer | Failure): boolean {
  return method === 'GET' && 'failure' in answer && answer.failure === 'away'
}

function observe(answer: RawAnswer | Failure, circuit: Breaker, { onExchange }: UpstreamOptions): void {
  const reason =
    'failure' in answer ? reasonOf(answer) : answer.status >= 502 ? `it answers ${answer.status}` : undefined
  if (reason === undefined) circuit.succeeded()
  else circuit.failed()
  onExchange(reason)
}

function reasonOf(failure: Failure): string | undefined {
  switch (failure.failure) {
    case 'away':
      return 'it does not answer'
    case 'late':
      return 'it does not answer in time'
    case 'too-large':
      return undefined
  }
}

function problemOf(failure: Failure, options: UpstreamOptions): Problem {
  switch (failure.failure) {
    case 'away':
      options.warn(`Cannot reach the upstream: ${failure.cause}`)
      return { problem: 'upstream-away' }
    case 'late':
      options.warn(`Cannot wait for the upstream any longer: ${options.timeoutMs} ms have passed`)
      return { problem: 'upstream-late' }
    case 'too-large':
      return broken(`its answer is over ${options.responseLimit} bytes`, options)
  }
}

function broken(why: string, { warn }: UpstreamOptions): Problem {
  warn(`Cannot use an answer of the upstream: ${why}`)
  return { problem: 'upstream-broken', why }
}

function encodingOf(headers: IncomingHttpHeaders): string {
  return String(headers['content-encoding'] ?? '')
    .trim()
    .toLowerCase()
}

/** A base at the root of its host is `/` itself. */
function pathUnder(basePath: string, path: string): string {
  const whole = basePath + path
  return whole.startsWith('/') ? whole : `/${whole}`
}
