import { createHash } from 'node:crypto'
import type { Kysely, Selectable } from 'kysely'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../core/index.ts'
import {
  type JobOptions,
  removeUntil,
  repeatInOneProcess,
  type Schema,
  type Sealer,
  type Store,
} from '../../store/index.ts'
import { toRow } from '../to-row.ts'
import type { KeptRecord } from './find.ts'
import { followTrail, readOn, type TrailReader, waitForSettledId } from './follow.ts'

export type Seal = Selectable<Schema['audit_seal']>

/** The seal before the first one. */
export const BEGINNING = { number: 0, last_id: 0, hash: '' } as const

/** Reading and hashing them takes a few milliseconds. */
const RECORDS_OF_A_SEAL = 250

/**
 * The hash of a seal covers the hash of the seal before and its records: a change, removal, insertion or another order
 * of records changes all seals that follow.
 */
export function computeSealHash(
  before: Pick<Seal, 'number' | 'hash'>,
  records: readonly KeptRecord[],
): string {
  const content = JSON.stringify([before.number + 1, before.hash, records.map(listValues)])
  return createHash('sha256').update(content).digest('base64url')
}

/** The order never changes. A later version adds columns at the end, which earlier records do not have. */
const ORDER: Readonly<Record<keyof KeptRecord, true>> = {
  id: true,
  at: true,
  server: true,
  kind: true,
  interaction: true,
  allowed: true,
  status: true,
  method: true,
  request: true,
  resource_type: true,
  resource_id: true,
  patient_id: true,
  patients: true,
  client_id: true,
  subject: true,
  fhir_user: true,
  decided_by: true,
  reason: true,
  launch_id: true,
  request_id: true,
  address: true,
  repeats: true,
  delivery_id: true,
  details: true,
  token_id: true,
}
const COLUMNS = Object.keys(ORDER) as readonly (keyof KeptRecord)[]

function listValues(record: KeptRecord): readonly unknown[] {
  const values = COLUMNS.map(column => record[column])
  return values.slice(0, values.findLastIndex(value => value !== null) + 1)
}

function describeCell(column: 'hash_sealed' | 'checkpoint_sealed', number: number) {
  return { table: 'audit_seal', column, row: String(number) } as const
}

/** Whether the seal was made with the secret of this deployment. */
export function isGenuine(sealer: Sealer, { number, hash, hash_sealed: sealed }: Seal): boolean {
  return sealer.tryOpen(sealed, describeCell('hash_sealed', number)) === hash
}

/** Whether this deployment removed the records up to this seal. */
export function isCheckpoint(sealer: Sealer, { number, hash, checkpoint_sealed: sealed }: Seal): boolean {
  return sealed !== null && sealer.tryOpen(sealed, describeCell('checkpoint_sealed', number)) === hash
}

export async function findLastSeal({ db }: Store): Promise<Seal | undefined> {
  return db.selectFrom('audit_seal').selectAll().orderBy('number', 'desc').limit(1).executeTakeFirst()
}

/** Makes the seals. It continues no chain that was made without the secret, or whose end is missing. */
export function createSealMaker(store: Store, sealer: Sealer): TrailReader {
  let seen = 0
  return {
    atOnce: RECORDS_OF_A_SEAL,
    findPosition: async () => (await findLastSeal(store))?.last_id ?? 0,
    async process(records, position) {
      const last = await findLastSeal(store)
      if (last && !isGenuine(sealer, last)) throw createSealError(`seal ${last.number} was changed`)
      const before = last ?? BEGINNING
      if (before.number < seen) throw createSealError(`seal ${seen} was removed`)
      seen = before.number
      if (before.last_id !== position) return
      await store.db
        .insertInto('audit_seal')
        .values(makeSeal(sealer, before, records))
        .onConflict(conflict => conflict.doNothing())
        .execute()
    },
  }
}

function makeSeal(sealer: Sealer, before: Pick<Seal, 'number' | 'hash'>, records: readonly KeptRecord[]) {
  const number = before.number + 1
  const hash = computeSealHash(before, records)
  return {
    number,
    last_id: records.at(-1)?.id ?? 0,
    records: records.length,
    newest_at: Math.max(...records.map(({ at }) => at)),
    hash,
    hash_sealed: sealer.seal(hash, describeCell('hash_sealed', number)),
  }
}

function createSealError(problem: string): Error {
  return new Error(`Cannot seal the audit trail: ${problem}; run sallyport audit verify`)
}

/** Makes all seals again with another secret. Verify first that they agree with the records. */
export async function adoptSeals(db: Kysely<Schema>, sealer: Sealer): Promise<void> {
  const seals = await db
    .selectFrom('audit_seal')
    .select(['number', 'hash', 'checkpoint_sealed'])
    .orderBy('number')
    .execute()
  for (const { number, hash, checkpoint_sealed: checkpoint } of seals)
    await db
      .updateTable('audit_seal')
      .set({
        hash_sealed: sealer.seal(hash, describeCell('hash_sealed', number)),
        ...(checkpoint !== null && {
          checkpoint_sealed: sealer.seal(hash, describeCell('checkpoint_sealed', number)),
        }),
      })
      .where('number', '=', number)
      .execute()
}

