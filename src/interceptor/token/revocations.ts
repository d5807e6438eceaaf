import { createHash } from 'node:crypto'
import { createCachedFetch } from '../../cache/index.ts'
import type { Fetch } from '../../core/index.ts'

/** The auth server's revocations of tokens that have not expired yet. */
export interface Revocations {
  isRevoked(keys: readonly string[]): boolean
  /** Fetches the revocations since the last time, if it is due. */
  keepFresh(): Promise<void>
}

// A revocation must take effect within five seconds, including the interceptor's tick and the request.
const PAUSE_MS = 1_500
const TIMEOUT_MS = 2_000

/**
 * Reads the revocation list (`GET {auth_url}/oauth2/revocations`) every two seconds. While the auth server is
 * unreachable the known revocations stay in effect, and tokens that it revokes meanwhile are valid until they expire. `checkRevoked`
 * of ../interceptor.ts asks for the token of each request.
 */
export function createRevocations(options: {
  readonly url: string
  readonly fetch: Fetch
  readonly clock: () => number
}): Revocations {
  const { url, fetch, clock } = options
  const revoked = new Map<string, number>()
  let refused: ReadonlySet<string> = new Set()
  let since = 0

  async function fetchList(): Promise<void> {
    const response = await fetch(`${url}?since=${since}`, {
      headers: { accept: 'application/json' },
      redirect: 'error',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    const list = response.ok ? readList(await response.json()) : undefined
    if (!list) return
    since = list.next
    refused = new Set(list.refused)
    for (const [mark, until] of revoked) if (until < clock()) revoked.delete(mark)
    for (const mark of list.revoked) revoked.set(mark, clock() + list.lifetime * 1000)
  }

  const cache = createCachedFetch({
    clock,
    async fetch() {
      // The auth server may be unreachable, or have no such list.
      await fetchList().catch(() => undefined)
      return { value: undefined, freshForMs: PAUSE_MS }
    },
  })

  return {
    isRevoked: keys => keys.some(key => revoked.has(key) || refused.has(key)),
    async keepFresh() {
      await cache.get(url)
    },
  }
}

/** Computes the keys of a token in the list: of its audience, its `jti`, and the grant id that its `jti` begins with. */
export function computeRevocationKeys(jti: string | undefined, audience: string): readonly string[] {
  return [audience, ...(jti === undefined ? [] : [jti, jti.replace(/\..*/s, '')])].map(computeKey)
}

function computeKey(id: string): string {
  return createHash('sha256').update(id).digest('base64url').slice(0, 22)
}

interface RevocationList {
  readonly revoked: readonly string[]
  /** The audiences whose tokens are all refused now. Unlike the revocations, every list has them. */
  readonly refused: readonly string[]
  readonly lifetime: number
  readonly next: number
}

function readList(document: unknown): RevocationList | undefined {
  const { revoked, refused, lifetime, next } = Object(document) as Readonly<Record<string, unknown>>
  if (!Array.isArray(revoked) || typeof lifetime !== 'number' || typeof next !== 'number') return undefined
  return { revoked: readTexts(revoked), refused: readTexts(refused), lifetime, next }
}

function readTexts(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter(one => typeof one === 'string') : []
}
