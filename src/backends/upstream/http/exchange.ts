import type { IncomingHttpHeaders } from 'node:http'
import { Readable } from 'node:stream'
import type { Dispatcher, Pool } from 'undici'
import { describeError, type Failed, fail, isFailure, isTimeout } from '../../../core/index.ts'
import { type CallerConnection, watchConnection } from '../../../fhir-api/index.ts'

export interface UpstreamRequest {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Below the upstream's base: empty, or with a leading slash or question mark. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | undefined
  /** A body that still arrives from the client. */
  readonly content?: Readable | undefined
  /** Ends the exchange early. */
  readonly signal?: AbortSignal | undefined
}

/** A response before decoding. */
export interface RawResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** A stream only if the options allow it. */
  readonly body: Buffer | Readable
}

/** Why there is no usable response. */
export type TransportFailure = Failed & TransportReason

type TransportReason =
  /** No response; `unsent` if the upstream cannot have received the request. */
  | { readonly reason: 'unreachable'; readonly unsent: boolean; readonly cause: string }
  | { readonly reason: 'late' }
  /** The request was not sent: the gateway has no credentials for it. */
  | { readonly reason: 'unsigned'; readonly cause: string }
  | { readonly reason: 'too-large' }
  /** The caller has disconnected, or the gateway no longer needs the response. */
  | { readonly reason: 'abandoned' }

/** How much of a response is streamed, and for how long. */
export interface StreamLimit {
  readonly bytes: number
  readonly ms: number
}

export interface ExchangeOptions {
  /** By `performance.now()`. */
  readonly deadline: number
  readonly deadlines: Deadlines
  /** The longest body that is kept in memory. */
  readonly limit: number
  /** The exchange ends when this connection closes. */
  readonly connection?: CallerConnection | undefined
  /** If set, a longer body is streamed. Then this limits the body and each pause in it, instead of the deadline. */
  readonly stream?: StreamOptions | undefined
}

export interface StreamOptions extends StreamLimit {
  readonly pauseMs: number
  /** Whether the deadline applies to the headers alone, also if the body is short. */
  readonly endsDeadline: boolean
}

/**
 * Sends a request and collects the response. Bytes, time and the presence of the caller limit every response. Redirects are
 * not followed.
 */
export function exchange(
  pool: Pool,
  request: UpstreamRequest,
  path: string,
  options: ExchangeOptions,
): Promise<RawResponse | TransportFailure> {
  const { method, headers, content, body = content ?? null, signal } = request
  const { connection, stream } = options
  if (connection?.destroyed || signal?.aborted) return Promise.resolve(fail({ reason: 'abandoned' }))
  return new Promise(resolve => {
    const collecting = new ResponseCollector(resolve, options)
    // The caller's content has ended with an error, which says nothing about the upstream.
    content?.once('error', () => collecting.fail({ reason: 'abandoned' }))
    signal?.addEventListener('abort', () => collecting.fail({ reason: 'abandoned' }), { once: true })
    try {
      pool.dispatch({ method, path, headers, body, bodyTimeout: stream?.pauseMs ?? 0 }, collecting)
    } catch (error) {
      collecting.fail({ reason: 'unreachable', unsent: true, cause: describeError(error) })
    }
  })
}

type Resolve = (result: RawResponse | TransportFailure) => void

/** A class, because there is one for every request. */
class ResponseCollector implements Dispatcher.DispatchHandler, Timed {
  deadline: number
  index = -1
  readonly #stopWatching: (() => void) | undefined
  readonly #resolve: Resolve
  readonly #options: ExchangeOptions
  readonly #chunks: Buffer[] = []
  #size = 0
  #status = 0
  #headers: IncomingHttpHeaders = {}
  #control: Dispatcher.DispatchController | undefined
  #hasFailed = false
  /** The body, once it is too long for memory. */
  #stream: Readable | undefined

  constructor(resolve: Resolve, options: ExchangeOptions) {
    this.#resolve = resolve
    this.#options = options
    this.deadline = options.deadline
    options.deadlines.add(this)
    const { connection } = options
    this.#stopWatching = connection && watchConnection(connection, () => this.fail({ reason: 'abandoned' }))
  }

  expire(): void {
    this.fail({ reason: 'late' })
  }

