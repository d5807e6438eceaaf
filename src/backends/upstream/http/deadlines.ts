/** Work with a deadline. */
export interface Timed {
  /** By `performance.now()`. */
  readonly deadline: number
  expire(): void
}

/** One timer for all exchanges: one for each would be a good part of its cost. */
export interface Deadlines {
  add(timed: Timed): void
  delete(timed: Timed): void
}

const NEVER = Number.POSITIVE_INFINITY

export function createDeadlines(): Deadlines {
  const underWay = new Set<Timed>()
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
    const late = [...underWay].filter(({ deadline }) => deadline <= now)
    for (const timed of late) timed.expire()
    const next = Math.min(...[...underWay].map(({ deadline }) => deadline))
    if (next < due) wake(next)
  }

  return {
    add(timed) {
      underWay.add(timed)
      if (timed.deadline < due) wake(timed.deadline)
    },
    delete: timed => underWay.delete(timed),
  }
}
