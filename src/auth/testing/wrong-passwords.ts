import type { Kysely } from 'kysely'
import type { Schema } from '../../store/index.ts'
import { LIMITS } from '../base/limits.ts'

/** Locks an account, as guesses from strangers do. */
export async function addWrongPasswords(db: Kysely<Schema>, clinician_id: string): Promise<void> {
  const rows = Array.from({ length: LIMITS.wrongPasswords }, (_, at) => ({
    id: `${clinician_id} ${at}`,
    clinician_id,
    sender_hash: null,
    at: 1,
    address: '203.0.113.7',
  }))
  await db
    .insertInto('wrong_password')
    .values(rows)
    .onConflict(conflict => conflict.doNothing())
    .execute()
}
