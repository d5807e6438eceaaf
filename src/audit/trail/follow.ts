import { setTimeout as pause } from 'node:timers/promises'
import { sql } from 'kysely'
import { type JobOptions, repeatInOneProcess, type Store } from '../../store/index.ts'
import type { KeptRecord } from './find.ts'

/** Processes the records of the trail in the order of their ids. */
export interface TrailReader {
  /** The id of the last record that it has processed. */
  findPosition(): Promise<number>
  /** Processes the records after a position, and stores the new position. The signal ends an attempt. */
  process(records: readonly KeptRecord[], position: number, signal: AbortSignal): Promise<void>
  readonly atOnce: number
}

/** Finds an id up to which no record can appear any more. */
export type FindSettledId = () => Promise<number>

/**
 * On SQLite records appear in the order of their ids. On PostgreSQL a transaction may commit after a later one. It locks
 * the table before it gets an id, and until its end: ids are settled when the transactions that held the lock after
 * these ids were read have ended.
 */
export function createSettledFinder(store: Store): FindSettledId {
  if (store.dialect === 'sqlite') return () => findLastId(store)
  let settled = 0
  let candidate: { readonly id: number; readonly writers: readonly string[] } | undefined
  return async () => {
    const id = await findLastId(store)
    const writers = await listWriters(store)
    const isRunning = (writer: string) => writers.includes(writer)
    if (candidate && !candidate.writers.some(isRunning)) {
      settled = candidate.id
      candidate = undefined
    }
    if (writers.length === 0) settled = id
    else candidate ??= { id, writers }
    return settled
  }
}

const LOOK_MS = 20

/** Waits for transactions that may add records before the last one. */
export async function waitForSettledId(store: Store): Promise<number> {
  const last = await findLastId(store)
  const findSettledId = createSettledFinder(store)
  for (;;) {
    const settled = await findSettledId()
    if (settled >= last) return settled
    await pause(LOOK_MS)
  }
}

export async function findLastId({ trail }: Store): Promise<number> {
  const db = await trail.read()
  const row = await db
    .selectFrom('audit_event')
    .select(({ fn }) => fn.max('id').as('id'))
    .executeTakeFirst()
  return Number(row?.id ?? 0)
}

async function listWriters({ db }: Store): Promise<readonly string[]> {
  const { rows } = await sql<{ writer: string }>`select virtualtransaction as writer from pg_locks
    where relation = 'audit_event'::regclass and mode = 'RowExclusiveLock'
    and database = (select oid from pg_database where datname = current_database())`.execute(db)
  return rows.map(({ writer }) => writer)
}

/** Requests have most of the time, even if a long trail is read for the first time. */
const BREAK_MS = 5

interface Reading {
  readonly mayContinue?: () => boolean
  readonly signal?: AbortSignal
}

/** Passes all records up to `end` to a reader. */
export async function readOn(
  store: Store,
  reader: TrailReader,
  end: number,
  { mayContinue = () => true, signal = new AbortController().signal }: Reading = {},
): Promise<void> {
  while (mayContinue()) {
    const position = await reader.findPosition()
    const records = await readAfter(store, position, end, reader.atOnce)
    if (records.length === 0) return
    let before = position
    for (const part of divide(records)) {
      if (!mayContinue()) return
      await reader.process(part, before, signal)
      before = part.at(-1)?.id ?? before
      await pause(BREAK_MS)
    }
  }
}

/** A record may have any number of patients. So many characters of them are hashed, or converted and sent, at once. */
const PATIENT_CHARACTERS = 200_000

function divide(records: readonly KeptRecord[]): readonly (readonly KeptRecord[])[] {
  const parts: KeptRecord[][] = []
  let characters = Number.POSITIVE_INFINITY
  for (const record of records) {
    const size = record.patients?.length ?? 0
    characters += size
    if (characters > PATIENT_CHARACTERS) {
      parts.push([])
      characters = size
    }
    parts.at(-1)?.push(record)
  }
  return parts
}

/** Reads records up to an id that `findLastId` has returned. */
export function readAfter({ db }: Store, position: number, end: number, limit: number) {
  return db
    .selectFrom('audit_event')
    .selectAll()
    .where('id', '>', position)
    .where('id', '<=', end)
    .orderBy('id')
    .limit(limit)
    .execute()
}

const EVERY_MS = 1000
const ROUND_MS = 4000
/** Longer than a round and the longest attempt to deliver records. */
const LEASE_MS = 15_000
/** A process that stops lets a delivery finish: otherwise its records are sent again. */
const FINISH_MS = 2000
const MAX_PAUSE_MS = 60_000

/**
 * Follows the trail in one of the processes that share the database. After a failure it pauses, twice as long each time, up to
 * a minute, and continues at the stored position: no record is left out, and memory does not grow.
 */
export function followTrail(
  store: Store,
  name: string,
  reader: TrailReader,
  { clock = Date.now, everyMs = EVERY_MS, leaseMs = LEASE_MS, onError }: JobOptions,
): { stop(): Promise<void> } {
  const findSettledId = createSettledFinder(store)
  const stopping = new AbortController()
  let isStopping = false
  let pauseMs = 0
  let resumeAt = 0
  let end = 0
  const hasWork = async () => {
    if (clock() < resumeAt) return false
    end = await findSettledId()
    return end > (await reader.findPosition())
  }
  const backOff = (error: unknown) => {
    pauseMs = Math.min(Math.max(everyMs, 2 * pauseMs), MAX_PAUSE_MS)
    resumeAt = clock() + pauseMs
    if (!isStopping) onError(error)
  }
  const job = repeatInOneProcess(
    store,
    `audit-${name}`,
    { clock, everyMs, leaseMs, hasWork, onError: backOff },
    async now => {
      const mayContinue = () => !isStopping && clock() < now + ROUND_MS
      await readOn(store, reader, end, { mayContinue, signal: stopping.signal })
      pauseMs = 0
    },
  )
  return {
    async stop() {
      isStopping = true
      const timer = setTimeout(() => stopping.abort(), FINISH_MS)
      await job.stop()
      clearTimeout(timer)
    },
  }
}
