import { type Grant, grantFingerprint } from '../smart/index.ts'
import { COUNTED_GRANTS } from './limits.ts'

/** Counts the calls of each grant in this process. */
export interface CallCounter {
  /** Counts a call. Returns the seconds to wait if it is one too many. */
  count(grant: Grant, now: number): number | undefined
}

const MINUTE = 60_000

/** Each minute begins anew. */
export function createCallCounter(most: number): CallCounter {
  const counts = new Map<string, number>()
  let minute = 0
  return {
    count(grant, now) {
      const current = Math.floor(now / MINUTE)
      if (current !== minute || counts.size >= COUNTED_GRANTS) counts.clear()
      minute = current
      const key = grant.tokenId?.split('.')[0] ?? grantFingerprint(grant)
      const count = (counts.get(key) ?? 0) + 1
      counts.set(key, count)
      return count > most ? Math.ceil(((current + 1) * MINUTE - now) / 1000) : undefined
    },
  }
}
