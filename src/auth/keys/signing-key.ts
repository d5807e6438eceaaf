import { createPrivateKey, generateKeyPair, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'
import { type Sealer, type Store, sha256 } from '../../store/index.ts'

/** The public part of an RSA key, as it is published (RFC 7517). */
export interface PublicJwk {
  readonly kty: 'RSA'
  readonly n: string
  readonly e: string
  readonly kid: string
  readonly use: 'sig'
  readonly alg: 'RS256'
}

export interface SigningKey {
  readonly publicJwk: PublicJwk
  readonly privateKey: KeyObject
}

const PURPOSE = 'signing-key'
const generate = promisify(generateKeyPair)

/**
 * Makes the first signing key where there is none. Safe when several instances start at once: they compete for
 * generation 1, and the losers throw their key away.
 */
export async function makeFirstSigningKey(store: Store, sealer: Sealer, now: number): Promise<void> {
  const existing = await store.db.selectFrom('signing_key').select('kid').limit(1).executeTakeFirst()
  if (existing) return
  const { privateKey } = await generate('rsa', { modulusLength: 2048 })
  await keepFirstSigningKey(store, sealer, privateKey, now)
}

/** Keeps a key as the first one, if none is there yet. */
export async function keepFirstSigningKey(
  store: Store,
  sealer: Sealer,
  privateKey: KeyObject,
  now: number,
): Promise<void> {
  const jwk = privateKey.export({ format: 'jwk' })
  const publicJwk = publicPart(jwk)
  await store.db
    .insertInto('signing_key')
    .values({
      kid: publicJwk.kid,
      generation: 1,
      public_jwk: JSON.stringify(publicJwk),
      private_jwk_sealed: sealer.seal(JSON.stringify(jwk), PURPOSE),
      created_at: now,
      signs_from: now,
      retired_at: null,
    })
    .onConflict(conflict => conflict.doNothing())
    .execute()
}

/** Opens the private part. Throws when it was sealed with another secret. */
export function openSigningKey(sealed: string, publicJwk: PublicJwk, sealer: Sealer): SigningKey {
  const jwk: JsonWebKey = JSON.parse(sealer.open(sealed, PURPOSE))
  return { publicJwk, privateKey: createPrivateKey({ key: jwk, format: 'jwk' }) }
}

function publicPart({ n = '', e = '' }: JsonWebKey): PublicJwk {
  // RFC 7638: the required members in lexicographic order, without white space.
  const kid = sha256(JSON.stringify({ e, kty: 'RSA', n }))
  return { kty: 'RSA', n, e, kid, use: 'sig', alg: 'RS256' }
}
