import type { Sealer, Store } from '../../store/index.ts'
import {
  insertKey,
  makePrivateKey,
  newestGeneration,
  openSigningKey,
  type RecordChange,
} from './signing-key.ts'

/**
 * Whether the newest key opens with this secret; true where there is none. A key that is sealed with another secret than
 * that of the running servers would stop them all when it is to sign.
 */
export async function opensSigningKeys({ db }: Store, sealer: Sealer): Promise<boolean> {
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

/** Takes every key away, the app's too, whatever they were sealed with; a new one signs, sealed with this secret. */
export async function withdrawEveryKey(
  store: Store,
  sealer: Sealer,
  now: number,
  record: RecordChange,
): Promise<void> {
  const privateKey = await makePrivateKey()
  await store.db.transaction().execute(async trx => {
    const generation = (await newestGeneration(trx)) + 1
    await trx.deleteFrom('signing_key').execute()
    await trx.deleteFrom('app_key').execute()
    if (!(await insertKey(trx, sealer, privateKey, { generation, now, signsFrom: now })))
      throw new Error('Cannot withdraw keys: a rotation came at the same moment')
    await record(trx)
  })
}
