/** The rows of one caller, who waits until they are durable. */
interface Entry<Row> {
  readonly rows: readonly Row[]
  resolve(): void
  reject(error: unknown): void
}

export interface GroupCommitOptions<Row> {
  /** Writes rows in one commit; resolves when they are durable. */
  readonly write: (rows: readonly Row[]) => Promise<void>
  /** Whether an error says that nothing can be written now, so that it does not matter which rows are tried. */
  readonly isOutage: (error: unknown) => boolean
  /** How many commits may be under way at once: the next one gathers while the disk works on those before. */
  readonly atOnce?: number
  /** How many rows may wait before more are turned away. */
  readonly limit?: number
}

/** What arrives in one turn of the event loop, and while earlier commits are under way, shares one commit. */
export interface GroupCommit<Row> {
  /** Resolves when the rows are durable. Rejects for the caller's own rows only, unless the database is unavailable. */
  add(rows: readonly Row[]): Promise<void>
}

export function groupCommit<Row>(options: GroupCommitOptions<Row>): GroupCommit<Row> {
  const { write, isOutage, atOnce = 2, limit = 20_000 } = options
  let waiting: Entry<Row>[] = []
  let waitingRows = 0
  let scheduled = false
  let running = 0

  function schedule(): void {
    if (scheduled || running >= atOnce) return
    scheduled = true
    setImmediate(flush)
  }

  function flush(): void {
    scheduled = false
    const entries = waiting
    if (entries.length === 0) return
    waiting = []
    waitingRows = 0
    running++
    commit(entries).finally(() => {
      running--
      if (waiting.length > 0) schedule()
    })
  }

  /** Rows that the database refuses fail their own caller: each half of a refused group is tried without the other. */
  async function commit(entries: readonly Entry<Row>[]): Promise<void> {
    try {
      await write(entries.flatMap(entry => entry.rows))
      for (const entry of entries) entry.resolve()
    } catch (error) {
      if (entries.length === 1 || isOutage(error)) {
        for (const entry of entries) entry.reject(error)
        return
      }
      const middle = Math.ceil(entries.length / 2)
      await commit(entries.slice(0, middle))
      await commit(entries.slice(middle))
    }
  }

  return {
    add(rows) {
      if (waitingRows + rows.length > limit)
        return Promise.reject(new Error(`Cannot keep audit records: ${waitingRows} wait already`))
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      waiting.push({ rows, resolve, reject })
      waitingRows += rows.length
      schedule()
      return promise
    },
  }
}
