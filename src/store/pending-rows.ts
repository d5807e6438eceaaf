import type { Kysely } from 'kysely'
import type { Schema } from './schema.ts'
import { prepareQuery } from './store.ts'

/** Tables in which requests of browsers without a login wait for their next step, and their keys. */
const KEYS = {
  app_launch: 'state_hash',
  authorization_request: 'id_hash',
  pending_login: 'id_hash',
  pending_sign_in: 'state_hash',
} as const

type PendingTable = keyof typeof KEYS

interface PendingLimits {
  readonly perNetwork: number
  readonly inAll: number
}

interface Requester {
  readonly networkHash: string
  readonly now: number
}

/** Rows that are deleted at once, so that a flood does not search for the largest network with every request. */
const DELETED_AT_ONCE = 100

/**
 * Creates a function that says whether there is room for one more pending row: of its network, and in all. It says what of
 * the two is missing.
 */
export function countPendingRows(
  table: PendingTable,
  { perNetwork, inAll }: PendingLimits,
): (db: Kysely<Schema>, requester: Requester) => Promise<'room' | 'network is full' | 'all are full'> {
  const countOfNetwork = prepareQuery((db, { networkHash, now }: Requester) =>
    countPending(db, table, now).where('network_hash', '=', networkHash),
  )
  // Both counts use only the index on these two columns. Rows of users who are logged in, or know their password, have no network.
  const countInAll = prepareQuery((db, { now }: Requester) =>
    countPending(db, table, now).where('network_hash', '>', ''),
  )
  return async (db, requester) => {
    const [own] = (await countOfNetwork(db, requester)).rows
    if (Number(own?.count) >= perNetwork) return 'network is full'
    const [all] = (await countInAll(db, requester)).rows
    return Number(all?.count) >= inAll ? 'all are full' : 'room'
  }
}

/**
 * Creates a function that makes room for one more pending row. It returns false if the network has reached its limit. The
 * limit of all rows never refuses anyone, because then a few networks could refuse everyone: it deletes the oldest rows of a
 * network that has more than a tenth of them, or else the oldest of all.
 */
export function limitPendingRows(
  table: PendingTable,
  limits: PendingLimits,
): (db: Kysely<Schema>, requester: Requester) => Promise<boolean> {
  const count = countPendingRows(table, limits)
  return async (db, requester) => {
    const found = await count(db, requester)
    if (found === 'all are full') await deleteOldest(db, table, await findFlood(db, table, limits.inAll / 10))
    return found !== 'network is full'
  }
}

function countPending(db: Kysely<Schema>, table: PendingTable, now: number) {
  return db
    .selectFrom(table)
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('expires_at', '>', now)
}

/** The network with the most rows, if it has more than a share of them. */
async function findFlood(db: Kysely<Schema>, table: PendingTable, share: number): Promise<string | null> {
  const largest = await db
    .selectFrom(table)
    .select(({ fn }) => ['network_hash', fn.countAll<number>().as('count')])
    .where('network_hash', '>', '')
    .groupBy('network_hash')
    .orderBy('count', 'desc')
    .limit(1)
    .executeTakeFirst()
  return largest && Number(largest.count) > share ? largest.network_hash : null
}

async function deleteOldest(db: Kysely<Schema>, table: PendingTable, network: string | null): Promise<void> {
  const key = KEYS[table]
  const oldest = db
    .selectFrom(table)
    .select(key)
    .where('network_hash', network === null ? '>' : '=', network ?? '')
    .orderBy('expires_at')
    .limit(DELETED_AT_ONCE)
  await db.deleteFrom(table).where(key, 'in', oldest).execute()
}
