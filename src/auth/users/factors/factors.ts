import type { Kysely, Selectable } from 'kysely'
import type { Schema } from '../../../store/index.ts'

export type Factor = Selectable<Schema['factor']>

export const FACTOR_KINDS = { totp: 'Authenticator app', passkey: 'Passkey' } as const

/** The second factors of a user, the oldest first. */
export function listFactors(db: Kysely<Schema>, userId: string): Promise<Factor[]> {
  return db
    .selectFrom('factor')
    .selectAll()
    .where('clinician_id', '=', userId)
    .orderBy('created_at')
    .orderBy('id')
    .execute()
}

/** The passkey with this id. */
export function findFactorOf(db: Kysely<Schema>, credentialId: string): Promise<Factor | undefined> {
  return db.selectFrom('factor').selectAll().where('credential_id', '=', credentialId).executeTakeFirst()
}

/** Removes all second factors of a user, and the recovery codes. */
export async function removeFactors(trx: Kysely<Schema>, userId: string): Promise<void> {
  await trx.deleteFrom('factor').where('clinician_id', '=', userId).execute()
  await trx.deleteFrom('recovery_code').where('clinician_id', '=', userId).execute()
}
