import type { Kysely } from 'kysely'
import type { Schema, Store } from '../../store/index.ts'
import { LIMITS } from '../limits.ts'
import { revoke } from '../revoke/revocation.ts'

/** Ends everything that lab launches created: links, access of apps and registered clients (LAB-2). */
export async function endLab({ db }: Store, now: number): Promise<void> {
  await db.transaction().execute(async trx => {
    await trx.deleteFrom('launch_token').where('lab', 'is not', null).execute()
    await revokeLabGrants(trx, now)
    await trx.deleteFrom('grant').where('lab', 'is not', null).execute()
    await trx.deleteFrom('client').where('expires_at', 'is not', null).execute()
  })
}

async function revokeLabGrants(trx: Kysely<Schema>, now: number): Promise<void> {
  const clients = trx.selectFrom('client').select('client_id').where('expires_at', 'is not', null)
  const grants = await trx
    .selectFrom('grant')
    .select('id')
    .where('lab', 'is not', null)
    .union(trx.selectFrom('grant').select('id').where('client_id', 'in', clients))
    .execute()
  const expiresAt = now + LIMITS.labTokenSeconds * 1000
  for (const { id } of grants) await revoke(trx, id, now, expiresAt)
}
