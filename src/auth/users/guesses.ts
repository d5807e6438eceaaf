import { randomUUID } from 'node:crypto'
import { type Kysely, sql } from 'kysely'
import type { Schema } from '../../store/index.ts'
import { LIMITS } from '../base/limits.ts'
import type { UsersContext } from './context.ts'
import { NO_PASSWORD } from './passwords.ts'

/**
 * The limit of wrong passwords of an account in a row, over all addresses and instances (LOGIN-16). Browsers and networks from
 * which the user has signed in are counted one by one, all others together: whoever guesses from elsewhere cannot lock the
 * user out. The id is empty for an unknown username, which takes the same statements.
 */
export function createGuessLimit(
  { store: { db }, clock }: Pick<UsersContext, 'store' | 'clock'>,
  id: string,
  sender: string | null,
) {
  return {
    /** Whether no password is accepted from this sender. */
    isFull: async () => (await countWrongPasswords(db, id, sender)) >= LIMITS.wrongPasswords,
    async add(trx: Kysely<Schema>, address: string): Promise<void> {
      // Stores nothing for nobody, and for an account without a password.
      await trx
        .insertInto('wrong_password')
        .columns(['id', 'clinician_id', 'sender_hash', 'at', 'address'])
        .expression(({ selectFrom, cast, val }) =>
          selectFrom('clinician')
            .select([
              cast<string>(val(randomUUID()), 'text').as('new_id'),
              'id as clinician_id',
              cast<string | null>(val(sender), 'text').as('sender_hash'),
              cast<number>(val(clock()), 'bigint').as('at'),
              cast<string>(val(address), 'text').as('address'),
            ])
            .where('id', '=', id)
            .where('password_hash', '!=', NO_PASSWORD),
        )
        .execute()
    },
    /** After a sign-in. What others guessed meanwhile from elsewhere still counts. */
    async clear(trx: Kysely<Schema>): Promise<void> {
      await trx
        .deleteFrom('wrong_password')
        .where('clinician_id', '=', id)
        .where('sender_hash', sender === null ? 'is' : '=', sender)
        .execute()
    },
  }
}

async function countWrongPasswords(
  db: Kysely<Schema>,
  userId: string,
  senderHash: string | null,
): Promise<number> {
  const { count } = await db
    .selectFrom('wrong_password')
    .select(({ fn }) => fn.countAll().as('count'))
    .where('clinician_id', '=', userId)
    .where('sender_hash', senderHash === null ? 'is' : '=', senderHash)
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** After a new password, or if an administrator unlocks the account. */
export async function forgetWrongPasswords(trx: Kysely<Schema>, userId: string): Promise<void> {
  await trx.deleteFrom('wrong_password').where('clinician_id', '=', userId).execute()
}

/** The wrong passwords of an account since its last sign-in. */
export interface Guesses {
  readonly count: number
  readonly since: number
  readonly last: number
  /** From most to fewest, the most frequent ones. */
  readonly addresses: readonly string[]
}

const ADDRESSES = 5

export async function findGuesses(db: Kysely<Schema>, userId: string): Promise<Guesses | undefined> {
  const rows = await db
    .selectFrom('wrong_password')
    .select(['at', 'address'])
    .where('clinician_id', '=', userId)
    .orderBy('at')
    .execute()
  const [first] = rows
  const last = rows.at(-1)
  if (!first || !last) return undefined
  const byAddress = [...Map.groupBy(rows, ({ address }) => address)]
  const addresses = byAddress.toSorted(([, a], [, b]) => b.length - a.length).map(([address]) => address)
  return { count: rows.length, since: first.at, last: last.at, addresses: addresses.slice(0, ADDRESSES) }
}

/** Which of the accounts are locked, and since when. */
export async function findLocked(
  db: Kysely<Schema>,
  userIds: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const rows = await db
    .selectFrom('wrong_password')
    .select(({ fn }) => ['clinician_id', fn.max('at').as('at')])
    .where('clinician_id', 'in', userIds)
    .groupBy(['clinician_id', 'sender_hash'])
    .having(({ fn }) => fn.countAll(), '>=', LIMITS.wrongPasswords)
    .execute()
  return new Map(rows.map(({ clinician_id, at }) => [clinician_id, Number(at)]))
}

/** For a query of accounts. */
export const isLocked = sql<boolean>`exists (select 1 from wrong_password where wrong_password.clinician_id = clinician.id
  group by sender_hash having count(*) >= ${sql.lit(LIMITS.wrongPasswords)})`
