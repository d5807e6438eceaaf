/** Leaves an upstream alone that failed several times in a row, and tries it again after a while. */
export interface Breaker {
  /** Whether a request may go. After the pause one may, and what becomes of it decides. */
  admits(): boolean
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
    admits() {
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
