import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { DatabaseUnavailable } from '../../../store/index.ts'

export interface Transactions {
  /**
   * Runs the work in a transaction that is durable when this returns (`synchronous=FULL`). It is rolled back when the
   * work throws or `keep` denies its result. Inside another one, or a group, it is a savepoint.
   */
  transaction<T>(work: () => T, keep?: (result: T) => boolean): T
  /**
   * Runs work that writes together with what other requests write in this turn of the event loop: one wait for the
   * disk for all of them. Resolves when it is durable. The work undoes what it must by `transaction`.
   */
  group<T>(work: () => T): Promise<T>
  /**
   * Runs work that reads what a write depends on and then makes the write, one at a time. The group is open from the
   * beginning, so nobody else writes to the file until the group ends.
   */
  plan<T>(work: () => Promise<T>): Promise<T>
  /**
   * Makes the write of the current plan, as `transaction` does. Returns 'conflict' when the group in which the plan
   * began has ended: then what the plan has read may have changed.
   */
  commitPlan<T>(work: () => T, keep?: (result: T) => boolean): T | 'conflict'
  /** Resolves when the group under way is durable; rejects when it was lost. Undefined when there is none. */
  pending(): Promise<void> | undefined
  /** Commits the group under way, if there is one. */
  settle(): void
  /** How many groups have failed. */
  countFailures(): number
  /**
   * Resolves when the group under way is durable. Rejects where a group has failed since `countFailures` returned
   * `failuresBefore`: what was read or written since may have been undone.
   */
  flush(failuresBefore: number): void | Promise<void>
}

interface Group {
  readonly durable: Promise<void>
  resolve(): void
  reject(error: unknown): void
}

export function openTransactions(sqlite: DatabaseSync): Transactions {
  const begin = sqlite.prepare('BEGIN IMMEDIATE')
  const commit = sqlite.prepare('COMMIT')
  const rollback = sqlite.prepare('ROLLBACK')
  const savepoints: Savepoint[] = []
  let depth = 0
  let group: Group | undefined
  let failures = 0
  let lastFailure: unknown
  let planned: Group | undefined
  let lastPlan: Promise<unknown> = Promise.resolve()

  function transaction<T>(work: () => T, keep: (result: T) => boolean = () => true): T {
    if (depth > 0) return nested(work, keep)
    begin.run()
    depth = 1
    try {
      const result = work()
      if (keep(result)) commit.run()
      return result
    } finally {
      depth = 0
      if (sqlite.isTransaction) rollback.run()
    }
  }

  function nested<T>(work: () => T, keep: (result: T) => boolean): T {
    savepoints[depth] ??= savepointOf(sqlite, depth)
    const { set, undo, release } = savepoints[depth] as Savepoint
    set.run()
    depth++
    let kept = false
    try {
      const result = work()
      kept = keep(result)
      return result
    } finally {
      depth--
      // A full disk ends the whole transaction, not the savepoint.
      if (sqlite.isTransaction) {
        if (!kept) undo.run()
        release.run()
      }
    }
  }

  function openGroup(): Group {
    begin.run()
    depth = 1
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    // Each who waits hears of a failure; that nobody waits is no failure.
    promise.catch(() => {})
    setImmediate(settle)
    return { durable: promise, resolve, reject }
  }

  function settle(): void {
    if (!group) return
    const { resolve, reject } = group
    group = undefined
    depth = 0
    try {
      commit.run()
      resolve()
    } catch (error) {
      if (sqlite.isTransaction) rollback.run()
      noteFailure(error)
      reject(error)
    }
  }

  function noteFailure(error: unknown): void {
    failures++
    lastFailure = error
  }

  /** A full disk may end the whole transaction: then nothing of the group is kept, and what follows is another one. */
  function inGroup<T>(work: () => T): T {
    try {
      // A read that fails (disk, memory) may end it as well: a savepoint would then be committed by itself.
      if (!sqlite.isTransaction) throw new DatabaseUnavailable('Cannot write: the open transaction was lost')
      return work()
    } catch (error) {
      if (!sqlite.isTransaction) {
        noteFailure(error)
        group?.reject(error)
        group = undefined
        depth = 0
      }
      throw error
    }
  }

  return {
    transaction,
    settle,
    countFailures: () => failures,
    flush(failuresBefore) {
      if (failures !== failuresBefore) throw lastFailure
      return group?.durable
    },
    async group(work) {
      group ??= openGroup()
      const { durable } = group
      const result = inGroup(work)
      await durable
      return result
    },
    plan(work) {
      const run = () => {
        group ??= openGroup()
        planned = group
        return work()
      }
      const plan = lastPlan.then(run)
      lastPlan = plan.catch(() => {})
      return plan
    },
    commitPlan(work, keep) {
      if (!group || planned !== group) return 'conflict'
      return inGroup(() => transaction(work, keep))
    },
    pending: () => group?.durable,
  }
}

interface Savepoint {
  readonly set: StatementSync
  readonly undo: StatementSync
  readonly release: StatementSync
}

function savepointOf(sqlite: DatabaseSync, level: number): Savepoint {
  return {
    set: sqlite.prepare(`SAVEPOINT level${level}`),
    undo: sqlite.prepare(`ROLLBACK TO level${level}`),
    release: sqlite.prepare(`RELEASE level${level}`),
  }
}
