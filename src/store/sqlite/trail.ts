import { once } from 'node:events'
import { setImmediate as letOthersRun } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import type { Insertable, Kysely, Transaction } from 'kysely'
import { findOwnProgram } from '../../core/index.ts'
import {
  commit,
  type DatabaseFile,
  DatabaseUnavailable,
  GroupCommit,
  insertRows,
  type SqliteConnection,
  type SqliteRow,
} from '../../sqlite/index.ts'
import { type Availability, isDatabaseUnavailable } from '../availability.ts'
import type { Schema } from '../schema.ts'
import { prepareInsert, type StoreOptions } from '../store.ts'
import { type Trail, writeTogether } from '../trail.ts'
import { moveBatch } from './move-batch.ts'

/**
 * The audit trail has many indexes, so adding a record changes many pages. Records wait in a table without indexes
 * (`addRow`), where `commit` of `sqlite/database-file.ts` puts them on disk. They are moved to the trail in batches: every
 * second, before a query, and by a thread if there are many (decision 0250).
 */
export interface SqliteTrail extends Trail {
  /** Call when the tables exist. */
  begin(): void
  close(): Promise<void>
}

interface TrailOptions extends Pick<StoreOptions, 'worker' | 'onStuckRecords'> {
  /** The path of the file. */
  readonly path: string
  readonly db: Kysely<Schema>
  readonly availability: Availability
}

type TrailRow = Insertable<Schema['audit_event']>

const MOVE_EVERY_MS = 1000
/** A thread moves more. */
const MAX_MOVED_HERE = 300
const BATCH_HERE = 100
/** If more records wait, requests wait until they are moved. */
const MAX_WAITING = 100_000
const APPENDED_BETWEEN_CHECKS = 5000
/** Records that are added without a pause. A Bundle may have thousands, each in all indexes of the trail. */
const APPENDED_AT_ONCE = 300

export function openTrail(file: DatabaseFile, options: TrailOptions): SqliteTrail {
  const { path, db, worker, availability, onStuckRecords } = options
  const moves = new GroupCommit(() => {}, moveAll)
  let timer: NodeJS.Timeout | undefined
  let mover: Mover | undefined
  let reported = ''
  let appended = 0
  let isClosed = false

  async function use<T>(work: () => Promise<T>): Promise<T> {
    if (isClosed) throw new DatabaseUnavailable('Cannot use database: it is closed')
    file.check()
    return availability.use(work)
  }

  function write(work: () => void): Promise<void> {
    return use(() => commit(file, work))
  }

  async function append(rows: readonly TrailRow[]): Promise<void> {
    if (appended >= APPENDED_BETWEEN_CHECKS) {
      if (countWaiting() > MAX_WAITING) await use(() => moves.join().durable)
      appended = 1
    }
    if (rows.length > APPENDED_AT_ONCE) await use(() => appendInSteps(rows))
    else
      await write(() => {
        for (const row of rows) addRow(file.writes, row)
      })
    appended += rows.length
  }

  /** In one transaction, between whose steps others run. */
  function appendInSteps(rows: readonly TrailRow[]): Promise<void> {
    return db.transaction().execute(async trx => {
      for (const [at, row] of rows.entries()) {
        await addRowIn(trx, row)
        if ((at + 1) % APPENDED_AT_ONCE === 0) await letOthersRun()
      }
    })
  }

  /** The ids of waiting records have no gaps. */
  function countWaiting(): number {
    const [found] = file.reads.all('select max(id) - min(id) + 1 as count from audit_waiting')
    return Number(found?.count ?? 0)
  }

  async function moveAll(): Promise<void> {
    // Records that are moved to a deleted database would be lost.
    file.check()
    const waiting = countWaiting()
    if (waiting === 0) return
    if (waiting > MAX_MOVED_HERE) await moveInThread()
    else while ((await moveHere()) === BATCH_HERE) await letOthersRun()
    await file.flush()
  }

  function moveHere(): Promise<number> {
    return commit(file, () => moveBatch(file.writes, BATCH_HERE))
  }

  async function moveInThread(): Promise<void> {
    mover ??= startMover(path)
    const current = mover
    try {
      await current.move()
    } catch (error) {
      mover = undefined
      await current.end()
      throw error
    }
  }

  /** Records that cannot be moved now are moved later. */
  async function moveLater(): Promise<void> {
    try {
      await moves.join().durable
      reported = ''
    } catch (error) {
      availability.report(error)
      if (reported !== String(error) && !isDatabaseUnavailable(error)) onStuckRecords?.(error)
      reported = String(error)
    }
  }

  return {
    append: writeTogether(append),
    async appendIn(trx, row) {
      await addRowIn(trx, row)
      appended++
    },
    announce: writeTogether(rows => write(() => insertRows(file.writes, 'audit_intent', rows))),
    async read() {
      await use(() => moves.join().durable)
      return db
    },
    begin() {
      if (worker === undefined) timer = setInterval(moveLater, MOVE_EVERY_MS).unref()
    },
    async close() {
      clearInterval(timer)
      isClosed = true
      if (appended > 0) await moveLater()
      await moves.finish()
      await mover?.end()
    },
  }
}

/** A record with a delivery id does not wait: the trail refuses a second one with the same id. */
function addRow(connection: SqliteConnection, row: SqliteRow): void {
  checkRow(row)
  if (row.delivery_id) insertRows(connection, 'audit_event', [row])
  else connection.write('insert into audit_waiting (record) values (?)', JSON.stringify(row))
}

/** Like `addRow`, in a transaction that is open. */
async function addRowIn(trx: Transaction<Schema>, row: TrailRow): Promise<void> {
  checkRow(row)
  if (row.delivery_id) await insertEvent(trx, row)
  else await insertWaiting(trx, { record: JSON.stringify(row) })
}

const insertWaiting = prepareInsert('audit_waiting')
const insertEvent = prepareInsert('audit_event')

/** The trail would refuse a record without these, but only after it was acknowledged. */
const REQUIRED = ['at', 'server', 'kind', 'allowed', 'status'] as const

function checkRow(row: SqliteRow): void {
  const missing = REQUIRED.find(column => row[column] === undefined || row[column] === null)
  if (missing) throw new TypeError(`Cannot store audit record: it has no ${missing}`)
}

interface Mover {
  /** Moves all waiting records. */
  move(): Promise<void>
  end(): Promise<void>
}

interface Outcome {
  readonly failure?: string
  readonly errcode?: number
}

/** The thread takes tens of milliseconds to start. A larger young generation would only take memory. */
function startMover(path: string): Mover {
  const thread = new Worker(findOwnProgram('src/store/sqlite/trail-thread'), {
    workerData: path,
    resourceLimits: { maxYoungGenerationSizeMb: 2 },
  })
  thread.unref()
  // Without a listener an error would end the process. `move` reports it.
  thread.on('error', () => {})
  return {
    async move() {
      thread.ref()
      try {
        thread.postMessage('move')
        const [{ failure, errcode }] = (await once(thread, 'message')) as [Outcome]
        if (failure !== undefined) throw Object.assign(new Error(failure), { errcode })
      } finally {
        thread.unref()
      }
    },
    async end() {
      await thread.terminate()
    },
  }
}
