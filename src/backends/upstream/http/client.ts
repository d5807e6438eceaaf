import type { IncomingHttpHeaders } from 'node:http'
import { Readable } from 'node:stream'
import { fail } from '../../../fhir/index.ts'
import { type Failure, isFailure } from '../../../fhir-api/index.ts'
import { scrub, startClientSpan } from '../../../web/index.ts'
import { SHARE_OF_GRANT, UPSTREAM_WAITING_PER_GRANT, WAITING_TIME } from '../limits.ts'
import { decode, decodeStream, pipe } from './decode.ts'
import {
  createDeadlines,
  type ExchangeOutcome,
  isFailing,
  isLate,
  isUnauthorized,
  type RawResponse,
  type TransportFailure,
  type UpstreamRequest,
} from './exchange.ts'
import { type SendOptions, sendOnce } from './send.ts'
import { type Caller, createSlots, type NoSlot } from './slots.ts'
import type { UrlRewriter } from './urls.ts'

/** A decoded response with public URLs. */
export interface UpstreamResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

/** The same, with a stream as its body if that is too long for memory. */
export interface PassedResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string | Readable
}

/** The HTTP client of the upstream FHIR server. */
export interface Upstream {
  /** Sends a request and reads the whole response. Without a caller it is the gateway's own request. */
  ask(request: UpstreamRequest, caller?: Caller): Promise<UpstreamResponse | Failure>
  /** The same, but streams a long response. */
  pass(request: UpstreamRequest, caller?: Caller): Promise<PassedResponse | Failure>
  /**
   * Sends a request regardless of earlier failures, and waits for half of the time-out. A response closes the circuit; a
   * late one does not open it.
   */
  probe(request: Probe): Promise<ExchangeOutcome>
}

export type Probe = Pick<UpstreamRequest, 'path'> & { readonly method: 'GET' | 'HEAD' }

export interface UpstreamOptions extends SendOptions {
  readonly connections: number
  /** Of the upstream. */
  readonly origin: string
  readonly urls: UrlRewriter
  readonly timeoutMs: number
  readonly clock: () => number
  /** Called with the outcome of every exchange except probes. */
  readonly onExchange: (answer: ExchangeOutcome, method: string, seconds: number) => void
  readonly warn: (text: string) => void
}

const TRIES = 3

