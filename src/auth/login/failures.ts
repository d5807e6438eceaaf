import type { Kysely } from 'kysely'
import { type Schema, type Store, sha256 } from '../../store/index.ts'

export interface FailureLimit {
  readonly count: number
  readonly withinSeconds: number
}

/** Counts the failed logins of one sender, in the database, so that all instances share the count. */
export function createFailureCounter(
  { db }: Store,
  { count, withinSeconds }: FailureLimit,
  sender: readonly string[],
) {
  const key = sha256(JSON.stringify(sender))
  return {
    async add(trx: Kysely<Schema>, now: number): Promise<void> {
      await trx.insertInto('login_failure').values({ username_address_hash: key, at: now }).execute()
    },
    async clear(trx: Kysely<Schema>): Promise<void> {
      await trx.deleteFrom('login_failure').where('username_address_hash', '=', key).execute()
    },
    /** Seconds until the next attempt is allowed. */
    async wait(now: number): Promise<number> {
      const since = now - withinSeconds * 1000
      const oldest = await db
        .selectFrom('login_failure')
        .select('at')
        .where('username_address_hash', '=', key)
        .where('at', '>', since)
        .orderBy('at', 'desc')
        .offset(count - 1)
        .limit(1)
        .executeTakeFirst()
      return oldest === undefined ? 0 : Math.ceil((oldest.at - since) / 1000)
    },
  }
}
