import { randomUUID } from 'node:crypto'
import type { Kysely } from 'kysely'
import { DAY_MS } from '../../../core/index.ts'
import type { Schema } from '../../../store/index.ts'
import { LIMITS } from '../../base/limits.ts'
import type { Reservation } from '../attempt.ts'
import type { UsersContext } from '../context.ts'

type Context = Pick<UsersContext, 'store' | 'clock'>

/**
 * Counts a code as wrong before it is compared, so that simultaneous guesses cannot exceed the limit of a day. An accepted
 * code does not start the count again: a thief of the password would guess on after each sign-in of the owner. Undefined
 * if the limit is reached: no code of an authenticator app is accepted then.
 */
export async function reserveCode(
  { store: { db }, clock }: Context,
  userId: string,
): Promise<Reservation | undefined> {
  const id = randomUUID()
  await db.insertInto('wrong_code').values({ id, clinician_id: userId, at: clock() }).execute()
  const release = async (trx: Kysely<Schema>) => {
    await trx.deleteFrom('wrong_code').where('id', '=', id).execute()
  }
  if ((await countWrongCodes(db, userId, clock())) <= LIMITS.wrongCodesPerDay) return { release }
  await release(db)
  return undefined
}

/** The wrong codes of the last 24 hours. */
export async function countWrongCodes(db: Kysely<Schema>, userId: string, now: number): Promise<number> {
  const { count } = await db
    .selectFrom('wrong_code')
    .select(({ fn }) => fn.countAll().as('count'))
    .where('clinician_id', '=', userId)
    .where('at', '>', now - DAY_MS)
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** After a new password nobody can guess with the old one, and a removed second factor has no codes. */
export async function forgetWrongCodes(trx: Kysely<Schema>, userId: string): Promise<void> {
  await trx.deleteFrom('wrong_code').where('clinician_id', '=', userId).execute()
}
