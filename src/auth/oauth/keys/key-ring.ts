import type { Selectable } from 'kysely'
import { createCachedFetch } from '../../../cache/index.ts'
import { MINUTE_MS } from '../../../core/index.ts'
import { type Claims, decodeJwt, readKeySet, signJwt, verifySignature } from '../../../jwt/index.ts'
import type { Schema, Sealer, Store } from '../../../store/index.ts'
import { NotReady } from '../../../web/http/index.ts'
import { makeNextSigningKey, openSigningKey, type PublicJwk, type SigningKey } from './signing-key.ts'

/** The signing keys, shared by all instances through the database. */
export interface KeyRing {
  /** The current key. */
  getSigningKey(): Promise<SigningKey>
  /** The keys of all unexpired tokens, and the next key. */
  listPublicKeys(): Promise<readonly PublicJwk[]>
}

interface KeyRingOptions {
  readonly store: Store
  readonly sealer: Sealer
  readonly clock: () => number
  /** How long a retired key stays published: longer than the tokens that it signed. */
  readonly publishedForMs: number
  /** The age at which a key is replaced; by default never. */
  readonly maxAgeMs?: number
  /** Called when a key could not be replaced. There will be another attempt. */
  readonly onFailure?: (error: unknown) => void
}

/** A rotation by another instance, or by command, takes effect after this time. */
const FRESH_MS = 2_000

/**
 * How long a key is published before it signs. By command: longer than instances cache keys, and than interceptors wait
 * between two fetches for an unknown key (5 s). By age: longer than anyone caches key sets.
 */
export const KEY_LEAD_MS = { byCommand: 8_000, byAge: 10 * MINUTE_MS } as const

type Row = Selectable<Schema['signing_key']>

/** Reads the keys from the database. While it is unreachable the last keys stay in use. */
export function createKeyRing(options: KeyRingOptions): KeyRing {
  const opened = new Map<string, SigningKey>()
  let rotating = false

  const cache = createCachedFetch<readonly Row[]>({
    clock: options.clock,
    async fetch(_key, previous) {
      const now = options.clock()
      try {
        const rows = await loadRows(options, now)
        rotateIfDue(rows, now)
        return { value: rows, freshForMs: FRESH_MS }
      } catch (error) {
        if (!previous) throw error
        return { value: previous.value, freshForMs: 0 }
      }
    },
  })
  const getRows = () => cache.get('signing keys')

  function rotateIfDue([newest]: readonly Row[], now: number): void {
    const { maxAgeMs, store, sealer } = options
    if (rotating || !newest || maxAgeMs === undefined || now - newest.created_at < maxAgeMs) return
    const times = { now, signsFrom: now + KEY_LEAD_MS.byAge }
    rotating = true
    void makeNextSigningKey(store, sealer, times, newest.generation)
      .catch(error => options.onFailure?.(error))
      .finally(() => {
        rotating = false
      })
  }

  function openKey(row: Row): SigningKey {
    const known = opened.get(row.kid)
    if (known) return known
    const key = openSigningKey(row.private_jwk_sealed, JSON.parse(row.public_jwk), options.sealer)
    opened.clear()
    opened.set(row.kid, key)
    return key
  }

  return {
    async getSigningKey() {
      const rows = await getRows()
      // All instances change keys at the same time, whenever they read them.
      const row = rows.find(one => one.signs_from <= options.clock()) ?? rows.at(-1)
      if (!row) throw new NotReady('Cannot sign tokens: there is no signing key')
      return openKey(row)
    },
    async listPublicKeys() {
      const since = options.clock() - options.publishedForMs
      return (await getRows())
        .filter(row => row.retired_at === null || row.retired_at > since)
        .map(row => JSON.parse(row.public_jwk) as PublicJwk)
    },
  }
}

/** Newest first, without keys whose tokens have all expired. */
function loadRows({ store, publishedForMs }: KeyRingOptions, now: number): Promise<readonly Row[]> {
  return store.db
    .selectFrom('signing_key')
    .selectAll()
    .where(({ or, eb }) => or([eb('retired_at', 'is', null), eb('retired_at', '>', now - publishedForMs)]))
    .orderBy('generation', 'desc')
    .execute()
}

/** RFC 9068, 4: the `typ` keeps an ID token from being used as an access token. */
export type TokenType = 'at+jwt' | 'JWT'

export function signOwnJwt(
  { publicJwk, privateKey }: SigningKey,
  typ: TokenType,
  claims: Claims,
  header: { readonly jku?: string } = {},
): Promise<string> {
  return signJwt({ alg: publicJwk.alg, typ, kid: publicJwk.kid, ...header }, claims, privateKey)
}

/** The claims of a token of this type that one of our keys signed, even if it has expired; otherwise undefined. */
export function verifyOwnJwt(token: string, typ: TokenType, keys: readonly PublicJwk[]): Claims | undefined {
  const jwt = decodeJwt(token)
  if (jwt?.header.typ !== typ) return undefined
  const named = keys.filter(({ kid }) => kid === jwt.header.kid)
  const [key] = readKeySet({ keys: named }, ['RS256']) ?? []
  return key && verifySignature(jwt, key) ? jwt.claims : undefined
}