export function createClient(options: UpstreamOptions): Upstream {
  const { clock, timeoutMs, responseLimit: limit } = options
  const circuit = createBreaker(clock)
  const deadlines = createDeadlines()
  const send = (request: UpstreamRequest, deadline: number) =>
    trace(request, traced => sendOnce(traced, options, { deadline, deadlines, limit }))
  const sendOrStream = (request: UpstreamRequest, deadline: number) =>
    trace(request, traced => sendOnce(traced, options, { deadline, deadlines, limit, pauseMs: timeoutMs }))
  const { connections } = options
  // Some time has to be left for the response.
  const waitingMs = timeoutMs * WAITING_TIME
  const slots = createSlots(connections, Math.max(1, Math.floor(connections * SHARE_OF_GRANT)), deadlines)

  /** Passes the trace of the caller on. */
  function trace<A extends ExchangeOutcome>(
    request: UpstreamRequest,
    attempt: (request: UpstreamRequest) => Promise<A>,
  ): Promise<A> {
    const span = startClientSpan(request.method, options.origin)
    if (!span) return attempt(request)
    return attempt({ ...request, headers: { ...request.headers, ...span.headers } }).then(answer => {
      span.end('status' in answer ? answer.status : undefined)
      return answer
    })
  }

  /** `began` is evaluated before `answer` is awaited. */
  function recordExchange<A extends ExchangeOutcome>(
    { method }: UpstreamRequest,
    began: number,
    answer: A,
  ): A {
    observe(answer, circuit, options)
    options.onExchange(answer, method, (performance.now() - began) / 1000)
    return answer
  }

  async function retry<A extends ExchangeOutcome>(
    request: UpstreamRequest,
    first: A,
    deadline: number,
    attempt: (request: UpstreamRequest, deadline: number) => Promise<A>,
  ): Promise<A> {
    let answer = first
    let renewed = false
    for (let tries = 1; ; tries++) {
      // The gateway's credentials may have ended early: they are renewed once.
      if (isUnauthorized(answer) && !renewed) renewed = true
      else if (!isRetryable(request, answer) || tries >= TRIES || performance.now() >= deadline) return answer
      if ('body' in answer && answer.body instanceof Readable) answer.body.destroy()
      answer = recordExchange(request, performance.now(), await attempt(request, deadline))
    }
  }

  function explainFailure(failure: TransportFailure, request: UpstreamRequest): Failure {
    // The watch logs a lasting failure once.
    const warn = circuit.isOpen() ? () => undefined : options.warn
    return explainTransportFailure(failure, request, { ...options, warn })
  }

  return {
    async ask(request, caller = GATEWAY) {
      if (!circuit.allows()) return fail({ problem: 'upstream-unreachable' })
      const deadline = performance.now() + timeoutMs
      const taken = slots.take(caller, waitingMs)
      const release = taken instanceof Promise ? await taken : taken
      if (typeof release === 'string') return NO_SLOT[release]
      try {
        const first = recordExchange(request, performance.now(), await send(request, deadline))
        const isFinal = !isUnauthorized(first) && !isRetryable(request, first)
        const answer = isFinal ? first : await retry(request, first, deadline, send)
        if ('failure' in answer) return explainFailure(answer, request)
        const response = await readResponse(answer, options)
        if (!isFailure(response) && REFUSALS.has(response.status)) logRefusal(request, response, options)
        return response
      } finally {
        release()
      }
    },
    async pass(request, caller = GATEWAY) {
      if (!circuit.allows()) return fail({ problem: 'upstream-unreachable' })
      const deadline = performance.now() + timeoutMs
      const release = await slots.take(caller, waitingMs)
      if (typeof release === 'string') return NO_SLOT[release]
      const first = recordExchange(request, performance.now(), await sendOrStream(request, deadline))
      const answer = await retry(request, first, deadline, sendOrStream)
      if ('body' in answer && answer.body instanceof Readable) answer.body.once('close', release)
      else release()
      return 'failure' in answer ? explainFailure(answer, request) : readPassed(answer, options)
    },
    async probe(request) {
      const probe = { ...request, headers: { accept: 'application/fhir+json' } }
      const answer = await send(probe, performance.now() + timeoutMs / 2)
      if (!isLate(answer)) observe(answer, circuit, options)
      return answer
    },
  }
}

const GATEWAY: Caller = { holder: '', connection: { destroyed: false } }

const NO_SLOT = {
  late: fail({ problem: 'upstream-late' }),
  crowded: fail({ problem: 'too-many-waiting', limit: UPSTREAM_WAITING_PER_GRANT }),
} satisfies Record<NoSlot, Failure>

async function readPassed(
  { status, headers, body }: RawResponse<Buffer | Readable>,
  options: UpstreamOptions,
): Promise<PassedResponse | Failure> {
  const encoding = getEncoding(headers)
  // An empty body may be declared as compressed all the same (HAPI, `Prefer: return=minimal`).
  if (Buffer.isBuffer(body) && body.length === 0) return { status, headers, body: '' }
  const whole = Buffer.isBuffer(body) ? await decode(body, encoding, options.responseLimit) : 'too-large'
  if (Buffer.isBuffer(whole)) return { status, headers, body: options.urls.toPublic(whole.toString('utf8')) }
  const stream = Buffer.isBuffer(body) ? Readable.from([body]) : body
  const decoded = whole && decodeStream(stream, encoding)
  if (decoded) return { status, headers, body: pipe(decoded, options.urls.createPublicStream()) }
  stream.destroy()
  return failBroken(BAD_ENCODING, options)
}

const BAD_ENCODING = 'its body has an unknown or invalid content encoding'

function readResponse(
  answer: RawResponse,
  options: UpstreamOptions,
): UpstreamResponse | Failure | Promise<UpstreamResponse | Failure> {
  const body = decode(answer.body, getEncoding(answer.headers), options.responseLimit)
  return body instanceof Promise
    ? body.then(it => toUpstreamResponse(answer, it, options))
    : toUpstreamResponse(answer, body, options)
}

