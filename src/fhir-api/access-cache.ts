import { hash } from 'node:crypto'
import { remember } from '../core/index.ts'
import type { Access } from '../smart/index.ts'
import type { StatedVersion } from './stored-version.ts'

/**
 * Remembers which content was found to be within an access. That depends on the access and on the text alone, so that the
 * same text is not checked again under the same access: apps read the same few resources over and over. It holds a limited
 * number of places (permission and resource), each with a mark of the text that was checked there last.
 */
export interface AccessCache {
  /** The version that the text states, if it is known to be within the access; otherwise undefined. */
  find(access: Access, place: string, text: string): StatedVersion | undefined
  add(access: Access, place: string, text: string, stated: StatedVersion): void
  count(): CacheCounts
}

export interface CacheCounts {
  readonly hits: number
  readonly misses: number
}

interface CheckedText {
  /** Length of the text, so that a short text never equals the digest of a long one. */
  readonly length: number
  readonly mark: string
  readonly stated: StatedVersion
}

/** The length above which a text is stored as its digest. */
const DIGESTS_ABOVE = 8_192

export function createAccessCache({ entries = 10_000, characters = 16_000_000 } = {}): AccessCache {
  const accesses = new WeakMap<Access, string>()
  // Two halves: when the newer is full, the older is dropped at once. An entry that is used again moves to the newer half.
  let newer = new Map<string, CheckedText>()
  let older = new Map<string, CheckedText>()
  let newerCharacters = 0
  let count = 0
  const counts = { hits: 0, misses: 0 }

  function getKey(access: Access, place: string): string {
    return remember(accesses, access, () => `${++count} `) + place
  }

  /** A text is its own mark unless it is long: a digest of each would take longer. No two texts have the same digest. */
  function computeMark(text: string): string {
    return text.length > DIGESTS_ABOVE ? hash('sha256', text, 'base64url') : text
  }

  function keep(key: string, checked: CheckedText): void {
    if (newer.size >= entries / 2 || newerCharacters >= characters / 2) {
      older = newer
      newer = new Map()
      newerCharacters = 0
    }
    newerCharacters += checked.mark.length
    newer.set(key, checked)
  }

  return {
    count: () => counts,
    find(access, place, text) {
      const key = getKey(access, place)
      const recent = newer.get(key)
      const checked = recent ?? older.get(key)
      if (checked?.length !== text.length || checked.mark !== computeMark(text)) {
        counts.misses += 1
        return undefined
      }
      counts.hits += 1
      if (!recent) keep(key, checked)
      return checked.stated
    },
    add(access, place, text, stated) {
      keep(getKey(access, place), { length: text.length, mark: computeMark(text), stated })
    },
  }
}