  #finish(): void {
    this.#options.deadlines.delete(this)
    this.#stopWatching?.()
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#control = controller
    // A request that failed while it waited for a connection is never sent.
    if (this.#hasFailed) controller.abort(ENDED)
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
  ): void {
    const { limit, stream } = this.#options
    this.#status = status
    this.#headers = headers
    if (stream?.endsDeadline) this.#extendDeadline(stream)
    if (Number(headers['content-length'] ?? 0) > limit) this.#exceed(controller)
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#size += chunk.length
    if (this.#stream) {
      if (this.#size > (this.#options.stream?.bytes ?? 0)) this.fail({ reason: 'too-large' })
      else if (!this.#stream.push(chunk)) controller.pause()
      return
    }
    this.#chunks.push(chunk)
    if (this.#size > this.#options.limit) this.#exceed(controller)
  }

  onResponseEnd(): void {
    this.#finish()
    if (this.#stream) this.#stream.push(null)
    else {
      const [first] = this.#chunks
      this.#respond(first && this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks))
    }
  }

  onResponseError(_controller: unknown, error: Error): void {
    this.#finish()
    const unsent = this.#control === undefined
    // Later, because the receiver of a new stream does not listen to it yet.
    if (this.#stream) setImmediate(() => this.#stream?.destroy(error))
    else
      this.fail(
        isTimeout(error)
          ? { reason: 'late' }
          : { reason: 'unreachable', unsent, cause: describeError(error) },
      )
  }

  /** Only the first failure counts. */
  fail(failure: TransportReason): void {
    this.#hasFailed = true
    this.#finish()
    this.#resolve(fail(failure))
    this.#stream?.destroy(new Error(`the response is ${failure.reason}`))
    this.#control?.abort(ENDED)
  }

  #exceed(controller: Dispatcher.DispatchController): void {
    const { stream } = this.#options
    if (!stream) this.fail({ reason: 'too-large' })
    else {
      this.#extendDeadline(stream)
      this.#stream = createStream(controller)
      for (const chunk of this.#chunks) this.#stream.push(chunk)
      this.#respond(this.#stream)
    }
  }

  #extendDeadline({ ms }: StreamOptions): void {
    const { deadlines } = this.#options
    deadlines.delete(this)
    this.deadline = performance.now() + ms
    deadlines.add(this)
  }

  #respond(body: Buffer | Readable): void {
    this.#resolve({ status: this.#status, headers: this.#headers, body })
  }
}

const ENDED = new Error('the exchange has ended')

function createStream(controller: Dispatcher.DispatchController): Readable {
  return new Readable({
    read: () => controller.resume(),
    destroy(error, done) {
      controller.abort(error ?? ENDED)
      done(error)
    },
  })
}

export type ExchangeOutcome = Pick<RawResponse, 'status' | 'headers'> | TransportFailure

/** Whether a request changes data. */
export function isChange({ method, path }: UpstreamRequest): boolean {
  return method !== 'GET' && method !== 'HEAD' && !path.endsWith('/_search')
}

/** Whether a request may have been carried out. One with a 4xx was not (RFC 9110, 15.5). */
export function mayBeDone(answer: ExchangeOutcome): boolean {
  if (!isFailure(answer)) return answer.status < 400 || answer.status >= 500
  switch (answer.reason) {
    case 'unreachable':
      return !answer.unsent
    case 'unsigned':
      return false
    case 'late':
    case 'too-large':
    case 'abandoned':
      return true
  }
}

/** Whether a request may be sent again: never a change that may have been carried out (GATEWAY-8). */
export function mayRepeat(request: UpstreamRequest, answer: ExchangeOutcome): boolean {
  return !isChange(request) || !mayBeDone(answer)
}

/** Whether the upstream, or a proxy before it, failed. */
export function isFailing(answer: ExchangeOutcome): boolean {
  if (!isFailure(answer)) return answer.status >= 502
  return answer.reason !== 'too-large' && answer.reason !== 'abandoned'
}

/** Whether the exchange says nothing about the upstream, because its caller has ended it. */
export function isAbandoned(answer: ExchangeOutcome): boolean {
  return isFailure(answer) && answer.reason === 'abandoned'
}

export function isUnauthorized(answer: ExchangeOutcome): boolean {
  return !isFailure(answer) && answer.status === 401
}

export function isLate(answer: ExchangeOutcome): boolean {
  return isFailure(answer) && answer.reason === 'late'
}

/** Work with a deadline. */
export interface Timed {
  /** By `performance.now()`. */
  readonly deadline: number
  /** Its index in the list of all work. Only `Deadlines` sets it. */
  index: number
  expire(): void
}

/** One timer for all exchanges: a timer for each would be a large part of the cost of an exchange. */
export interface Deadlines {
  add(timed: Timed): void
  delete(timed: Timed): void
}

const NEVER = Number.POSITIVE_INFINITY

export function createDeadlines(): Deadlines {
  // Not a Set: V8 links the tables that a Set outgrows, which keeps deleted members in memory.
  const underWay: Timed[] = []
  let timer: NodeJS.Timeout | undefined
  let due = NEVER

  function wake(at: number): void {
    clearTimeout(timer)
    due = at
    timer = setTimeout(expireLate, Math.max(at - performance.now(), 0)).unref()
  }

  function expireLate(): void {
    due = NEVER
    const now = performance.now()
    const late = underWay.filter(({ deadline }) => deadline <= now)
    for (const timed of late) timed.expire()
    const next = underWay.reduce((earliest, { deadline }) => Math.min(earliest, deadline), NEVER)
    if (next < due) wake(next)
  }

  return {
    add(timed) {
      timed.index = underWay.push(timed) - 1
      if (timed.deadline < due) wake(timed.deadline)
    },
    delete(timed) {
      const last = underWay.at(-1)
      if (!last || underWay[timed.index] !== timed) return
      underWay[timed.index] = last
      last.index = timed.index
      underWay.pop()
    },
  }
}
