import { createCachedFetch } from '../../../cache/index.ts'
import { isFailure, isRecord } from '../../../core/index.ts'
import { type Algorithm, readKeySet, type VerificationKey } from '../../../jwt/index.ts'
import type { FetchDocument } from '../../base/fetch-document.ts'
import { LIMITS } from '../../base/limits.ts'
import { type AuthRefusal, refuse } from '../../base/refusal.ts'
import type { KeySets } from '../context.ts'

/** SMART 2.2, asymmetric authentication. */
export const assertionAlgorithms = ['RS384', 'ES384'] as const satisfies readonly Algorithm[]

/** The keys of a client that may verify an assertion. Undefined when the document is not a JWK Set, or is too large. */
export function readClientKeys(document: unknown): readonly VerificationKey[] | undefined {
  const isTooLarge = isRecord(document) && Array.isArray(document.keys) && document.keys.length > LIMITS.keys
  return isTooLarge ? undefined : readKeySet(document, assertionAlgorithms)
}

/**
 * Serializes a registered key set with the members that are strings or lists of strings; no others are needed.
 * Undefined if no key can verify an assertion, or if it is too long.
 */
export function serializeKeySet(document: unknown): string | undefined {
  if ((readClientKeys(document) ?? []).length === 0 || !isRecord(document)) return undefined
  const jwks: readonly unknown[] = Array.isArray(document.keys) ? document.keys : []
  const keys = jwks.filter(isRecord).map(jwk => Object.fromEntries(Object.entries(jwk).filter(isPlain)))
  const text = JSON.stringify({ keys })
  return text.length > LIMITS.keySetCharacters ? undefined : text
}

function isPlain([, value]: readonly [string, unknown]): boolean {
  return typeof value === 'string' || (Array.isArray(value) && value.every(one => typeof one === 'string'))
}

/** Whether a key set has a private or secret member. Such a key set must not be stored. */
export function hasPrivateKey(document: unknown): boolean {
  const jwks = isRecord(document) && Array.isArray(document.keys) ? document.keys : []
  return jwks.some(
    jwk => isRecord(jwk) && ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'].some(name => name in jwk),
  )
}

/** The key set of the app server. */
export function makeAppKeySetUrl({ appUrl }: { readonly appUrl: string }): string {
  return `${appUrl}/jwks`
}

/**
 * Caches key sets as their Cache-Control header says (SMART 2.2). Anonymous requests cause the fetches, so they are
 * limited: there is one fetch of a key set at a time, and none within `LIMITS.keySetPauseMs` of the last one, even if the
 * key set must not be stored, could not be fetched, or lacks the `kid`.
 */
export function createKeySets(options: {
  readonly fetchDocument: FetchDocument
  readonly clock: () => number
  readonly onUnusable?: (url: string, reason: string) => void
}): KeySets {
  const cache = createCachedFetch<readonly VerificationKey[] | AuthRefusal>({
    clock: options.clock,
    maxEntries: LIMITS.keySetsKept,
    async fetch(url, previous) {
      const document = await options.fetchDocument(url)
      const keys = document && readClientKeys(document.json)
      if (document && !keys?.length)
        options.onUnusable?.(
          url,
          keys ? 'no key for RS384 or ES384 with a kid' : 'no JSON object with an array keys',
        )
      if (keys) return { value: keys, freshForMs: Math.max(document.freshForMs, LIMITS.keySetPauseMs) }
      const remainingMs = (previous?.freshUntil ?? 0) - options.clock()
      // A key set that is still fresh stays in use while its server does not respond.
      return previous && remainingMs > 0
        ? { value: previous.value, freshForMs: remainingMs }
        : { value: UNAVAILABLE, freshForMs: LIMITS.keySetPauseMs }
    },
  })

  return {
    async find({ jwksUrl: url, approved }, kid) {
      const cached = cache.peek(url)
      const now = options.clock()
      if (cached && now < cached.freshUntil && (hasKey(cached.value, kid) || isRecent(cached, now)))
        return cached.value
      // The server of an unverified client may respond slowly: it must not delay the others.
      const max = approved ? LIMITS.keySetFetches : LIMITS.keySetFetchesOfStrangers
      return cache.isFetching(url) || cache.countFetches() < max
        ? cache.refresh(url)
        : refuse('assertion-keys-too-many', { most: max })
    },
  }
}

export const UNAVAILABLE = refuse('assertion-keys-unavailable')

function hasKey(keys: readonly VerificationKey[] | AuthRefusal, kid: string): boolean {
  return !isFailure(keys) && keys.some(key => key.kid === kid)
}

function isRecent({ fetchedAt }: { readonly fetchedAt: number }, now: number): boolean {
  return now - fetchedAt < LIMITS.keySetPauseMs
}
