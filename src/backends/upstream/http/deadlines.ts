/** Work with a deadline. */
export interface Timed {
  /** By `performance.now()`. */
  readonly deadline: number
  /** Its index in the list of all work. Only `Deadlines` sets it. */
  index: number
  expire(): void
}

/** One timer for all exchanges: one for each would be a good part of its cost. */
export interface Deadlines {
  add(timed: Timed): void
  delete(timed: Timed): void
}

const NEVER = Number.POSITIVE_INFINITY

export function createDeadlines(): Deadlines {
  // Not a Set: V8 links the tables that a Set outgrows, which keeps deleted members in memory.
  const underWay: Timed[] = []
  let timer: NodeJS.Timeout | undefined
  let due = NEVER

  function wake(at: number): void {
    clearTimeout(timer)
    due = at
    timer = setTimeout(expireLate, Math.max(at - performance.now(), 0)).unref()
  }

  function expireLate(): void {
    due = NEVER
    const now = performance.now()
    const late = underWay.filter(({ deadline }) => deadline <= now)
    for (const timed of late) timed.expire()
    const next = underWay.reduce((earliest, { deadline }) => Math.min(earliest, deadline), NEVER)
    if (next < due) wake(next)
  }

  return {
    add(timed) {
      timed.index = underWay.push(timed) - 1
      if (timed.deadline < due) wake(timed.deadline)
    },
    delete(timed) {
      const last = underWay.at(-1)
      if (!last || underWay[timed.index] !== timed) return
      underWay[timed.index] = last
      last.index = timed.index
      underWay.pop()
    },
  }
}
