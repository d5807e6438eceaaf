import { createCachedFetch } from '../../cache/index.ts'
import { NotReady } from '../../web/index.ts'

/** The SMART configuration of another identity provider, as it tells it itself. */
export interface RelayedConfiguration {
  /** What it said last; it is asked anew in the background. Throws while it was never reached. */
  current(): object
  /** Asks it. Never fails: one that is away is asked again. */
  refresh(): Promise<void>
}

export interface RelayedOptions {
  readonly url: string
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>
  readonly clock: () => number
  readonly warn: (text: string) => void
}

const FRESH_MS = 300_000
const RETRY_MS = 2_000
const TIMEOUT_MS = 5_000

/** For a site whose tokens come from elsewhere: apps that read `.well-known/smart-configuration` are led there. */
export function relayConfiguration({ url, fetch, clock, warn }: RelayedOptions): RelayedConfiguration {
  const cache = createCachedFetch<object | undefined>({
    clock,
    async fetch(_url, previous) {
      try {
        const init = { redirect: 'error', signal: AbortSignal.timeout(TIMEOUT_MS) } as const
        const response = await fetch(url, init)
        return { value: configurationIn(await response.json()), freshForMs: FRESH_MS }
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error)
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
      throw Object.assign(new NotReady('The identity provider was not reached yet'), { statusCode: 503 })
    },
  }
}

function configurationIn(document: unknown): object {
  const { authorization_endpoint, token_endpoint } = Object(document) as Readonly<Record<string, unknown>>
  if (typeof authorization_endpoint !== 'string' || typeof token_endpoint !== 'string')
    throw new Error('it names no authorization_endpoint and token_endpoint')
  return document as object
}
