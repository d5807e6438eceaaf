import { setImmediate } from 'node:timers/promises'
import { fail, limits } from '../../fhir/index.ts'
import type { Failure } from '../failure.ts'

/** Milliseconds of processor time that this thread has used, however busy the machine is. */
export function getProcessorMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

/** Limits the processor time of work that nothing interrupts. */
export interface ReadBudget {
  /** Does the work, unless earlier work has used up the budget. */
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

/** Lets other requests have their turn when this one has kept the event loop for `TURN_MS`. */
export function createTurns(now: () => number = () => performance.now()): () => Promise<void> {
  let began = now()
  return async () => {
    if (now() - began < limits.TURN_MS) return
    await setImmediate()
    began = now()
  }
}
