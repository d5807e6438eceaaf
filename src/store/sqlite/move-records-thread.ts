/** The thread of audit-queue.ts. Each message names files: the thread moves their records to the trail and responds. */
import { parentPort, workerData } from 'node:worker_threads'
import { Connection, runAndCommit } from './database-file.ts'
import { measureFile, moveBatch, removeFile } from './move-records.ts'

/** Other writers get the lock between two batches. */
const PAUSE_MS = 2
/** Records of a batch, for which other writers wait about ten milliseconds. */
const BATCH = 300

const trail = new Connection(String(workerData))
// A commit is on disk before a file is removed.
trail.exec('pragma busy_timeout = 5000; pragma synchronous = full')
const sleeping = new Int32Array(new SharedArrayBuffer(4))

parentPort?.on('message', (files: readonly string[]) => parentPort?.postMessage(tryToMove(files)))

function tryToMove(files: readonly string[]): object {
  try {
    for (const file of files) move(file)
    return {}
  } catch (error) {
    const { message, errcode } = error as Error & { errcode?: number }
    return { failure: message, errcode }
  }
}

function move(file: string): void {
  const end = measureFile(file)
  for (let [position, isMoving] = [-1, true]; isMoving && position < end; ) {
    trail.write('begin immediate')
    const moved = runAndCommit(trail, () => moveBatch(trail, file, BATCH))
    if (moved.isEnded) removeFile(file)
    isMoving = !moved.isEnded && moved.position > position
    position = moved.position
    Atomics.wait(sleeping, 0, 0, PAUSE_MS)
  }
}
