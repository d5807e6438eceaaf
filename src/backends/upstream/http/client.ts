import { Readable } from 'node:stream'
import { isFailure, scrub } from '../../../core/index.ts'
import { failFor } from '../../../fhir/index.ts'
import type { Failure } from '../../../fhir-api/index.ts'
import { startClientSpan } from '../../../web/http/index.ts'
import { CONTENT_MS, SHARE_OF_GRANT, UPSTREAM_WAITING_PER_GRANT, WAITING_TIME } from '../limits.ts'
import { type Breaker, createBreaker } from './breaker.ts'
import {
  createDeadlines,
  type ExchangeOptions,
  type ExchangeOutcome,
  isAbandoned,
  isChange,
  isFailing,
  isLate,
  isUnauthorized,
  mayRepeat,
  type RawResponse,
  type StreamLimit,
  type StreamOptions,
  type TransportFailure,
  type UpstreamRequest,
} from './exchange.ts'
import {
  failTooLarge,
  type PassedResponse,
  readPassed,
  type SkimmedResponse,
  type Skimming,
  skimResponse,
  type UpstreamResponse,
} from './read-response.ts'
import { addDoubt } from './response.ts'
import { type SendOptions, sendOnce } from './send.ts'
import { createSlots, type NoSlot, type UpstreamCaller } from './slots.ts'
import type { UrlRewriter } from './urls.ts'

/** The HTTP client of the upstream FHIR server. */
export interface Upstream {
  /** Sends a request and reads the whole response. Without a caller it is the gateway's own request. */
  ask(request: UpstreamRequest, caller?: UpstreamCaller): Promise<UpstreamResponse | Failure>
  /** Sends a request as `ask` does, but streams a long response. */
  pass(request: UpstreamRequest, caller?: UpstreamCaller): Promise<PassedResponse | Failure>
  /** Sends a request as `ask` does, but leaves out long strings of a long response. */
  skim(
    request: UpstreamRequest,
    skimming: Skimming,
    caller?: UpstreamCaller,
  ): Promise<SkimmedResponse | Failure>
  /**
   * Sends a request regardless of earlier failures, and waits for half of the time-out. A response closes the circuit; a
   * late one does not open it.
   */
  probe(request: ProbeRequest): Promise<ExchangeOutcome>
}

export type ProbeRequest = Pick<UpstreamRequest, 'path'> & { readonly method: 'GET' | 'HEAD' }

export interface UpstreamOptions extends SendOptions {
  readonly connections: number
  /** Of the upstream. */
  readonly origin: string
  readonly urls: UrlRewriter
  readonly timeoutMs: number
  readonly streamLimit: StreamLimit
  readonly clock: () => number
  /** Called with the outcome of every exchange except probes and those that the caller has ended. */
  readonly onExchange: (answer: ExchangeOutcome, method: string, seconds: number) => void
  readonly warn: (text: string) => void
}

const TRIES = 3

