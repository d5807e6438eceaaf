/** The thread of audit-queue.ts: each message names queues. It moves their records to the trail, and responds. */
import { parentPort, workerData } from 'node:worker_threads'
import { Connection, runAndCommit } from './database-file.ts'
import { findWaiting, moveBatch, readName, removeMoved } from './move-records.ts'

/** Other writers get the lock between two batches. */
const PAUSE_MS = 2
/** Writers wait for about ten milliseconds at most. */
const BATCH = 300
const BUSY = 'pragma busy_timeout = 5000'

const trail = open(String(workerData))
// A commit is on disk before the records are removed from the queue.
trail.exec('pragma synchronous = full')
const queues = new Map<string, Connection>()
const sleeping = new Int32Array(new SharedArrayBuffer(4))

parentPort?.on('message', (files: readonly string[]) => parentPort?.postMessage(tryToMove(files)))

function tryToMove(files: readonly string[]): object {
  try {
    for (const file of files) move(openQueue(file))
    return {}
  } catch (error) {
    const { message, errcode } = error as Error & { errcode?: number }
    return { failure: message, errcode }
  }
}

function move(queue: Connection): void {
  const { end } = findWaiting(queue)
  const name = readName(queue)
  for (let position = 0; position < end; ) {
    trail.write('begin immediate')
    runAndCommit(trail, () => {
      position = moveBatch(trail, queue, { name, end, most: BATCH })
    })
    removeMoved(queue, position)
    Atomics.wait(sleeping, 0, 0, PAUSE_MS)
  }
}

function openQueue(file: string): Connection {
  const queue = queues.get(file) ?? open(file)
  queues.set(file, queue)
  return queue
}

function open(file: string): Connection {
  const connection = new Connection(file)
  connection.exec(BUSY)
  return connection
}
