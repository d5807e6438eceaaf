import type { Kysely } from 'kysely'
import type { Schema } from './schema.ts'
import { prepareQuery } from './store.ts'

/** Tables in which requests of browsers without a login wait for their next step. */
type PendingTable = 'app_launch' | 'authorization_request' | 'pending_sign_in'

interface PendingLimits {
  readonly perNetwork: number
  readonly inAll: number
}

interface Requester {
  readonly networkHash: string
  readonly now: number
}

/** Creates a check of whether the pending rows have reached a limit, for one network or in all. */
export function limitPendingRows(
  table: PendingTable,
  { perNetwork, inAll }: PendingLimits,
): (db: Kysely<Schema>, requester: Requester) => Promise<boolean> {
  const countOfNetwork = prepareQuery((db, { networkHash, now }: Requester) =>
    countPending(db, table, now).where('network_hash', '=', networkHash),
  )
  // Both counts use only the index on these two columns. Rows of users who are logged in have no network.
  const countInAll = prepareQuery((db, { now }: Requester) =>
    countPending(db, table, now).where('network_hash', '>', ''),
  )
  return async (db, requester) => {
    const [own] = (await countOfNetwork(db, requester)).rows
    if (Number(own?.count) >= perNetwork) return true
    const [all] = (await countInAll(db, requester)).rows
    return Number(all?.count) >= inAll
  }
}

function countPending(db: Kysely<Schema>, table: PendingTable, now: number) {
  return db
    .selectFrom(table)
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('expires_at', '>', now)
}
