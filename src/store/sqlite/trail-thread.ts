/** The thread of trail.ts. For each message it moves all waiting audit records to the trail, and responds. */
import { parentPort, workerData } from 'node:worker_threads'
import { SqliteConnection } from '../../sqlite/index.ts'
import { moveBatch } from './move-batch.ts'

/** Other writers get the lock between two batches. */
const PAUSE_MS = 5
/** Records of a batch, for which other writers wait about fifteen milliseconds. */
const BATCH = 500

const connection = new SqliteConnection(
  String(workerData),
  'pragma busy_timeout = 5000; pragma synchronous = normal',
)
const sleeping = new Int32Array(new SharedArrayBuffer(4))

parentPort?.on('message', () => parentPort?.postMessage(tryToMove()))

function tryToMove(): object {
  try {
    while (connection.transaction(() => moveBatch(connection, BATCH)) === BATCH)
      Atomics.wait(sleeping, 0, 0, PAUSE_MS)
    return {}
  } catch (error) {
    const { message, errcode } = error as Error & { errcode?: number }
    return { failure: message, errcode }
  }
}
