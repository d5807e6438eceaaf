import type { VerificationKey } from '../../../jwt/index.ts'
import { LIMITS } from '../../limits.ts'
import type { FetchDocument } from '../../outgoing/fetch-document.ts'
import { readClientKeys } from './client-key.ts'

/** The key sets that clients publish, cached as their headers say. */
export interface KeySets {
  /** The keys that a client publishes, or why there are none. Asks again for a `kid` that is not among those it has. */
  find(
    client: { readonly jwksUrl: string; readonly approved: boolean },
    kid: string,
  ): Promise<readonly VerificationKey[] | 'unavailable'>
}

interface Entry {
  /** Undefined when the last fetch failed. */
  readonly keys: readonly VerificationKey[] | undefined
  readonly freshUntil: number
  readonly askedAt: number
}

/**
 * A key set is kept as long as its Cache-Control says (SMART 2.2). Whoever sends an assertion has not proven anything
 * yet, so nobody sets the pace of our requests: a key set is fetched once at a time and not again for
 * `LIMITS.keySetPauseMs`, whether it must not be stored, could not be fetched, or lacks the `kid`.
 */
export function createKeySets(options: {
  readonly fetchDocument: FetchDocument
  readonly clock: () => number
  /** Told which key set was fetched and cannot be used. */
  readonly onUnusable?: (url: string, reason: string) => void
}): KeySets {
  const entries = new Map<string, Entry>()
  const flights = new Map<string, Promise<Entry>>()

  async function ask(url: string): Promise<Entry> {
    const askedAt = options.clock()
    const document = await options.fetchDocument(url)
    const keys = document && readClientKeys(document.json)
    if (document && !keys?.length)
      options.onUnusable?.(
        url,
        keys ? 'no key for RS384 or ES384 with a kid' : 'no JSON object with an array keys',
      )
    // What is still fresh stays in use while its server does not answer.
    const kept = entries.get(url)
    const entry =
      !keys && kept?.keys && askedAt < kept.freshUntil
        ? { ...kept, askedAt }
        : { keys, freshUntil: askedAt + (document?.freshForMs ?? 0), askedAt }
    entries.delete(url)
    entries.set(url, entry)
    const [oldest] = entries.keys()
    if (entries.size > LIMITS.keySetsKept && oldest !== undefined) entries.delete(oldest)
    return entry
  }

  function askOnce(url: string): Promise<Entry> {
    const flight = flights.get(url) ?? ask(url).finally(() => flights.delete(url))
    flights.set(url, flight)
    return flight
  }

  return {
    async find({ jwksUrl: url, approved }, kid) {
      const now = options.clock()
      const kept = entries.get(url)
      const isUsable = kept && now < kept.freshUntil && kept.keys?.some(key => key.kid === kid)
      if (kept && (isUsable || now - kept.askedAt < LIMITS.keySetPauseMs)) return kept.keys ?? 'unavailable'
      // A stranger's server may answer as slowly as it likes: it must not take the place of the others.
      const most = approved ? LIMITS.keySetFetches : LIMITS.keySetFetchesOfStrangers
      if (!flights.has(url) && flights.size >= most) return 'unavailable'
      return (await askOnce(url)).keys ?? 'unavailable'
    },
  }
}
