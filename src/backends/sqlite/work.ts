import { fail, limits } from '../../fhir/index.ts'
import type { Problem } from './problem.ts'

/** Milliseconds of processor time that this thread has had: what work costs others, however busy the machine is. */
export function processorMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

/** Bounds the processor time of work that nothing interrupts. */
export interface ReadBudget {
  /** Does the work, unless earlier work has used up the budget. */
  spend<T>(work: () => T): T | Problem
}

/** For the searches and reads of one transaction. */
export function openReadBudget(): ReadBudget {
  let spent = 0
  return {
    spend(work) {
      if (spent > limits.TRANSACTION_READ_MS) return TOO_MANY_READS
      const began = processorMs()
      const result = work()
      spent += processorMs() - began
      return result
    },
  }
}

const TOO_MANY_READS = fail({
  problem: 'too-costly',
  text: `Cannot process transaction: its searches and reads take more than ${limits.TRANSACTION_READ_MS} ms of work`,
})
