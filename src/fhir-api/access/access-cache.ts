import { hash } from 'node:crypto'
import type { Access } from '../../smart/index.ts'
import type { StatedVersion } from '../stored-version.ts'

/**
 * Remembers which content was found to be within an access. That depends on the access and on the text alone, so that the
 * same text is not checked again under the same access: apps read the same few resources over and over. For a limited
 * number of places (permission and resource), by a mark of the text that was checked there last.
 */
export interface AccessCache {
  /** The version that the text states, where it is within the access; undefined where that is not known. */
  find(access: Access, place: string, text: string): StatedVersion | undefined
  add(access: Access, place: string, text: string, version?: StatedVersion): void
}

interface CheckedText {
  readonly mark: string
  readonly version: StatedVersion
}

const NO_VERSION: StatedVersion = {}

/** Nothing can be read out of it, and no two texts have the same. */
export function computeDigest(text: string): string {
  return hash('sha256', text, 'base64url')
}

export function createAccessCache(
  limit = 10_000,
  computeMark: (text: string) => string = computeDigest,
): AccessCache {
  const accesses = new WeakMap<Access, string>()
  // Two halves: when the newer is full, the older is dropped at once. What is used again moves to the newer.
  let newer = new Map<string, CheckedText>()
  let older = new Map<string, CheckedText>()
  let count = 0

  function getKey(access: Access, place: string): string {
    let prefix = accesses.get(access)
    if (prefix === undefined) {
      prefix = `${++count} `
      accesses.set(access, prefix)
    }
    return prefix + place
  }

  function keep(key: string, checked: CheckedText): void {
    if (newer.size >= limit / 2) {
      older = newer
      newer = new Map()
    }
    newer.set(key, checked)
  }

  return {
    find(access, place, text) {
      const key = getKey(access, place)
      const recent = newer.get(key)
      const checked = recent ?? older.get(key)
      if (checked?.mark !== computeMark(text)) return undefined
      if (!recent) keep(key, checked)
      return checked.version
    },
    add(access, place, text, version = NO_VERSION) {
      keep(getKey(access, place), { mark: computeMark(text), version })
    },
  }
}