export function createClient(options: UpstreamOptions): Upstream {
  const { clock, connections, timeoutMs, responseLimit: limit, streamLimit } = options
  const circuit = createBreaker(clock)
  const deadlines = createDeadlines()
  const toPass: StreamOptions = { ...streamLimit, pauseMs: timeoutMs, endsDeadline: true }
  const toSkim: StreamOptions = { ...toPass, endsDeadline: false }
  // Some time has to be left for the response.
  const waitingMs = timeoutMs * WAITING_TIME
  const slots = createSlots(connections, Math.max(1, Math.floor(connections * SHARE_OF_GRANT)), deadlines)

  /** Sends a request once, as part of the caller's trace. */
  function send(request: UpstreamRequest, limits: ExchangeOptions): Sent {
    const span = startClientSpan(request.method, options.origin)
    if (!span) return sendOnce(request, options, limits)
    const traced = { ...request, headers: { ...request.headers, ...span.headers } }
    return sendOnce(traced, options, limits).then(answer => {
      span.end(isFailure(answer) ? undefined : answer.status)
      return answer
    })
  }

  /** `began` is evaluated before `answer` is awaited. */
  function recordExchange({ method }: UpstreamRequest, began: number, answer: Awaited<Sent>): Awaited<Sent> {
    if (isAbandoned(answer)) return answer
    observe(answer, circuit, options)
    options.onExchange(answer, method, (performance.now() - began) / 1000)
    return answer
  }

  async function sendWithRetries(request: UpstreamRequest, limits: ExchangeOptions): Sent {
    let isRenewed = false
    for (let tries = 1; ; tries++) {
      const answer = recordExchange(request, performance.now(), await send(request, limits))
      if (isStreamed(request) || !mayRepeat(request, answer)) return answer
      // The gateway's credentials may have ended early: they are renewed once.
      if (isUnauthorized(answer) && !isRenewed) isRenewed = true
      else if (!isRetryable(request, answer) || tries >= TRIES || performance.now() >= limits.deadline)
        return answer
      if (!isFailure(answer) && answer.body instanceof Readable) answer.body.destroy()
    }
  }

  function limitExchange(
    request: UpstreamRequest,
    { connection }: UpstreamCaller,
    stream: StreamOptions | undefined,
  ): ExchangeOptions {
    const deadline = performance.now() + timeoutMs + (isStreamed(request) ? CONTENT_MS : 0)
    // The outcome of a change must become known, even if its caller does not wait for it.
    return { deadline, deadlines, limit, stream, connection: isChange(request) ? undefined : connection }
  }

  function explainFailure(failure: TransportFailure): Failure {
    // The watch logs a lasting failure once.
    const warn = circuit.isOpen() ? () => undefined : options.warn
    return explainTransportFailure(failure, { ...options, warn })
  }

  /** Sends a request in the caller's turn, and reads the response. */
  async function receive<Read>(
    request: UpstreamRequest,
    caller: UpstreamCaller,
    stream: StreamOptions | undefined,
    read: (response: PassedResponse) => Read | Promise<Read>,
  ): Promise<Read | Failure> {
    if (!circuit.allows()) return failFor('upstream-unreachable')
    const limits = limitExchange(request, caller, stream)
    const taken = slots.take(caller, waitingMs)
    const release = taken instanceof Promise ? await taken : taken
    if (typeof release === 'string') return NO_SLOT[release]
    const answer = await sendWithRetries(request, limits)
    if (!isFailure(answer) && answer.body instanceof Readable) answer.body.once('close', release)
    else release()
    if (isFailure(answer)) return addDoubt(explainFailure(answer), request, answer)
    const decoding = readPassed(answer, options)
    const response = decoding instanceof Promise ? await decoding : decoding
    if (isFailure(response)) return addDoubt(response, request, answer)
    if (REFUSALS.has(response.status)) logRefusal(request, response, options)
    return read(response)
  }

  return {
    pass: (request, caller = GATEWAY) => receive(request, caller, toPass, response => response),
    skim: (request, skimming, caller = GATEWAY) =>
      receive(request, caller, toSkim, response => skimResponse(response, skimming, options)),
    ask: (request, caller = GATEWAY) =>
      receive<UpstreamResponse | Failure>(request, caller, undefined, response => {
        const { status, headers, body } = response
        if (typeof body === 'string') return { status, headers, text: body }
        body.destroy()
        return addDoubt(failTooLarge(options), request, response)
      }),
    async probe(request) {
      const probe = { ...request, headers: { accept: 'application/fhir+json' } }
      const answer = await send(probe, { deadline: performance.now() + timeoutMs / 2, deadlines, limit })
      if (!isLate(answer)) observe(answer, circuit, options)
      return answer
    },
  }
}

/** A body that is a stream is sent once. */
function isStreamed({ content }: UpstreamRequest): boolean {
  return content !== undefined
}

type Sent = Promise<RawResponse | TransportFailure>

const GATEWAY: UpstreamCaller = { holder: '', connection: { destroyed: false, once: () => undefined } }

export const DISCONNECTED: Failure = failFor('client-gone-from-upstream')

const NO_SLOT = {
  abandoned: DISCONNECTED,
  late: failFor('upstream-late'),
  crowded: failFor('grant-requests-too-many', { limit: UPSTREAM_WAITING_PER_GRANT }),
} satisfies Record<NoSlot, Failure>

/** Only reads are sent again, and only where there was no response. */
function isRetryable({ method }: UpstreamRequest, answer: ExchangeOutcome): boolean {
  return method === 'GET' && isFailure(answer) && answer.reason === 'unreachable'
}

function observe(answer: ExchangeOutcome, circuit: Breaker, { credentials }: UpstreamOptions): void {
  if (isFailing(answer)) circuit.failed()
  else circuit.succeeded()
  if (isUnauthorized(answer)) credentials.forget()
}

// The caller or the gateway has sent something that the upstream does not accept.
const REFUSALS: ReadonlySet<number> = new Set([400, 405, 413, 415, 422, 501])
const MAX_LOGGED_CHARACTERS = 500

/** A limited caller does not see the upstream's explanation, so the log has it. */
function logRefusal(
  { headers }: UpstreamRequest,
  { status, body }: PassedResponse,
  { warn }: UpstreamOptions,
): void {
  const reason = typeof body === 'string' ? scrub(body.slice(0, MAX_LOGGED_CHARACTERS)) : 'a long response'
  warn(`The upstream refused request ${headers['x-request-id'] ?? ''} with ${status}: ${reason}`)
}

function explainTransportFailure(failure: TransportFailure, options: UpstreamOptions): Failure {
  switch (failure.reason) {
    case 'unreachable':
      options.warn(`Cannot reach the upstream: ${failure.cause}`)
      return failFor('upstream-unreachable')
    case 'late':
      options.warn(`Cannot get a response from the upstream within ${options.timeoutMs} ms`)
      return failFor('upstream-late')
    case 'unsigned':
      options.warn(failure.cause)
      return failFor('upstream-unreachable')
    case 'too-large':
      return failTooLarge(options)
    case 'abandoned':
      return DISCONNECTED
  }
}
