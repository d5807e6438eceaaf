/** Sends no requests after several failures in a row, and tries again after a pause. */
export interface Breaker {
  /** Whether a request may be sent. After the pause one is, and its outcome decides. */
  allows(): boolean
  succeeded(): void
  failed(): void
  isOpen(): boolean
}

const FAILURES = 5
const PAUSE_MS = 2_000

export function createBreaker(clock: () => number): Breaker {
  let failures = 0
  let openUntil = Number.NEGATIVE_INFINITY
  return {
    allows() {
      if (failures < FAILURES) return true
      if (clock() < openUntil) return false
      openUntil = clock() + PAUSE_MS
      return true
    },
    succeeded() {
      failures = 0
    },
    failed() {
      failures += 1
      if (failures >= FAILURES) openUntil = clock() + PAUSE_MS
    },
    isOpen: () => failures >= FAILURES,
  }
}
