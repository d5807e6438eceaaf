import type { Sealer, Store } from '../../store/index.ts'
import {
  findNewestGeneration,
  insertKey,
  makePrivateKey,
  openSigningKey,
  type RecordChange,
} from './signing-key.ts'

/**
 * Whether the newest key can be decrypted with this secret; true if there is none. Running servers could not decrypt a new
 * key that is sealed with another secret than theirs.
 */
export async function canOpenSigningKeys({ db }: Store, sealer: Sealer): Promise<boolean> {
  const newest = await db
    .selectFrom('signing_key')
    .selectAll()
    .orderBy('generation', 'desc')
    .limit(1)
    .executeTakeFirst()
  if (!newest) return true
  try {
    openSigningKey(newest.private_jwk_sealed, JSON.parse(newest.public_jwk), sealer)
    return true
  } catch {
    return false
  }
}

/** Removes all keys, including the app's, and creates a new one, sealed with this secret. */
export async function withdrawEveryKey(
  store: Store,
  sealer: Sealer,
  now: number,
  record: RecordChange,
): Promise<void> {
  const privateKey = await makePrivateKey()
  await store.db.transaction().execute(async trx => {
    const generation = (await findNewestGeneration(trx)) + 1
    await trx.deleteFrom('signing_key').execute()
    await trx.deleteFrom('app_key').execute()
    if (!(await insertKey(trx, sealer, privateKey, { generation, now, signsFrom: now })))
      throw new Error('Cannot withdraw keys: a rotation happened at the same time')
    await record(trx)
  })
}
