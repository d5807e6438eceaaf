import { hash } from 'node:crypto'
import type { Access } from './access-filter.ts'

/** What may still be needed of a resource that was judged: its version. */
export interface CachedAccess {
  readonly versionId?: unknown
  readonly lastUpdated?: unknown
}

/**
 * Remembers what was found within a grant. A judgement depends on the grant and on the text alone, so the same text
 * under the same grant is not judged again: apps read the same few resources over and over. For a limited number of
 * places (permission and address), by a mark of the text that was judged there last.
 */
export interface AccessCache {
  recall(access: Access, place: string, text: string): CachedAccess | undefined
  remember(access: Access, place: string, text: string, judged?: CachedAccess): void
}

interface Kept {
  readonly mark: string
  readonly judged: CachedAccess
}

const NOTHING: CachedAccess = {}

/** Nothing can be read out of it, and no two texts have the same. */
export function computeDigest(text: string): string {
  return hash('sha256', text, 'base64url')
}

export function createAccessCache(
  constraint = 10_000,
  markOf: (text: string) => string = computeDigest,
): AccessCache {
  const grants = new WeakMap<Access, string>()
  // Two halves: when the newer is full, the older is let go at once. What is asked for again moves to the newer.
  let newer = new Map<string, Kept>()
  let older = new Map<string, Kept>()
  let count = 0

  function nameOf(access: Access, place: string): string {
    let grant = grants.get(access)
    if (grant === undefined) {
      grant = `${++count} `
      grants.set(access, grant)
    }
    return grant + place
  }

  function keep(name: string, kept: Kept): void {
    if (newer.size >= constraint / 2) {
      older = newer
      newer = new Map()
    }
    newer.set(name, kept)
  }

  return {
    recall(access, place, text) {
      const name = nameOf(access, place)
      const recent = newer.get(name)
      const kept = recent ?? older.get(name)
      if (kept?.mark !== markOf(text)) return undefined
      if (!recent) keep(name, kept)
      return kept.judged
    },
    remember(access, place, text, { versionId, lastUpdated } = NOTHING) {
      keep(nameOf(access, place), { mark: markOf(text), judged: { versionId, lastUpdated } })
    },
  }
}
