import { type Cached, createCachedFetch, type Fetched } from '../../cache/index.ts'
import { describeError, type Fetch, MINUTE_MS } from '../../core/index.ts'
import { type Algorithm, readKeySet, type VerificationKey } from '../../jwt/index.ts'

export interface KeySetOptions {
  readonly url: string
  /** Keys for other algorithms are ignored. */
  readonly algorithms: readonly Algorithm[]
  readonly fetch: Fetch
  readonly clock: () => number
  /** Called when a key is gone: tokens that it signed must be verified again. */
  readonly onRemoval: () => void
  /** Called with the reason why a set cannot be fetched or used, once until the reason changes. */
  readonly onUnusable?: ((reason: string) => void) | undefined
  /** How long a set is fresh, in milliseconds; by default five minutes. */
  readonly refreshMs?: number | undefined
}

/** The public keys of an issuer. */
export interface KeySet {
  /** The key with this `kid` for this `alg`; `unavailable` until a set has been fetched. */
  find(kid: string, alg: unknown): Promise<VerificationKey | 'unknown' | 'unavailable'>
  ready(): boolean
  /** Fetches the set if it is no longer fresh. The last set stays in use while the issuer is unreachable. */
  keepFresh(): Promise<void>
}

const REFRESH_MS = 5 * MINUTE_MS
// An unknown `kid` may be a new key or made up, so this limits how often it causes a fetch.
const AGAIN_MS = 5_000
const RETRY_MS = 500
const TIMEOUT_MS = 5_000

export function createKeySet(options: KeySetOptions): KeySet {
  const { url, fetch, clock, onRemoval, refreshMs = REFRESH_MS } = options
  let soughtAt = Number.NEGATIVE_INFINITY
  let reported: string | undefined

  async function fetchKeys(_url: string, previous: Cached<Keys> | undefined): Promise<Fetched<Keys>> {
    const fetched = await requestKeys().catch(error => `it cannot be fetched: ${describeError(error)}`)
    reportUnusable(typeof fetched === 'string' ? fetched : undefined)
    if (typeof fetched === 'object') {
      if (previous?.value?.some(old => !fetched.some(key => isSameKey(key, old)))) onRemoval()
      return { value: fetched, freshForMs: refreshMs }
    }
    return {
      value: previous?.value,
      freshForMs: previous?.value ? Math.min(AGAIN_MS, refreshMs) : RETRY_MS,
    }
  }

  async function requestKeys(): Promise<readonly VerificationKey[] | string> {
    const response = await fetch(url, {
      headers: { accept: 'application/json' },
      redirect: 'error',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    return readResponse(response, options.algorithms)
  }

  function reportUnusable(reason: string | undefined): void {
    const isNew = reason !== undefined && reason !== reported
    reported = reason
    try {
      if (isNew) options.onUnusable?.(reason)
    } catch {
      // An error of the listener must not end the refreshing.
    }
  }

  const cache = createCachedFetch<Keys>({ fetch: fetchKeys, clock })
  const cachedKeys = () => cache.peek(url)?.value

  return {
    ready: () => cachedKeys() !== undefined,
    async keepFresh() {
      await cache.get(url)
    },
    async find(kid, alg) {
      const known = findKey(cachedKeys(), kid, alg)
      if (known) return known
      if (cache.isFetching(url) || clock() - soughtAt >= (cachedKeys() ? AGAIN_MS : RETRY_MS)) {
        soughtAt = clock()
        await cache.refresh(url)
      }
      const keys = cachedKeys()
      return keys ? (findKey(keys, kid, alg) ?? 'unknown') : 'unavailable'
    },
  }
}

/** Undefined until a set has been fetched. */
type Keys = readonly VerificationKey[] | undefined

function findKey(keys: Keys, kid: string, alg: unknown) {
  return keys?.findLast(key => key.kid === kid && key.algorithms.some(it => it === alg))
}

function isSameKey(one: VerificationKey, other: VerificationKey): boolean {
  return one.kid === other.kid && one.publicKey.equals(other.publicKey)
}

/** The keys of a response, or why it has no usable ones. */
async function readResponse(
  response: Response,
  algorithms: readonly Algorithm[],
): Promise<readonly VerificationKey[] | string> {
  if (!response.ok) return `the response status is ${response.status}`
  const document: unknown = await response.json().catch(() => undefined)
  if (document === undefined) return 'the response is not JSON'
  const keys = readKeySet(document, algorithms) ?? []
  return keys.length > 0
    ? keys
    : `it has no key with a kid for ${algorithms.join(', ')} (RSA keys: at least 2048 bits)`
}
