/** Rows that are written together. */
interface Group<Row> {
  readonly rows: Row[]
  readonly written: Promise<void>
  resolve(): void
  reject(error: unknown): void
}

export interface GroupCommitOptions<Row> {
  /** Writes rows in one commit; resolves when they are durable. */
  readonly write: (rows: readonly Row[]) => Promise<void>
  /** How many commits may be under way at once: the next one gathers while the disk works on those before. */
  readonly atOnce?: number
  /** How many rows may wait before more are turned away. */
  readonly limit?: number
}

/** What arrives in one turn of the event loop, and while earlier commits are under way, shares one commit. */
export interface GroupCommit<Row> {
  /** Resolves when the rows are durable. */
  add(rows: readonly Row[]): Promise<void>
}

export function groupCommit<Row>(options: GroupCommitOptions<Row>): GroupCommit<Row> {
  const { write, atOnce = 2, limit = 20_000 } = options
  let gathering: Group<Row> | undefined
  let scheduled = false
  let running = 0

  function schedule(): void {
    if (scheduled || running >= atOnce) return
    scheduled = true
    setImmediate(flush)
  }

  function flush(): void {
    scheduled = false
    const group = gathering
    if (!group) return
    gathering = undefined
    running++
    write(group.rows)
      .then(group.resolve, group.reject)
      .finally(() => {
        running--
        if (gathering) schedule()
      })
  }

  return {
    add(rows) {
      gathering ??= newGroup()
      if (gathering.rows.length + rows.length > limit)
        return Promise.reject(new Error(`Cannot keep audit records: ${gathering.rows.length} wait already`))
      gathering.rows.push(...rows)
      schedule()
      return gathering.written
    },
  }
}

function newGroup<Row>(): Group<Row> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  return { rows: [], written: promise, resolve, reject }
}
