import { createCachedFetch } from '../../cache/index.ts'
import { describeError, findCode } from '../../core/index.ts'
import { type Logger, NotReady, startClientSpan } from '../../web/index.ts'

export interface RelayedConfiguration {
  /** Returns the last configuration and refreshes it in the background. Throws until the first successful read. */
  current(): object
  /** Never rejects: an unreachable provider is asked again. */
  refresh(): Promise<void>
}

interface RelayedOptions {
  readonly url: string
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>
  readonly clock: () => number
  readonly warn: (text: string) => void
}

const FRESH_MS = 300_000

const RETRY_MS = 2_000

const TIMEOUT_MS = 5_000

/**
 * For a site whose tokens come from another identity provider: `.well-known/smart-configuration` directs apps to
 * it.
 */
export function relayConfiguration({ url, fetch, clock, warn }: RelayedOptions): RelayedConfiguration {
  const cache = createCachedFetch<object | undefined>({
    clock,
    async fetch(_url, previous) {
      try {
        const init = { redirect: 'error', signal: AbortSignal.timeout(TIMEOUT_MS) } as const
        const response = await fetch(url, init)
        return { value: readConfiguration(await response.json()), freshForMs: FRESH_MS }
      } catch (error) {
        const reason = describeError(error)
        warn(`Cannot read the SMART configuration at ${url}: ${reason}`)
        return { value: previous?.value, freshForMs: RETRY_MS }
      }
    },
  })

  return {
    async refresh() {
      await cache.refresh(url)
    },
    current() {
      void cache.get(url)
      const cached = cache.peek(url)?.value
      if (cached) return cached
      throw Object.assign(new NotReady('The identity provider is not yet reachable'), { statusCode: 503 })
    },
  }
}

function readConfiguration(document: unknown): object {
  const { authorization_endpoint, token_endpoint } = Object(document) as Readonly<Record<string, unknown>>
  if (typeof authorization_endpoint !== 'string' || typeof token_endpoint !== 'string')
    throw new Error('it has no authorization_endpoint or token_endpoint')
  return document as object
}

/** A hospital's own certificate authorities are not in Node's list. */
const UNTRUSTED: ReadonlySet<string> = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
])

/**
 * Logs once why another server is unreachable, and when it recovers: callers continue without it, and an untrusted
 * certificate would go unnoticed. Logs only origins, because URLs carry secrets.
 */
export function createReportingFetch(
  fetch: typeof globalThis.fetch,
  logger: Logger,
): typeof globalThis.fetch {
  const reported = new Map<string, string>()
  return async (input, init) => {
    const { origin } = new URL(input instanceof Request ? input.url : input)
    const span = startClientSpan(init?.method ?? 'GET', origin)
    try {
      const response = await fetch(input, span ? addHeaders(input, init, span.headers) : init)
      span?.end(response.status)
      if (reported.delete(origin)) logger.warn({ origin }, 'Server is reachable again')
      return response
    } catch (error) {
      span?.end()
      const reason = findReason(error)
      // The caller aborted the request.
      if (reason !== 'AbortError' && reported.get(origin) !== reason) {
        reported.set(origin, reason)
        logger.warn({ origin, reason }, `Cannot reach server${findHint(reason)}`)
      }
      throw error
    }
  }
}

function addHeaders(
  input: string | URL | Request,
  init: RequestInit | undefined,
  added: Readonly<Record<string, string>>,
): RequestInit {
  const headers = new Headers(init?.headers ?? (input instanceof Request ? input.headers : undefined))
  for (const [name, value] of Object.entries(added)) headers.set(name, value)
  return { ...init, headers }
}

function findHint(reason: string): string {
  return UNTRUSTED.has(reason) ? ': add its certificate authority to NODE_EXTRA_CA_CERTS' : ''
}

/** The message of an error, the code of its first cause, and the remedy for an untrusted certificate. */
export function describeReason(error: unknown): string {
  const reason = findReason(error)
  const message = describeError(error).replace(/\.$/, '')
  return `${message}${message.includes(reason) ? '' : ` (${reason})`}${findHint(reason)}`
}

function findReason(error: unknown): string {
  let reason = 'unknown'
  for (let cause = error; cause instanceof Error; cause = cause.cause) reason = findCode(cause) ?? cause.name
  return reason
}
