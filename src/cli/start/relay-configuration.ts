import { createCachedFetch } from '../../cache/index.ts'
import { describeError, MINUTE_MS } from '../../core/index.ts'
import { NotReady } from '../../web/http/index.ts'

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

const FRESH_MS = 5 * MINUTE_MS

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
