interface Entry<Row> {
  readonly rows: readonly Row[]
  resolve(): void
  reject(error: unknown): void
}

interface GroupCommitOptions<Row> {
  readonly write: (rows: readonly Row[]) => Promise<void>
  /** True if nothing can be written now, so that it does not matter which rows are tried. */
  readonly isOutage: (error: unknown) => boolean
  /** Maximum number of waiting rows; further rows are rejected. */
  readonly limit?: number
}

/** Rows that arrive in one turn of the event loop, or while the commit before runs, share one commit. */
interface GroupCommit<Row> {
  /** Rejects only for the caller's own rows, unless the database is unavailable. */
  add(rows: readonly Row[]): Promise<void>
}

export function groupCommit<Row>(options: GroupCommitOptions<Row>): GroupCommit<Row> {
  const { write, isOutage, limit = 20_000 } = options
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
        return Promise.reject(new Error(`Cannot store audit records: ${waitingRows} are waiting`))
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      waiting.push({ rows, resolve, reject })
      waitingRows += rows.length
      schedule()
      return promise
    },
  }
}

/** Collects work and does it a little later in one step; failed work is retried. */
export interface Later<Item> {
  add(...items: readonly Item[]): void
  flush(): Promise<void>
}

/** `work` rejects if no item is done. A process that ends does not wait for it: call `flush` first. */
export function doLater<Item>(
  work: (items: readonly Item[]) => Promise<void>,
  { everyMs, atOnce = 500 }: { readonly everyMs: number; readonly atOnce?: number },
): Later<Item> {
  let waiting: Item[] = []
  let running: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined

  function schedule(): void {
    if (timer || waiting.length === 0) return
    timer = setTimeout(() => {
      timer = undefined
      void flush()
    }, everyMs)
    timer.unref()
  }

  async function run(): Promise<void> {
    while (waiting.length > 0) {
      const items = waiting.slice(0, atOnce)
      try {
        await work(items)
      } catch {
        return
      }
      waiting = waiting.slice(items.length)
    }
  }

  async function flush(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    running ??= run().finally(() => {
      running = undefined
      schedule()
    })
    await running
  }

  return {
    add(...items) {
      waiting.push(...items)
      schedule()
    },
    flush,
  }
}
