import { createPrivateKey, generateKeyPair, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'
import type { Kysely, Transaction } from 'kysely'
import type { Failed } from '../../../core/index.ts'
import { computeThumbprint } from '../../../jwt/index.ts'
import type { Schema, Sealer, Store } from '../../../store/index.ts'
import { runInThreadPool } from '../../../turns/index.ts'
import { runTransaction } from '../../base/transaction.ts'

/** A published RSA key (RFC 7517). */
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

/** Writes the audit record of a change in its transaction, or refuses the change. */
type RecordChange<Refused> = (trx: Transaction<Schema>) => Promise<Refused | undefined>

const toSealedCell = (kid: string) =>
  ({ table: 'signing_key', column: 'private_jwk_sealed', row: kid }) as const
const generate = promisify(generateKeyPair)

/**
 * Creates the first signing key if there is none. Safe if several instances start at once: only one can insert
 * generation 1, and the others discard their key.
 */
export async function makeFirstSigningKey(store: Store, sealer: Sealer, now: number): Promise<void> {
  const existing = await store.db.selectFrom('signing_key').select('kid').limit(1).executeTakeFirst()
  if (existing) return
  await keepFirstSigningKey(store, sealer, await makePrivateKey(), now)
}

/** Stores a key as the first one, if there is none yet. */
export async function keepFirstSigningKey(
  store: Store,
  sealer: Sealer,
  privateKey: KeyObject,
  now: number,
): Promise<void> {
  await insertKey(store.db, sealer, privateKey, { generation: 1, now, signsFrom: now })
}

/**
 * Creates the next key. It is published at once and signs from `signsFrom` on, when the previous key is retired. If
 * several instances rotate at once, one succeeds and the others get false.
 */
export async function makeNextSigningKey<Refused extends Failed = never>(
  store: Store,
  sealer: Sealer,
  {
    now,
    signsFrom,
    record,
  }: Record<'now' | 'signsFrom', number> & { readonly record?: RecordChange<Refused> },
  after?: number,
): Promise<boolean | Refused> {
  const privateKey = await makePrivateKey()
  return runTransaction<boolean | Refused>(store.db, async trx => {
    const generation = (await findNewestGeneration(trx)) + 1
    if (after !== undefined && generation !== after + 1) return false
    if (!(await insertKey(trx, sealer, privateKey, { generation, now, signsFrom }))) return false
    await retireOlderKeys(trx, generation, signsFrom)
    return (await record?.(trx)) ?? true
  })
}

/** Removes a leaked key at once. A new key signs from now on. False if there is no such key. */
export async function withdrawSigningKey<Refused extends Failed = never>(
  store: Store,
  sealer: Sealer,
  {
    kid,
    now,
    record,
  }: { readonly kid: string; readonly now: number; readonly record?: RecordChange<Refused> },
): Promise<boolean | Refused> {
  const known = await store.db
    .selectFrom('signing_key')
    .select('kid')
    .where('kid', '=', kid)
    .executeTakeFirst()
  if (!known) return false
  const privateKey = await makePrivateKey()
  return runTransaction<boolean | Refused>(store.db, async trx => {
    const newest = await findNewestGeneration(trx)
    const { numDeletedRows } = await trx.deleteFrom('signing_key').where('kid', '=', kid).executeTakeFirst()
    if (numDeletedRows === 0n) return false
    const generation = await insertKeyAfter(newest, trx, sealer, privateKey, now)
    await retireOlderKeys(trx, generation, now)
    return (await record?.(trx)) ?? true
  })
}

/**
 * Inserts a key that signs from now on, and returns its generation. On PostgreSQL a rotation may commit the next generation
 * first: then it takes the one after.
 */
async function insertKeyAfter(
  newest: number,
  trx: Kysely<Schema>,
  sealer: Sealer,
  privateKey: KeyObject,
  now: number,
): Promise<number> {
  for (let generation = newest + 1; ; generation = (await findNewestGeneration(trx)) + 1)
    if (await insertKey(trx, sealer, privateKey, { generation, now, signsFrom: now })) return generation
}

function findNewestKey(db: Kysely<Schema>) {
  return db.selectFrom('signing_key').selectAll().orderBy('generation', 'desc').limit(1).executeTakeFirst()
}

async function findNewestGeneration(trx: Kysely<Schema>): Promise<number> {
  return (await findNewestKey(trx))?.generation ?? 0
}

// Also retires a key that has not signed yet.
async function retireOlderKeys(trx: Kysely<Schema>, generation: number, retiredAt: number): Promise<void> {
  await trx
    .updateTable('signing_key')
    .set({ retired_at: retiredAt })
    .where('generation', '<', generation)
    .where(({ or, eb }) => or([eb('retired_at', 'is', null), eb('retired_at', '>', retiredAt)]))
    .execute()
}

async function makePrivateKey(): Promise<KeyObject> {
  return (await runInThreadPool(() => generate('rsa', { modulusLength: 2048 }))).privateKey
}

async function insertKey(
  db: Kysely<Schema>,
  sealer: Sealer,
  privateKey: KeyObject,
  { generation, now, signsFrom }: Record<'generation' | 'now' | 'signsFrom', number>,
): Promise<boolean> {
  const jwk = privateKey.export({ format: 'jwk' })
  const publicJwk = toPublicJwk(jwk)
  const result = await db
    .insertInto('signing_key')
    .values({
      kid: publicJwk.kid,
      generation,
      public_jwk: JSON.stringify(publicJwk),
      private_jwk_sealed: sealer.seal(JSON.stringify(jwk), toSealedCell(publicJwk.kid)),
      created_at: now,
      signs_from: signsFrom,
      retired_at: null,
    })
    .onConflict(conflict => conflict.doNothing())
    .executeTakeFirst()
  return result.numInsertedOrUpdatedRows === 1n
}

/** Decrypts the private key. Throws if it was sealed with another secret. */
export function openSigningKey(sealed: string, publicJwk: PublicJwk, sealer: Sealer): SigningKey {
  const jwk: JsonWebKey = JSON.parse(sealer.open(sealed, toSealedCell(publicJwk.kid)))
  return { publicJwk, privateKey: createPrivateKey({ key: jwk, format: 'jwk' }) }
}

function toPublicJwk({ n = '', e = '' }: JsonWebKey): PublicJwk {
  const kid = computeThumbprint({ kty: 'RSA', n, e })
  return { kty: 'RSA', n, e, kid, use: 'sig', alg: 'RS256' }
}

/**
 * Whether the newest key can be decrypted with this secret; true if there is none. Running servers could not decrypt a new
 * key that is sealed with another secret than theirs.
 */
export async function canOpenSigningKeys({ db }: Store, sealer: Sealer): Promise<boolean> {
  const newest = await findNewestKey(db)
  if (!newest) return true
  try {
    openSigningKey(newest.private_jwk_sealed, JSON.parse(newest.public_jwk), sealer)
    return true
  } catch {
    return false
  }
}

/** Removes all keys, including the app's, and creates a new one, sealed with this secret. */
export async function withdrawEveryKey<Refused extends Failed>(
  store: Store,
  sealer: Sealer,
  now: number,
  record: RecordChange<Refused>,
): Promise<Refused | undefined> {
  const privateKey = await makePrivateKey()
  return runTransaction<Refused | undefined>(store.db, async trx => {
    const generation = await insertKeyAfter(await findNewestGeneration(trx), trx, sealer, privateKey, now)
    await trx.deleteFrom('signing_key').where('generation', '<', generation).execute()
    await trx.deleteFrom('app_key').execute()
    return record(trx)
  })
}
