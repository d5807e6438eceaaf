import type { Transaction } from 'kysely'
import { MINUTE_MS } from '../../core/index.ts'
import { type JobOptions, repeatInOneProcess, type Schema, type Store } from '../../store/index.ts'
import type { KeptRecord } from '../trail/find.ts'
import { findLastId, followTrail, type TrailReader } from '../trail/follow.ts'
import { findLastSeal } from '../trail/seal.ts'

export interface RefusedRecord {
  readonly id: number
  readonly reason: string
}

/** Resolves when the receiver has the records, with those that it refused. Rejects if they must be sent again. */
export type SendRecords = (
  records: readonly KeptRecord[],
  signal: AbortSignal,
) => Promise<readonly RefusedRecord[]>

export interface FeedOptions extends JobOptions {
  readonly name: string
  readonly send: SendRecords
  /** Receives records that the receiver refused. They are sent again later. */
  readonly onRefused: (refused: readonly RefusedRecord[]) => void
}

const RECORDS_AT_ONCE = 100
const RETRY_REFUSED_MS = 10 * MINUTE_MS

/** A receiver that refuses more has a fault that does not concern single records: the feed waits. */
const MAX_REFUSED = 1000

/**
 * Sends every record of the trail to another system, at least once and in order. The position is in the database: a
 * restart, a crash or an outage of the receiver loses nothing, and another process continues.
 */
export function startFeed(store: Store, options: FeedOptions): { stop(): Promise<void> } {
  const stopping = new AbortController()
  const jobs = [
    followTrail(store, options.name, createFeedReader(store, options), options),
    repeatInOneProcess(
      store,
      `audit-${options.name}-refused`,
      {
        ...options,
        everyMs: RETRY_REFUSED_MS,
        hasWork: async () => (await countRefused(store, options.name)) > 0,
      },
      () => retryRefused(store, options, stopping.signal),
    ),
  ]
  return {
    async stop() {
      stopping.abort()
      await Promise.all(jobs.map(job => job.stop()))
    },
  }
}

function createFeedReader(
  store: Store,
  { name, send, onRefused, clock = Date.now }: Omit<FeedOptions, 'onError'>,
): TrailReader {
  return {
    atOnce: RECORDS_AT_ONCE,
    findPosition: async () => (await findCursor(store, name))?.last_id ?? 0,
    async process(records, position, signal) {
      if ((await countRefused(store, name)) >= MAX_REFUSED)
        throw new Error(`Cannot send audit records: the receiver of the ${name} refused ${MAX_REFUSED}`)
      const refused = await send(records, signal)
      if (refused.length > 0) onRefused(refused)
      const last = records.at(-1)?.id ?? position
      await store.db.transaction().execute(async trx => {
        await keepRefused(trx, name, refused, clock())
        await moveCursor(trx, { feed: name, last_id: last, moved_at: clock() })
      })
    },
  }
}

function findCursor({ db }: Store, feed: string) {
  return db.selectFrom('audit_cursor').select('last_id').where('feed', '=', feed).executeTakeFirst()
}

/** Never moves back: another process may have sent more. */
async function moveCursor(
  trx: Transaction<Schema>,
  cursor: { readonly feed: string; readonly last_id: number; readonly moved_at: number },
): Promise<void> {
  await trx
    .insertInto('audit_cursor')
    .values(cursor)
    .onConflict(conflict =>
      conflict.column('feed').doUpdateSet(cursor).where('audit_cursor.last_id', '<', cursor.last_id),
    )
    .execute()
}

async function keepRefused(
  trx: Transaction<Schema>,
  feed: string,
  refused: readonly RefusedRecord[],
  now: number,
): Promise<void> {
  for (const { id, reason } of refused)
    await trx
      .insertInto('audit_refused')
      .values({ feed, audit_id: id, refused_at: now, reason })
      .onConflict(conflict => conflict.columns(['feed', 'audit_id']).doUpdateSet({ refused_at: now, reason }))
      .execute()
}

/** Sends refused records again, those first that wait longest. */
async function retryRefused(
  store: Store,
  { name, send, onRefused, clock = Date.now }: Omit<FeedOptions, 'onError'>,
  signal: AbortSignal,
): Promise<void> {
  const { db } = store
  const waiting = db.selectFrom('audit_refused').where('feed', '=', name)
  const rows = await waiting.select('audit_id').orderBy('refused_at').limit(RECORDS_AT_ONCE).execute()
  const ids = rows.map(({ audit_id }) => audit_id)
  if (ids.length === 0) return
  const records = await db
    .selectFrom('audit_event')
    .selectAll()
    .where('id', 'in', ids)
    .orderBy('id')
    .execute()
  const refused = records.length === 0 ? [] : await send(records, signal)
  const removed = ids.filter(id => !records.some(record => record.id === id))
  const lost = removed.map(id => ({ id, reason: 'Removed after its retention time' }))
  if (refused.length + lost.length > 0) onRefused([...refused, ...lost])
  await db.transaction().execute(async trx => {
    await trx.deleteFrom('audit_refused').where('feed', '=', name).where('audit_id', 'in', ids).execute()
    await keepRefused(trx, name, refused, clock())
  })
}

/** How far the hash chain or a feed is behind the trail. */
export interface AuditLag {
  /** `seal`, or the name of a feed: `feed`, `syslog`. */
  readonly name: string
  /** Records that are not yet processed, at most: ids may have gaps. */
  readonly waiting: number
  /** The time of the oldest of them. */
  readonly oldestAt: number | undefined
  /** Records that the receiver refused, which are sent again later. */
  readonly refused: number
}

/** The numbers for metrics, read with a few short statements. */
export async function measureAuditLag(
  store: Store,
  feeds: readonly string[] = [],
): Promise<readonly AuditLag[]> {
  const last = await findLastId(store)
  const sealed = (await findLastSeal(store))?.last_id ?? 0
  const cursors = await store.db.selectFrom('audit_cursor').selectAll().execute()
  const positions = feeds.map(
    name => [name, cursors.find(({ feed }) => feed === name)?.last_id ?? 0] as const,
  )
  return Promise.all(
    [['seal', sealed] as const, ...positions].map(async ([name, position]) => ({
      name,
      waiting: Math.max(0, last - position),
      oldestAt: await findTimeAfter(store, position),
      refused: name === 'seal' ? 0 : await countRefused(store, name),
    })),
  )
}

async function findTimeAfter({ db }: Store, position: number): Promise<number | undefined> {
  const next = await db
    .selectFrom('audit_event')
    .select('at')
    .where('id', '>', position)
    .orderBy('id')
    .limit(1)
    .executeTakeFirst()
  return next?.at
}

async function countRefused({ db }: Store, feed: string): Promise<number> {
  const { count } = await db
    .selectFrom('audit_refused')
    .select(({ fn }) => fn.countAll().as('count'))
    .where('feed', '=', feed)
    .executeTakeFirstOrThrow()
  return Number(count)
}
