import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher, Pool } from 'undici'

/** A request as the upstream gets it. */
export interface UpstreamRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Below the upstream's base: empty, or with a leading slash or question mark. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | undefined
}

/** What came back, as it came. */
export interface RawAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

/** Why nothing came back that could be used. */
export type Failure =
  /** Nothing was answered; `unsent` when the request cannot have been done. */
  | { readonly failure: 'away'; readonly unsent: boolean; readonly cause: string }
  | { readonly failure: 'late' }
  | { readonly failure: 'too-large' }

export interface ExchangeOptions {
  readonly path: string
  readonly timeoutMs: number
  /** The longest body that is kept in memory. */
  readonly limit: number
}

/** One request and its whole answer, within a time and a size. Redirects are answers like any other. */
export function exchange(
  pool: Pool,
  { method, headers, body }: UpstreamRequest,
  { path, timeoutMs, limit }: ExchangeOptions,
): Promise<RawAnswer | Failure> {
  return new Promise(resolve => {
    const chunks: Buffer[] = []
    let size = 0
    let started: { status: number; headers: IncomingHttpHeaders } | undefined
    let sent = false
    let control: Dispatcher.DispatchController | undefined
    const timer = setTimeout(() => end({ failure: 'late' }), timeoutMs)

    function end(result: RawAnswer | Failure): void {
      clearTimeout(timer)
      resolve(result)
      if ('failure' in result) control?.abort(new Error('the exchange has ended'))
    }

    const handler: Dispatcher.DispatchHandler = {
      onRequestStart(controller) {
        control = controller
        sent = true
      },
      onResponseStart(_controller, status, found) {
        started = { status, headers: found }
        if (Number(found['content-length'] ?? 0) > limit) end({ failure: 'too-large' })
      },
      onResponseData(_controller, chunk) {
        size += chunk.length
        if (size > limit) end({ failure: 'too-large' })
        else chunks.push(chunk)
      },
      onResponseEnd() {
        if (started)
          end({ ...started, body: chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks) })
      },
      onResponseError(_controller, error) {
        end(isTimeout(error) ? { failure: 'late' } : { failure: 'away', unsent: !sent, cause: error.message })
      },
    }
    pool.dispatch({ method, path, headers, body: body ?? null }, handler)
  })
}

export function isTimeout(error: Error): boolean {
  return /^UND_ERR_(?:HEADERS|BODY|CONNECT)_TIMEOUT$/.test(String((error as { code?: unknown }).code))
}
