import { hash } from 'node:crypto'
import type { Access } from './reach.ts'

/** What may still be needed of a resource that was judged: its version. */
export interface Judged {
  readonly versionId?: unknown
  readonly lastUpdated?: unknown
}

/**
 * Remembers what was found within a grant. A judgement depends on the grant and on the text alone, so the same text
 * under the same grant is not judged again: apps read the same few resources over and over. No data is kept: a digest
 * of each with its version, for a limited number of them.
 */
export interface JudgedBefore {
  /** The name of a judgement: of this text, as this resource, under this grant. */
  name(access: Access, place: string, text: string): string
  recall(name: string): Judged | undefined
  remember(name: string, judged?: Judged): void
}

export function judgedBefore(limit = 10_000): JudgedBefore {
  const grants = new WeakMap<Access, string>()
  // Two halves: when the newer is full, the older is let go at once. What is asked for again moves to the newer.
  let newer = new Map<string, Judged>()
  let older = new Map<string, Judged>()
  let count = 0

  function grantName(access: Access): string {
    const name = grants.get(access) ?? `${++count} `
    grants.set(access, name)
    return name
  }

  function keep(name: string, judged: Judged): void {
    if (newer.size >= limit / 2) {
      older = newer
      newer = new Map()
    }
    newer.set(name, judged)
  }

  return {
    name: (access, place, text) => grantName(access) + place + hash('sha256', text, 'base64url'),
    recall(name) {
      const recent = newer.get(name)
      if (recent) return recent
      const judged = older.get(name)
      if (judged) keep(name, judged)
      return judged
    },
    remember: (name, { versionId, lastUpdated } = {}) => keep(name, { versionId, lastUpdated }),
  }
}