function toUpstreamResponse(
  { status, headers }: RawResponse,
  body: Buffer | 'too-large' | undefined,
  options: UpstreamOptions,
): UpstreamResponse | Failure {
  if (body === 'too-large') return failTooLarge(options)
  if (!body) return failBroken(BAD_ENCODING, options)
  return { status, headers, text: options.urls.toPublic(body.toString('utf8')) }
}

/** Only requests that change nothing are sent again, and only where there was no response. */
function isRetryable({ method }: UpstreamRequest, answer: ExchangeOutcome): boolean {
  return method === 'GET' && 'failure' in answer && answer.failure === 'unreachable'
}

function observe(answer: ExchangeOutcome, circuit: Breaker, { credentials }: UpstreamOptions): void {
  if (isFailing(answer)) circuit.failed()
  else circuit.succeeded()
  if (isUnauthorized(answer)) credentials.forget()
}

// The caller or the gateway has sent something that the upstream does not accept.
const REFUSALS: ReadonlySet<number> = new Set([400, 405, 413, 415, 422, 501])
const LONGEST_LOGGED = 500

/** A limited caller does not see the upstream's explanation, so the log has it. */
function logRefusal(
  { headers }: UpstreamRequest,
  { status, text }: UpstreamResponse,
  { warn }: UpstreamOptions,
): void {
  const reason = scrub(text.slice(0, LONGEST_LOGGED))
  warn(`The upstream refused request ${headers['x-request-id'] ?? ''} with ${status}: ${reason}`)
}

/** Whether a request changes data, so that it may have done so although there is no response. */
function isChange({ method, path }: UpstreamRequest): boolean {
  return method !== 'GET' && !path.endsWith('/_search')
}

function explainTransportFailure(
  failure: TransportFailure,
  request: UpstreamRequest,
  options: UpstreamOptions,
): Failure {
  const done = isChange(request) && { mayBeDone: true as const }
  switch (failure.failure) {
    case 'unreachable':
      options.warn(`Cannot reach the upstream: ${failure.cause}`)
      return fail({ problem: 'upstream-unreachable', ...(!failure.unsent && done) })
    case 'late':
      options.warn(`Cannot get a response from the upstream within ${options.timeoutMs} ms`)
      return fail({ problem: 'upstream-late', ...done })
    case 'unsigned':
      options.warn(failure.cause)
      return fail({ problem: 'upstream-unreachable' })
    case 'too-large':
      return failTooLarge(options)
  }
}

function failBroken(why: string, { warn }: UpstreamOptions): Failure {
  warn(`Cannot use a response of the upstream: ${why}`)
  return fail({ problem: 'upstream-broken', why })
}

function failTooLarge({ warn, responseLimit }: UpstreamOptions): Failure {
  const excess = `it is larger than ${responseLimit} bytes`
  warn(`Cannot use a response of the upstream: ${excess}`)
  return fail({ problem: 'upstream-broken', why: excess, excess })
}

function getEncoding(headers: IncomingHttpHeaders): string {
  return String(headers['content-encoding'] ?? '')
    .trim()
    .toLowerCase()
}

/** Sends no requests after several failures in a row, and tries again after a pause. */
interface Breaker {
  /** Whether a request may be sent. After the pause one is, and its outcome decides. */
  allows(): boolean
  succeeded(): void
  failed(): void
  isOpen(): boolean
}

const FAILURES = 5
const PAUSE_MS = 2_000

function createBreaker(clock: () => number): Breaker {
  let failures = 0
  let openUntil = Number.NEGATIVE_INFINITY
  return {
    allows() {
      if (failures < FAILURES) return true
      if (clock() < openUntil) return false
      openUntil = clock() + PAUSE_MS
      return true
    },
    succeeded() {
      failures = 0
    },
    failed() {
      failures += 1
      if (failures >= FAILURES) openUntil = clock() + PAUSE_MS
    },
    isOpen: () => failures >= FAILURES,
  }
}
