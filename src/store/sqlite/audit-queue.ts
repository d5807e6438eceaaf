import { once } from 'node:events'
import { setImmediate as letOthersRun } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { commit, type DatabaseFile, type Row } from './database-file.ts'
import {
  findMissing,
  isAbandoned,
  listQueueFiles,
  measureFile,
  moveBatch,
  removeFile,
} from './move-records.ts'
import { createQueueWriter, nameQueueFolder } from './queue-file.ts'
import { SharedRuns } from './shared-runs.ts'

/**
 * Audit records that wait to be added to the trail. The trail has many indexes, so adding a record changes many pages. The
 * queue is a folder of plain files: a request waits only for one short write. Records are moved to the trail in batches, by
 * a thread if there are many (decision 0236).
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
  /** The file of the database with the trail. */
  readonly path: string
  /** Set in a worker, whose supervisor moves the records. */
  readonly worker?: number | undefined
  /** Receives the reason why records stay in the queue, once until another one. */
  readonly onError: (error: unknown) => void
}

const MOVE_EVERY_MS = 300
/** About 300 records. A thread moves more. */
const MOST_BYTES_HERE = 150_000
const BATCH_HERE = 100
/** If the queue holds more, a process waits until it is moved before it opens a new file. */
const MOST_BYTES_WAITING = 64 * 1024 ** 2

export function openAuditQueue(
  trail: DatabaseFile,
  { path, worker, onError }: AuditQueueOptions,
): AuditQueue {
  const folder = nameQueueFolder(path)
  const writer = createQueueWriter(folder, { onFull: waitWhileFull })
  const drains = new SharedRuns(drain)
  /** The size of each file when all its records were in the trail. */
  const moved = new Map<string, number>()
  const timer = worker === undefined ? setInterval(moveAll, MOVE_EVERY_MS).unref() : undefined
  let mover: Mover | undefined
  let reported = ''

  /** Records that cannot be moved now are moved later. */
  async function moveAll(): Promise<void> {
    try {
      await drains.run()
      reported = ''
    } catch (error) {
      if (reported !== String(error)) onError(error)
      reported = String(error)
    }
  }

  async function drain(): Promise<void> {
    // Records that are moved to a deleted database would be lost.
    trail.check()
    const files = listQueueFiles(folder)
    const waiting = files.filter(file => countWaiting(file) > 0)
    const bytes = waiting.reduce((sum, file) => sum + countWaiting(file), 0)
    const sizes = waiting.map(file => [file, measureFile(file)] as const)
    if (bytes > MOST_BYTES_HERE) await moveInThread(waiting)
    else for (const [file, size] of sizes) await moveHere(trail, file, size)
    for (const [file, size] of sizes) moved.set(file, size)
    for (const file of files) if (isAbandoned(file) && countWaiting(file) <= 0) removeFile(file)
    const present = new Set(files)
    for (const file of moved.keys()) if (!present.has(file)) moved.delete(file)
  }

  function countWaiting(file: string): number {
    return measureFile(file) - (moved.get(file) ?? 0)
  }

  async function waitWhileFull(): Promise<void> {
    const bytes = listQueueFiles(folder).reduce((sum, file) => sum + measureFile(file), 0)
    if (bytes > MOST_BYTES_WAITING) await drains.run()
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
      checkRows(rows)
      if (rows.length > 0) await writer.add(rows)
    },
    probe: writer.probe,
    drain: () => drains.run(),
    async close() {
      clearInterval(timer)
      if (await writer.end()) await moveAll()
      await drains.finish()
      await mover?.end()
    },
  }
}

/** The trail would refuse an incomplete row only after it was acknowledged. */
function checkRows(rows: readonly Row[]): void {
  for (const row of rows) {
    const missing = findMissing(row)
    if (missing) throw new TypeError(`Cannot store audit record: it has no ${missing}`)
  }
}

async function moveHere(trail: DatabaseFile, file: string, end: number): Promise<void> {
  for (let [position, isMoving] = [-1, true]; isMoving && position < end; ) {
    const moved = await commit(trail, () => moveBatch(trail.writes, file, BATCH_HERE))
    if (moved.isEnded) removeFile(file)
    isMoving = !moved.isEnded && moved.position > position
    position = moved.position
    await letOthersRun()
  }
}

interface Mover {
  /** Moves all records that are in these files. */
  move(files: readonly string[]): Promise<void>
  end(): Promise<void>
}

interface Outcome {
  readonly failure?: string
  readonly errcode?: number
}

/** The thread takes tens of milliseconds to start. A larger young generation would only take memory. */
function startMover(path: string): Mover {
  const thread = new Worker(new URL('./move-records-thread.ts', import.meta.url), {
    workerData: path,
    resourceLimits: { maxYoungGenerationSizeMb: 2 },
  })
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
