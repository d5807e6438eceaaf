import type { KeyObject } from 'node:crypto'
import { readKeys } from './read-keys.ts'

export type Fetch = (url: string, init: RequestInit) => Promise<Response>

export interface KeySetOptions {
  readonly url: string
  readonly fetch: Fetch
  readonly clock: () => number
  /** Called when a key that was there is gone: what it signed is to be verified anew. */
  readonly onRemoval: () => void
  /** Told why a set that was fetched cannot be used, once until that changes. */
  readonly onUnusable?: ((reason: string) => void) | undefined
  /** How old a set may become, in milliseconds; five minutes unless told. */
  readonly refreshMs?: number | undefined
}

/** The auth server's public keys (contract 5.7). */
export interface KeySet {
  /** The key of a `kid`; `unknown` when the auth server has none, `unavailable` while no set was ever fetched. */
  find(kid: string): Promise<KeyObject | 'unknown' | 'unavailable'>
  /** Whether a set is in the cache. */
  ready(): boolean
  /** Fetches the set when it is time to. The kept one stays in use while the auth server is away. */
  keepFresh(): Promise<void>
}

const REFRESH_MS = 5 * 60_000
// An unknown `kid` may be a new key or anybody's invention: ask, but not at anybody's pace.
const AGAIN_MS = 5_000
const RETRY_MS = 500
const TIMEOUT_MS = 5_000

export function keySet(options: KeySetOptions): KeySet {
  const { url, fetch, clock, onRemoval, refreshMs = REFRESH_MS } = options
  let keys: ReadonlyMap<string, KeyObject> | undefined
  let askedAt = Number.NEGATIVE_INFINITY
  let soughtAt = Number.NEGATIVE_INFINITY
  let fetchedAt = Number.NEGATIVE_INFINITY
  let flight: Promise<void> | undefined
  let complaint: string | undefined

  async function fetchKeys(): Promise<void> {
    const response = await fetch(url, {
      headers: { accept: 'application/json' },
      redirect: 'error',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    const fetched = await readResponse(response)
    complain(typeof fetched === 'string' ? fetched : undefined)
    if (typeof fetched === 'string') return
    const previous = keys
    keys = fetched
    fetchedAt = clock()
    if (previous && [...previous.keys()].some(kid => !fetched.has(kid))) onRemoval()
  }

  function complain(reason: string | undefined): void {
    if (reason !== undefined && reason !== complaint) options.onUnusable?.(reason)
    complaint = reason
  }

  function ask(): Promise<void> {
    if (flight) return flight
    askedAt = clock()
    flight = fetchKeys()
      // The auth server is away: what was fetched before stays in use.
      .catch(() => undefined)
      .finally(() => {
        flight = undefined
      })
    return flight
  }

  const isDue = (since: number, pause: number) =>
    flight !== undefined || clock() - since >= (keys ? pause : RETRY_MS)

  return {
    ready: () => keys !== undefined,
    async keepFresh() {
      if (clock() - fetchedAt >= refreshMs && isDue(askedAt, Math.min(AGAIN_MS, refreshMs))) await ask()
    },
    async find(kid) {
      const known = keys?.get(kid)
      if (known) return known
      if (isDue(soughtAt, AGAIN_MS)) {
        soughtAt = clock()
        await ask()
      }
      return keys ? (keys.get(kid) ?? 'unknown') : 'unavailable'
    },
  }
}

/** The keys of a response, or why it has none that can be used. */
async function readResponse(response: Response): Promise<ReadonlyMap<string, KeyObject> | string> {
  if (!response.ok) return `it was answered with ${response.status}`
  const document: unknown = await response.json().catch(() => undefined)
  if (document === undefined) return 'it is not JSON'
  const keys = readKeys(document)
  return keys.size > 0 ? keys : 'it has no RSA key of at least 2048 bits for RS256 with a kid'
}
