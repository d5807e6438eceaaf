import { hash } from 'node:crypto'
import { createCachedFetch } from '../../cache/index.ts'
import type { Fetch } from './key-set.ts'

/** What the auth server has revoked, as far as its tokens could still be alive. */
export interface Revocations {
  isRevoked(marks: readonly string[]): boolean
  /** Asks for what was revoked since the last time, when it is time to. */
  keepFresh(): Promise<void>
}

// With the tick of the interceptor and the way to the auth server it stays well below the five seconds promised.
const PAUSE_MS = 1_500
const TIMEOUT_MS = 2_000

/**
 * The revocation list (`GET {auth_url}/oauth2/revocations`), asked for every two seconds and looked into on each
 * request. While the auth server is away what is known stays known; what it revokes meanwhile ends with its token.
 */
export function revocations(options: {
  readonly url: string
  readonly fetch: Fetch
  readonly clock: () => number
}): Revocations {
  const { url, fetch, clock } = options
  const revoked = new Map<string, number>()
  let since = 0

  async function ask(): Promise<void> {
    const response = await fetch(`${url}?since=${since}`, {
      headers: { accept: 'application/json' },
      redirect: 'error',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    const feed = response.ok ? readFeed(await response.json()) : undefined
    if (!feed) return
    since = feed.next
    for (const [mark, until] of revoked) if (until < clock()) revoked.delete(mark)
    for (const mark of feed.revoked) revoked.set(mark, clock() + feed.lifetime * 1000)
  }

  const cache = createCachedFetch({
    clock,
    async fetch() {
      // The auth server may be unreachable, or have no such list.
      await ask().catch(() => undefined)
      return { value: undefined, freshForMs: PAUSE_MS }
    },
  })

  return {
    isRevoked: marks => revoked.size > 0 && marks.some(mark => revoked.has(mark)),
    async keepFresh() {
      await cache.get(url)
    },
  }
}

/** What the list would name a token by: its `jti`, and what its `jti` begins with (its grant). */
export function marksOf(jti: string | undefined): readonly string[] {
  return jti === undefined ? [] : [jti, jti.split('.')[0] ?? ''].map(mark)
}

function mark(id: string): string {
  return hash('sha256', id, 'base64url').slice(0, 22)
}

interface Feed {
  readonly revoked: readonly string[]
  readonly lifetime: number
  readonly next: number
}

function readFeed(document: unknown): Feed | undefined {
  if (typeof document !== 'object' || document === null) return undefined
  const { revoked, lifetime, next } = document as Readonly<Record<string, unknown>>
  if (!Array.isArray(revoked) || typeof lifetime !== 'number' || typeof next !== 'number') return undefined
  return { revoked: revoked.filter(mark => typeof mark === 'string'), lifetime, next }
}
