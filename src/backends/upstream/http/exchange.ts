import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher, Pool } from 'undici'

/** A request to the upstream. */
export interface UpstreamRequest {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Below the upstream's base: empty, or with a leading slash or question mark. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | undefined
}

/** A response before decoding. */
export interface RawResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

/** Why there is no usable response. */
export type TransportFailure =
  /** No response; `unsent` if the upstream cannot have received the request. */
  | { readonly failure: 'unreachable'; readonly unsent: boolean; readonly cause: string }
  | { readonly failure: 'late' }
  /** The request was not sent: the gateway has no credentials for it. */
  | { readonly failure: 'unsigned'; readonly cause: string }
  | { readonly failure: 'too-large' }

interface ExchangeOptions {
  readonly path: string
  /** By `performance.now()`. */
  readonly deadline: number
  readonly deadlines: Deadlines
  /** The longest body that is kept in memory. */
  readonly limit: number
}

/** Sends a request and collects the whole response, within a time and a size. Redirects are not followed. */
export function exchange(
  pool: Pool,
  { method, headers, body }: UpstreamRequest,
  options: ExchangeOptions,
): Promise<RawResponse | TransportFailure> {
  const { path } = options
  return new Promise(resolve => {
    const collecting = new ResponseCollector(resolve, options)
    try {
      pool.dispatch({ method, path, headers, body: body ?? null }, collecting)
    } catch (error) {
      collecting.fail({ failure: 'unreachable', unsent: true, cause: describeError(error) })
    }
  })
}

/** A class, because there is one for every request. */
class ResponseCollector implements Dispatcher.DispatchHandler, Timed {
  readonly deadline: number
  index = -1
  readonly #resolve: (result: RawResponse | TransportFailure) => void
  readonly #limit: number
  readonly #deadlines: Deadlines
  readonly #chunks: Buffer[] = []
  #size = 0
  #status = 0
  #headers: IncomingHttpHeaders = {}
  #control: Dispatcher.DispatchController | undefined
  #hasFailed = false

  constructor(
    resolve: (result: RawResponse | TransportFailure) => void,
    { deadline, limit, deadlines }: ExchangeOptions,
  ) {
    this.#resolve = resolve
    this.#limit = limit
    this.#deadlines = deadlines
    this.deadline = deadline
    deadlines.add(this)
  }

  expire(): void {
    this.fail({ failure: 'late' })
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#control = controller
    // A request that failed while it waited for a connection is never sent.
    if (this.#hasFailed) controller.abort(new Error('the exchange has ended'))
  }

  onResponseStart(_controller: unknown, status: number, headers: IncomingHttpHeaders): void {
    this.#status = status
    this.#headers = headers
    if (Number(headers['content-length'] ?? 0) > this.#limit) this.fail({ failure: 'too-large' })
  }

  onResponseData(_controller: unknown, chunk: Buffer): void {
    this.#size += chunk.length
    if (this.#size > this.#limit) this.fail({ failure: 'too-large' })
    else this.#chunks.push(chunk)
  }

  onResponseEnd(): void {
    this.#deadlines.delete(this)
    const [first] = this.#chunks
    const body = first && this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks)
    this.#resolve({ status: this.#status, headers: this.#headers, body })
  }

  onResponseError(_controller: unknown, error: Error): void {
    const unsent = this.#control === undefined
    this.fail(
      isTimeout(error) ? { failure: 'late' } : { failure: 'unreachable', unsent, cause: error.message },
    )
  }

  /** Only the first failure counts. */
  fail(failure: TransportFailure): void {
    this.#hasFailed = true
    this.#deadlines.delete(this)
    this.#resolve(failure)
    this.#control?.abort(new Error('the exchange has ended'))
  }
}

/** The message of an error with its causes: `fetch failed` alone explains nothing. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause === undefined ? error.message : `${error.message}: ${describeError(error.cause)}`
}

export function isTimeout(error: Error): boolean {
  return /^UND_ERR_(?:HEADERS|BODY|CONNECT)_TIMEOUT$/.test(String((error as { code?: unknown }).code))
}

/** Whether the upstream, or a proxy before it, failed. */
export function isFailing(answer: RawResponse | TransportFailure): boolean {
  return 'failure' in answer ? answer.failure !== 'too-large' : answer.status >= 502
}

export function isUnauthorized(answer: RawResponse | TransportFailure): boolean {
  return 'status' in answer && answer.status === 401
}

export function isLate(answer: RawResponse | TransportFailure): boolean {
  return 'failure' in answer && answer.failure === 'late'
}

/** Work with a deadline. */
export interface Timed {
  /** By `performance.now()`. */
  readonly deadline: number
  /** Its index in the list of all work. Only `Deadlines` sets it. */
  index: number
  expire(): void
}

/** One timer for all exchanges: one for each would be a good part of its cost. */
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
