import { setTimeout } from 'node:timers/promises'
import { createDeadlines } from './http/exchange.ts'
import { UNSEEN_BINARY_MS, UNSEEN_MS, UNSEEN_READ_MS } from './limits.ts'

/**
 * Conceals how long it took to find out that a caller may see nothing of a resource: an absent one has no content that is
 * received and checked, a hidden one may have megabytes. The first read of a request that shows nothing may use some time
 * to receive content. What it has not used of it is added to the response.
 */
export interface Concealment {
  /** Whether a read has shown nothing before: then another first asks whether its resource is within the access. */
  readonly asksFirst: boolean
  /** The result of a read, or `LATE` when it has used the time. */
  limit<T>(reading: Promise<T>): Promise<T | typeof LATE>
  /** The caller is shown nothing of a resource, which was read last. */
  note(type: string): void
  /** Resolves when the response may be sent. */
  settle(): Promise<unknown> | undefined
}

export const LATE = Symbol('late')

export interface Conceal {
  /** The time that a read may use. */
  readonly readMs: number
  wait(ms: number): Promise<unknown>
}

export const CONCEAL: Conceal = { readMs: UNSEEN_READ_MS, wait: ms => setTimeout(ms) }

/** The wait after which all time for a read is used, and the response takes a multiple of the step. */
export function computeWait(elapsed: number, unused: number, step: number): number {
  return unused + step - ((elapsed + unused) % step)
}

// One timer for all reads.
const deadlines = createDeadlines()

export function createConcealment(conceal = CONCEAL): Concealment {
  const began = performance.now()
  let step = 0
  let unused = 0
  let ofLast = 0
  return {
    get asksFirst() {
      return step > 0
    },
    limit(reading) {
      const from = performance.now()
      return new Promise((resolve, reject) => {
        const timed = {
          deadline: from + conceal.readMs,
          index: -1,
          expire() {
            ofLast = conceal.readMs
            resolve(LATE)
          },
        }
        deadlines.add(timed)
        reading.then(result => {
          deadlines.delete(timed)
          ofLast = performance.now() - from
          resolve(result)
        }, reject)
      })
    },
    note(type) {
      if (step === 0) unused = Math.max(0, conceal.readMs - ofLast)
      step = Math.max(step, type === 'Binary' ? UNSEEN_BINARY_MS : UNSEEN_MS)
    },
    settle: () =>
      step === 0 ? undefined : conceal.wait(computeWait(performance.now() - began, unused, step)),
  }
}
