import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { setImmediate as letOthersRun } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { DatabaseUnavailable } from '../availability.ts'
import { commit, type DatabaseFile, openDatabaseFile, type Row, retryWhileBusy } from './database-file.ts'
import {
  findQueues,
  findWaiting,
  GROUP,
  moveBatch,
  nameQueue,
  readName,
  removeMoved,
} from './move-records.ts'
import { SharedRuns } from './shared-runs.ts'

/**
 * Audit records that wait to be added to the trail. The trail has many indexes, so that adding a record changes many pages;
 * the queue is a file of its own without an index. Its records are moved in batches, if there are many in a thread, so
 * that a request waits for one short commit only (decision 0236).
 */
export interface AuditQueue {
  /** Resolves when the records are on disk. */
  add(rows: readonly Row[]): Promise<void>
  /** Resolves if the queue accepts records. */
  probe(): Promise<void>
  /** Resolves when all records that any process has added are in the trail. */
  drain(): Promise<void>
  close(): Promise<void>
}

export interface AuditQueueOptions {
  /** Of the database with the trail. */
  readonly path: string
  /** A worker has a queue of its own, so that it waits for no other process. Its supervisor moves the records. */
  readonly worker?: number | undefined
  readonly onError: (error: unknown) => void
}

const MOVE_EVERY_MS = 300
/** More records are moved in a thread. */
const MOST_HERE = 100
/** Groups in the queue: further records wait until others are moved. */
const MOST_WAITING = 5000
const CHECK_EVERY = 1000

/** Tests the space and the right to write, and leaves no record. */
const PROBE = `savepoint probe; insert into waiting (count, records) values (0, '[]'); rollback to savepoint probe;
  update queue set name = name`

interface Queue {
  readonly file: DatabaseFile
  readonly name: string
}

export function openAuditQueue(
  trail: DatabaseFile,
  { path, worker, onError }: AuditQueueOptions,
): AuditQueue {
  const opened = new Map<string, Promise<Queue>>()
  const ownPath = nameQueue(path, worker ?? 1)
  const drains = new SharedRuns(move)
  const timer =
    worker === undefined ? setInterval(() => drains.run().catch(onError), MOVE_EVERY_MS).unref() : undefined
  let mover: Mover | undefined
  let additions = 0
  let isClosed = false

  async function open(file: string): Promise<Queue> {
    if (isClosed) throw new DatabaseUnavailable('Cannot use the queue of audit records: it is closed')
    const queue = opened.get(file) ?? openQueue(file)
    opened.set(file, queue)
    queue.catch(() => opened.delete(file))
    return queue
  }

  async function move(): Promise<void> {
    const files = findQueues(path)
    const queues = await Promise.all(files.map(open))
    const waiting = queues.map(queue => [queue, findWaiting(queue.file.reads)] as const)
    const sum = waiting.reduce((all, [, { records }]) => all + records, 0)
    if (sum > MOST_HERE) await moveInThread(files)
    else for (const [queue, { groups, end }] of waiting) if (groups > 0) await moveHere(trail, queue, end)
  }

  async function moveInThread(files: readonly string[]): Promise<void> {
    mover ??= startMover(path)
    const current = mover
    try {
      await current.move(files)
    } catch (error) {
      mover = undefined
      await current.end()
      throw error
    }
  }

  return {
    async add(rows) {
      if (rows.length === 0) return
      checkRows(rows)
      const { file } = await open(ownPath)
      file.check()
      if (++additions % CHECK_EVERY === 0 && findWaiting(file.reads).groups > MOST_WAITING) await drains.run()
      await commit(file, () => addGroups(file, rows))
    },
    async probe() {
      const { file } = await open(ownPath)
      file.check()
      await commit(file, () => file.writes.exec(PROBE))
    },
    drain: () => drains.run(),
    async close() {
      clearInterval(timer)
      // Records that cannot be moved now are moved after the next start.
      if (opened.size > 0) await drains.run().catch(onError)
      await drains.finish()
      await mover?.end()
      // A probe may begin even now, and would leave files open.
      isClosed = true
      for (const queue of opened.values()) await (await queue).file.close()
    },
  }
}

async function openQueue(path: string): Promise<Queue> {
  closeSync(openSync(path, 'a', 0o600))
  const file = await openDatabaseFile(path)
  await retryWhileBusy(() =>
    file.writes.exec(`create table if not exists waiting (id integer primary key autoincrement, count integer not null,
        records text not null);
      create table if not exists queue (name text not null);
      insert into queue (name) select '${randomUUID()}' where not exists (select 1 from queue)`),
  )
  return { file, name: readName(file.writes) }
}

const REQUIRED = ['at', 'server', 'kind', 'allowed', 'status'] as const

/** The trail would refuse such a row after it was acknowledged. */
function checkRows(rows: readonly Row[]): void {
  for (const row of rows)
    for (const column of REQUIRED)
      if (row[column] === undefined || row[column] === null)
        throw new TypeError(`Cannot store audit record: it has no ${column}`)
}

function addGroups({ writes }: DatabaseFile, rows: readonly Row[]): void {
  for (let at = 0; at < rows.length; at += GROUP) {
    const group = rows.slice(at, at + GROUP)
    writes.write('insert into waiting (count, records) values (?, ?)', group.length, JSON.stringify(group))
  }
}

async function moveHere(trail: DatabaseFile, { file, name }: Queue, end: number): Promise<void> {
  for (let position = 0; position < end; ) {
    await commit(trail, () => {
      position = moveBatch(trail.writes, file.reads, { name, end, most: GROUP })
    })
    await retryWhileBusy(() => removeMoved(file.writes, position))
    await letOthersRun()
  }
}

interface Mover {
  /** Empties these queues. */
  move(files: readonly string[]): Promise<void>
  end(): Promise<void>
}

interface Outcome {
  readonly failure?: string
  readonly errcode?: number
}

/** The thread takes tens of milliseconds to start, and about 10 MB. */
function startMover(path: string): Mover {
  const thread = new Worker(new URL('./move-records-thread.ts', import.meta.url), { workerData: path })
  thread.unref()
  // Without a listener an error would end the process. `move` reports it.
  thread.on('error', () => {})
  return {
    async move(files) {
      thread.ref()
      try {
        thread.postMessage(files)
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
