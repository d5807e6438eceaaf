import type { FetchDocument } from '../../outgoing/fetch-document.ts'
import { type ClientKey, readClientKeys } from './client-key.ts'

/** The key sets that clients publish, cached as their headers say. */
export interface KeySets {
  /** The keys of an address, or why there are none. Asks again for a `kid` that is not among those it has. */
  find(url: string, kid: string): Promise<readonly ClientKey[] | 'unavailable'>
}

interface Entry {
  readonly keys: readonly ClientKey[]
  readonly freshUntil: number
  readonly askedAt: number
}

// An unknown `kid` may be a new key or anybody's invention: ask, but not at anybody's pace.
const AGAIN_MS = 5_000
const MOST_SETS = 1_000

/** SMART 2.2: a key set is never kept longer than its Cache-Control says, and kept as long as it does. */
export function createKeySets(options: {
  readonly fetchDocument: FetchDocument
  readonly clock: () => number
  /** Told which key set was fetched and cannot be used. */
  readonly onUnusable?: (url: string, reason: string) => void
}): KeySets {
  const entries = new Map<string, Entry>()
  const flights = new Map<string, Promise<Entry | undefined>>()

  async function ask(url: string): Promise<Entry | undefined> {
    const askedAt = options.clock()
    const document = await options.fetchDocument(url)
    const keys = document && readClientKeys(document.json)
    if (document && !keys?.length)
      options.onUnusable?.(
        url,
        keys ? 'no key for RS384 or ES384 with a kid' : 'no JSON object with an array keys',
      )
    if (!keys) return undefined
    const entry = { keys, freshUntil: askedAt + document.freshForMs, askedAt }
    entries.delete(url)
    entries.set(url, entry)
    const [oldest] = entries.keys()
    if (entries.size > MOST_SETS && oldest !== undefined) entries.delete(oldest)
    return entry
  }

  function askOnce(url: string): Promise<Entry | undefined> {
    const flight = flights.get(url) ?? ask(url).finally(() => flights.delete(url))
    flights.set(url, flight)
    return flight
  }

  return {
    async find(url, kid) {
      const now = options.clock()
      const kept = entries.get(url)
      const fresh = kept && now < kept.freshUntil ? kept : undefined
      if (fresh && (fresh.keys.some(key => key.kid === kid) || now - fresh.askedAt < AGAIN_MS))
        return fresh.keys
      const entry = (await askOnce(url)) ?? fresh
      return entry ? entry.keys : 'unavailable'
    },
  }
}
