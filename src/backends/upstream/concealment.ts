import { setTimeout } from 'node:timers/promises'
import { UNSEEN_MS } from './limits.ts'

/**
 * Conceals how long it took to find out that a caller may see nothing of a resource: an absent one has no content that is
 * received and checked, a hidden one may have megabytes.
 */
export interface Concealment {
  /** The caller is shown nothing. */
  note(): void
  /** Resolves when the response may be sent. */
  settle(): Promise<unknown> | undefined
}

/** Waits, after a number of milliseconds, until nothing can be learned from the time. */
export type Conceal = (elapsed: number) => Promise<unknown>

/** Every response takes a multiple of the same time. */
export const waitForStep: Conceal = elapsed => setTimeout(computeWait(elapsed))

export function computeWait(elapsed: number): number {
  return UNSEEN_MS - (elapsed % UNSEEN_MS)
}

export function createConcealment(conceal: Conceal): Concealment {
  const began = performance.now()
  let isNoted = false
  return {
    note() {
      isNoted = true
    },
    settle: () => (isNoted ? conceal(performance.now() - began) : undefined),
  }
}
