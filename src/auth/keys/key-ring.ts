import type { Selectable } from 'kysely'
import { createCachedFetch } from '../../cache/index.ts'
import type { Schema, Sealer, Store } from '../../store/index.ts'
import { NotReady } from '../../web/index.ts'
import { makeNextSigningKey, openSigningKey, type PublicJwk, type SigningKey } from './signing-key.ts'

/** The keys of this deployment, shared by all instances through the store. */
export interface KeyRing {
  /** The key that signs now. */
  signing(): Promise<SigningKey>
  /** Every key that a token still in use may be signed with, and the one that signs next. */
  published(): Promise<readonly PublicJwk[]>
}

interface KeyRingOptions {
  readonly store: Store
  readonly sealer: Sealer
  readonly clock: () => number
  /** How long a key that was retired stays published: longer than any token that it signed. */
  readonly publishedForMs: number
  /** The age at which a new key is made; never, unless told. */
  readonly maxAgeMs?: number
  /** Told when a new key was due and could not be made. It is tried again. */
  readonly onFailure?: (error: unknown) => void
}

/** A rotation by another instance, or by command, is seen this soon. */
const FRESH_MS = 2_000

/**
 * How long a key is published before it signs. By command: longer than instances keep what they read (above) and than
 * interceptors wait between two questions for an unknown key (5 s). By age nobody waits for it: longer than anybody
 * caches key sets.
 */
export const KEY_LEAD_MS = { byCommand: 8_000, byAge: 10 * 60_000 } as const

type Row = Selectable<Schema['signing_key']>

/** Reads the keys now and then. While the database is away the keys that were read last go on being used. */
export function createKeyRing(options: KeyRingOptions): KeyRing {
  const opened = new Map<string, SigningKey>()
  let rotating = false

  const cache = createCachedFetch<readonly Row[]>({
    clock: options.clock,
    async fetch(_key, previous) {
      const now = options.clock()
      try {
        const rows = await load(options, now)
        rotateIfDue(rows, now)
        return { value: rows, freshForMs: FRESH_MS }
      } catch (error) {
        if (!previous) throw error
        return { value: previous.value, freshForMs: 0 }
      }
    },
  })
  const current = () => cache.get('signing keys')

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

  function open(row: Row): SigningKey {
    const known = opened.get(row.kid)
    if (known) return known
    const key = openSigningKey(row.private_jwk_sealed, JSON.parse(row.public_jwk), options.sealer)
    opened.clear()
    opened.set(row.kid, key)
    return key
  }

  return {
    async signing() {
      const rows = await current()
      // All instances change at the same moment, whenever each of them read the keys.
      const row = rows.find(one => one.signs_from <= options.clock()) ?? rows.at(-1)
      if (!row) throw new NotReady('Cannot sign tokens: there is no signing key')
      return open(row)
    },
    async published() {
      const since = options.clock() - options.publishedForMs
      return (await current())
        .filter(row => row.retired_at === null || row.retired_at > since)
        .map(row => JSON.parse(row.public_jwk) as PublicJwk)
    },
  }
}

/** The newest first, without those whose last token has expired. */
function load({ store, publishedForMs }: KeyRingOptions, now: number): Promise<readonly Row[]> {
  return store.db
    .selectFrom('signing_key')
    .selectAll()
    .where(({ or, eb }) => or([eb('retired_at', 'is', null), eb('retired_at', '>', now - publishedForMs)]))
    .orderBy('generation', 'desc')
    .execute()
}
