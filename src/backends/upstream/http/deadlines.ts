/** What must end by a time. */
export interface Timed {
  /** By `performance.now()`. */
  readonly deadline: number
  late(): void
}

/** Keeps time for all that is under way by one timer: one for each exchange would be a good part of what it costs. */
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
    timer = setTimeout(look, Math.max(at - performance.now(), 0)).unref()
  }

  function look(): void {
    due = NEVER
    const now = performance.now()
    const late = [...underWay].filter(({ deadline }) => deadline <= now)
    for (const timed of late) timed.late()
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