/** Seals all records that are in the trail now. */
export async function sealTrail(store: Store, sealer: Sealer): Promise<void> {
  await readOn(store, createSealMaker(store, sealer), await waitForSettledId(store))
}

export function startSealing(store: Store, sealer: Sealer, options: JobOptions): { stop(): Promise<void> } {
  const { clock = Date.now } = options
  const maker = createSealMaker(store, sealer)
  let headDueAt = 0
  const process: TrailReader['process'] = async (...input) => {
    await maker.process(...input)
    if (clock() < headDueAt) return
    headDueAt = clock() + MINUTE_MS
    await recordHead(store, clock())
  }
  return followTrail(store, 'seal', { ...maker, process }, options)
}

/**
 * Once an hour the newest seal becomes a record, which the feeds send to other systems: with its hash they can prove that
 * the end of the trail is missing.
 */
export async function recordHead(store: Store, now: number): Promise<void> {
  const { db } = store
  const row = { feed: 'head', last_id: 0, moved_at: now }
  await db
    .insertInto('audit_cursor')
    .values(row)
    .onConflict(conflict => conflict.doNothing())
    .execute()
  const { numUpdatedRows } = await db
    .updateTable('audit_cursor')
    .set(row)
    .where('feed', '=', row.feed)
    .where('moved_at', '<=', now - HOUR_MS)
    .executeTakeFirst()
  const last = numUpdatedRows > 0n ? await findLastSeal(store) : undefined
  if (!last) return
  await store.trail.append([
    toRow({ at: now, server: 'auth', kind: 'seal', allowed: true, status: 200, reason: formatHead(last) }),
  ])
}

export function formatHead({ number, hash }: Pick<Seal, 'number' | 'hash'>): string {
  return `${number}:${hash}`
}

interface Retention {
  readonly days: number
  /** Feeds that must have delivered a record before it is removed. */
  readonly feeds?: readonly string[]
}

/**
 * Removes records older than `smart.server.audit-days`, in small steps so that nobody waits long. All records of a seal are
 * removed together; the last removed seal stays as the checkpoint at which the chain begins. The newest seal and its
 * records always stay, so that SQLite does not assign their ids again.
 */
export async function sweepAudit(
  store: Store,
  sealer: Sealer,
  { days, feeds = [] }: Retention,
  now: number,
): Promise<number> {
  await sealTrail(store, sealer)
  const last = await findRemovable(store, now - days * DAY_MS, feeds)
  if (!last) return 0
  await store.db
    .updateTable('audit_seal')
    .set({ checkpoint_sealed: sealer.seal(last.hash, describeCell('checkpoint_sealed', last.number)) })
    .where('number', '=', last.number)
    .where('checkpoint_sealed', 'is', null)
    .execute()
  // A record may have any number of links, and a statement removes a limited number of rows.
  await removeUntil(store, 'audit_event_patient', 'audit_id', last.last_id + 1)
  const removed = await removeUntil(store, 'audit_event', 'id', last.last_id + 1)
  await removeUntil(store, 'audit_seal', 'number', last.number)
  return removed
}

export function startSweepingAudit(
  store: Store,
  sealer: Sealer,
  retention: Retention,
  options: JobOptions,
): { stop(): Promise<void> } {
  return repeatInOneProcess(store, 'audit-sweep', { everyMs: HOUR_MS, ...options }, now =>
    sweepAudit(store, sealer, retention, now),
  )
}

/** The last of the seals whose records are all older, and delivered. */
async function findRemovable(
  { db }: Store,
  end: number,
  feeds: readonly string[],
): Promise<Seal | undefined> {
  const kept = await db
    .selectFrom('audit_seal')
    .select(({ fn }) => fn.min('number').as('number'))
    .where('newest_at', '>=', end)
    .executeTakeFirst()
  const newest = await db
    .selectFrom('audit_seal')
    .select(({ fn }) => fn.max('number').as('number'))
    .executeTakeFirst()
  const cursors = await Promise.all(
    feeds.map(feed =>
      db.selectFrom('audit_cursor').select('last_id').where('feed', '=', feed).executeTakeFirst(),
    ),
  )
  return db
    .selectFrom('audit_seal')
    .selectAll()
    .where('number', '<', Number(kept?.number ?? newest?.number ?? 0))
    .where('last_id', '<=', Math.min(Number.MAX_SAFE_INTEGER, ...cursors.map(cursor => cursor?.last_id ?? 0)))
    .orderBy('number', 'desc')
    .limit(1)
    .executeTakeFirst()
}
