import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher, Pool } from 'undici'
import type { Deadlines, Timed } from './deadlines.ts'

/** A request as the upstream gets it. */
export interface UpstreamRequest {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Below the upstream's base: empty, or with a leading slash or question mark. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | undefined
}

/** What came back, as it came. */
export interface RawResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

/** Why nothing came back that could be used. */
export type TransportFailure =
  /** Nothing was answered; `unsent` when the request cannot have been done. */
  | { readonly failure: 'away'; readonly unsent: boolean; readonly cause: string }
  | { readonly failure: 'late' }
  /** Nothing was sent: the gateway has no credentials to send it with. */
  | { readonly failure: 'unsigned'; readonly cause: string }
  | { readonly failure: 'too-large' }

export interface ExchangeOptions {
  readonly path: string
  readonly timeoutMs: number
  readonly deadlines: Deadlines
  /** The longest body that is kept in memory. */
  readonly limit: number
}

/** One request and its whole answer, within a time and a size. Redirects are answers like any other. */
export function exchange(
  pool: Pool,
  { method, headers, body }: UpstreamRequest,
  options: ExchangeOptions,
): Promise<RawResponse | TransportFailure> {
  const { path } = options
  return new Promise(resolve => {
    const collecting = new Collecting(resolve, options)
    try {
      pool.dispatch({ method, path, headers, body: body ?? null }, collecting)
    } catch (error) {
      collecting.fail({ failure: 'away', unsent: true, cause: messageOf(error) })
    }
  })
}

/** Collects an answer; a class, since there is one for every request. */
class Collecting implements Dispatcher.DispatchHandler, Timed {
  readonly deadline: number
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
    { timeoutMs, limit, deadlines }: ExchangeOptions,
  ) {
    this.#resolve = resolve
    this.#limit = limit
    this.#deadlines = deadlines
    this.deadline = performance.now() + timeoutMs
    deadlines.add(this)
  }

  late(): void {
    this.fail({ failure: 'late' })
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#control = controller
    // What was answered while it waited for a connection is never sent.
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
    this.fail(isTimeout(error) ? { failure: 'late' } : { failure: 'away', unsent, cause: error.message })
  }

  /** The first failure counts; what the end of the exchange then brings does not. */
  fail(failure: TransportFailure): void {
    this.#hasFailed = true
    this.#deadlines.delete(this)
    this.#resolve(failure)
    this.#control?.abort(new Error('the exchange has ended'))
  }
}

/** What an error says, and what it came from: `fetch failed` alone tells nobody what to do. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause === undefined ? error.message : `${error.message}: ${messageOf(error.cause)}`
}

export function isTimeout(error: Error): boolean {
  return /^UND_ERR_(?:HEADERS|BODY|CONNECT)_TIMEOUT$/.test(String((error as { code?: unknown }).code))
}

/** Whether the upstream, or a proxy before it, did not do its work. */
export function isFailing(answer: RawResponse | TransportFailure): boolean {
  return 'failure' in answer ? answer.failure !== 'too-large' : answer.status >= 502
}

export function isUnauthorized(answer: RawResponse | TransportFailure): boolean {
  return 'status' in answer && answer.status === 401
}

export function isLate(answer: RawResponse | TransportFailure): boolean {
  return 'failure' in answer && answer.failure === 'late'
}
