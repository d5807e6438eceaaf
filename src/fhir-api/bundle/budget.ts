import { setImmediate } from 'node:timers/promises'
import { fail, limits } from '../../fhir/index.ts'
import type { Failure } from '../response.ts'

/** Milliseconds of processor time that this thread has used. */
export function getProcessorMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

/** Limits the processor time of work that nothing interrupts. */
export interface ReadBudget {
  /** Does the work, unless the budget is exhausted. */
  spend<T>(work: () => Promise<T>): Promise<T | Failure>
}

/** For the searches and reads of one transaction on a backend in this process. */
export function createReadBudget(): ReadBudget {
  let spent = 0
  return {
    async spend(work) {
      if (spent > limits.TRANSACTION_READ_MS) return TOO_MANY_READS
      const began = getProcessorMs()
      const result = await work()
      spent += getProcessorMs() - began
      return result
    },
  }
}

const TOO_MANY_READS = fail({
  problem: 'too-costly',
  text: `Cannot process transaction: its searches and reads take more than ${limits.TRANSACTION_READ_MS} ms of work`,
})

/** Lets other requests run when this one has used the event loop for `TURN_MS`. */
export function createTurns(now: () => number = () => performance.now()): () => Promise<void> {
  let began = now()
  return async () => {
    if (now() - began < limits.TURN_MS) return
    await setImmediate()
    began = now()
  }
}

/** The limits that all entries of one Bundle share. */
export interface BundleBudget {
  /** Why no further entry is processed; undefined within the limits. */
  problem(): Failure | undefined
  /** Takes space for this text in the response. Returns false if there is not enough; then no further entry gets any. */
  takeSpace(text: string): boolean
  /** Adds milliseconds of work. */
  addWork(ms: number): void
}

export function openBundleBudget(connection: { readonly destroyed: boolean }): BundleBudget {
  let bytesLeft = limits.BUNDLE_RESPONSE_BYTES
  let work = 0

  function takeSpace(text: string): boolean {
    const bytes = text.length > bytesLeft ? text.length : Buffer.byteLength(text)
    const fits = bytesLeft >= bytes
    bytesLeft = fits ? bytesLeft - bytes : -1
    return fits
  }

  return {
    problem() {
      if (connection.destroyed) return CLIENT_GONE
      if (bytesLeft < 0) return RESPONSE_TOO_LARGE
      return work > limits.BUNDLE_WORK_MS ? TOO_MUCH_WORK : undefined
    },
    takeSpace,
    addWork(ms) {
      work += ms
    },
  }
}

export const RESPONSE_TOO_LARGE = fail({
  problem: 'too-costly',
  text: `Cannot process entry: the response to the Bundle would exceed ${limits.BUNDLE_RESPONSE_BYTES} bytes`,
})

const TOO_MUCH_WORK = fail({
  problem: 'too-costly',
  text: `Cannot process entry: the Bundle has taken more than ${limits.BUNDLE_WORK_MS} ms of work`,
})

const CLIENT_GONE = fail({
  problem: 'too-costly',
  text: 'Cannot process entry: the client has closed the connection',
})
