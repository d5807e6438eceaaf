import type { Sealer, Store } from '../../store/index.ts'
import { openSigningKey, type PublicJwk, type SigningKey } from './signing-key.ts'

/** The keys of this deployment, shared by all instances through the store. */
export interface KeyRing {
  /** The key that signs now. */
  signing(): Promise<SigningKey>
  /** Every key that a token still in use may be signed with. */
  published(): Promise<readonly PublicJwk[]>
}

interface Loaded {
  readonly at: number
  readonly signing: SigningKey
  readonly published: readonly PublicJwk[]
}

interface KeyRingOptions {
  readonly store: Store
  readonly sealer: Sealer
  readonly clock: () => number
  /** How long a key that was retired stays published: longer than any token that it signed. */
  readonly publishedForMs: number
}

/** A rotation by another instance is seen this soon. */
const FRESH_MS = 5000

/** Reads the keys now and then. While the database is away the keys that were read last go on being used. */
export function createKeyRing(options: KeyRingOptions): KeyRing {
  let loaded: Loaded | undefined
  let loading: Promise<Loaded> | undefined

  async function current(): Promise<Loaded> {
    if (loaded && options.clock() - loaded.at < FRESH_MS) return loaded
    loading ??= load(options, loaded).finally(() => {
      loading = undefined
    })
    try {
      loaded = await loading
    } catch (error) {
      if (!loaded) throw error
    }
    return loaded
  }

  return {
    signing: async () => (await current()).signing,
    published: async () => (await current()).published,
  }
}

async function load(options: KeyRingOptions, before: Loaded | undefined): Promise<Loaded> {
  const now = options.clock()
  const rows = await options.store.db
    .selectFrom('signing_key')
    .selectAll()
    .where(({ or, eb }) =>
      or([eb('retired_at', 'is', null), eb('retired_at', '>', now - options.publishedForMs)]),
    )
    .orderBy('generation', 'desc')
    .execute()
  const newest = rows.find(row => row.retired_at === null)
  if (!newest) throw new Error('Cannot sign tokens: there is no signing key')
  const published = rows.map(row => JSON.parse(row.public_jwk) as PublicJwk)
  const signing =
    before?.signing.publicJwk.kid === newest.kid
      ? before.signing
      : openSigningKey(newest.private_jwk_sealed, JSON.parse(newest.public_jwk), options.sealer)
  return { at: now, signing, published }
}
