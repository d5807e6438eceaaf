import { isDatabaseUnavailable } from './availability.ts'

interface Entry<Row> {
  readonly rows: readonly Row[]
  resolve(): void
  reject(error: unknown): void
}

/** Further rows are rejected. */
const MAX_WAITING = 20_000

/**
 * Returns a function that adds rows. Rows that arrive in one turn of the event loop, or while the commit before runs, share
 * one commit. The function rejects only for its caller's own rows, unless the database is unavailable.
 */
export function groupCommit<Row>(
  write: (rows: readonly Row[]) => Promise<void>,
  limit = MAX_WAITING,
): (rows: readonly Row[]) => Promise<void> {
  let waiting: Entry<Row>[] = []
  let waitingRows = 0
  let scheduled = false
  let isRunning = false

  function schedule(): void {
    if (scheduled || isRunning) return
    scheduled = true
    setImmediate(flush)
  }

  function flush(): void {
    scheduled = false
    const entries = waiting
    if (entries.length === 0) return
    waiting = []
    waitingRows = 0
    isRunning = true
    commit(entries).finally(() => {
      isRunning = false
      if (waiting.length > 0) schedule()
    })
  }

  /** Refused rows fail only their caller: each half of a refused group is tried separately. */
  async function commit(entries: readonly Entry<Row>[]): Promise<void> {
    try {
      await write(entries.flatMap(entry => entry.rows))
      for (const entry of entries) entry.resolve()
    } catch (error) {
      if (entries.length === 1 || isDatabaseUnavailable(error)) {
        for (const entry of entries) entry.reject(error)
        return
      }
      const middle = Math.ceil(entries.length / 2)
      await commit(entries.slice(0, middle))
      await commit(entries.slice(middle))
    }
  }

  return rows => {
    if (waitingRows + rows.length > limit)
      return Promise.reject(new Error(`Cannot store audit records: ${waitingRows} are waiting`))
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    waiting.push({ rows, resolve, reject })
    waitingRows += rows.length
    schedule()
    return promise
  }
}
