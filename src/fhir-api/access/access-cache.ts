import { hash } from 'node:crypto'
import type { Access } from '../../smart/index.ts'

/**
 * Remembers which content was found to be within an access. That depends on the access and on the text alone, so that the
 * same text is not checked again under the same access: apps read the same few resources over and over. For a limited
 * number of places (permission and resource), by a mark of the text that was checked there last.
 */
export interface AccessCache {
  has(access: Access, place: string, text: string): boolean
  add(access: Access, place: string, text: string): void
}

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
  let newer = new Map<string, string>()
  let older = new Map<string, string>()
  let count = 0

  function getKey(access: Access, place: string): string {
    let prefix = accesses.get(access)
    if (prefix === undefined) {
      prefix = `${++count} `
      accesses.set(access, prefix)
    }
    return prefix + place
  }

  function keep(key: string, mark: string): void {
    if (newer.size >= limit / 2) {
      older = newer
      newer = new Map()
    }
    newer.set(key, mark)
  }

  return {
    has(access, place, text) {
      const key = getKey(access, place)
      const recent = newer.get(key)
      const mark = recent ?? older.get(key)
      if (mark !== computeMark(text)) return false
      if (recent === undefined) keep(key, mark)
      return true
    },
    add(access, place, text) {
      keep(getKey(access, place), computeMark(text))
    },
  }
}
