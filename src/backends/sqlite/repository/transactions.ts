import type { StatementSync } from 'node:sqlite'
import {
  type Connection,
  DatabaseUnavailable,
  isBusy,
  Turns,
  WRITE_WAIT_MS,
  WriteWait,
} from '../../../sqlite/index.ts'

export interface Transactions {
  /**
   * Runs the work in a transaction, which is durable when this returns (`synchronous=FULL`). Rolls it back if the work
   * throws or `keep` returns false. Inside another transaction, or a group, it is a savepoint.
   */
  transaction<T>(work: () => T, keep?: (result: T) => boolean): T
  /**
   * Runs work that writes, together with the writes of other requests in this turn of the event loop, so that all of
   * them wait for the disk once. Resolves when it is durable. Use `transaction` inside to undo a part.
   */
  group<T>(work: () => T): Promise<T>
  /**
   * Runs work that reads, checks and then writes, one at a time. The group is open from the beginning, so that no other
   * process writes to the file until the group ends.
   */
  plan<T>(work: () => Promise<T>): Promise<T>
  /**
   * Writes the current plan, as `transaction` does. Returns 'conflict' if the group in which the plan began has ended:
   * the data that the plan has read may have changed.
   */
  commitPlan<T>(work: () => T, keep?: (result: T) => boolean): T | 'conflict'
  /** Resolves when the open group is durable; rejects if it is lost. Undefined if no group is open. */
  pending(): Promise<void> | undefined
  /** Commits the open group, if any. */
  settle(): void
  /** Runs work that reads one state of the file: other processes may write to it meanwhile. */
  snapshot<T>(work: () => T): T
  /** The number of groups that have failed. */
  countFailures(): number
  /**
   * Resolves when the open group is durable. Rejects if a group has failed since `countFailures` returned
   * `failuresBefore`: reads and writes since then may have been undone.
   */
  flush(failuresBefore: number): void | Promise<void>
}

/** How long a statement outside of groups waits for another process. It blocks this one. */
export const BUSY_MS = 5000

interface Group {
  readonly durable: Promise<void>
  resolve(): void
  reject(error: unknown): void
}

/** `waitMs`: how long a write waits for other writes of this process and for other processes, together. */
export function openTransactions(connection: Connection, waitMs = WRITE_WAIT_MS): Transactions {
  const begin = connection.prepare('BEGIN IMMEDIATE')
  const beginRead = connection.prepare('BEGIN')
  const commit = connection.prepare('COMMIT')
  const rollback = connection.prepare('ROLLBACK')
  const savepoints: Savepoint[] = []
  let depth = 0
  let group: Group | undefined
  let failures = 0
  let lastFailure: unknown
  let planned: Group | undefined
  const plans = new Turns()
  const openings = new Turns()

  function transaction<T>(work: () => T, keep: (result: T) => boolean = () => true): T {
    if (depth > 0) return runNested(work, keep)
    begin.run()
    depth = 1
    try {
      const result = work()
      if (keep(result)) commit.run()
      return result
    } finally {
      depth = 0
      if (connection.inTransaction) rollback.run()
    }
  }

  function runNested<T>(work: () => T, keep: (result: T) => boolean): T {
    savepoints[depth] ??= prepareSavepoint(connection, depth)
    const { set, undo, release } = savepoints[depth] as Savepoint
    set.run()
    depth++
    let isKept = false
    try {
      const result = work()
      isKept = keep(result)
      return result
    } finally {
      depth--
      // A full disk ends the whole transaction, not the savepoint.
      if (connection.inTransaction) {
        if (!isKept) undo.run()
        release.run()
      }
    }
  }

  function snapshot<T>(work: () => T): T {
    if (connection.inTransaction) return work()
    beginRead.run()
    try {
      return work()
    } finally {
      if (connection.inTransaction) commit.run()
    }
  }

  /** Throws if another process is writing: `begin` must not wait, because it would block this process. */
  function openGroup(): Group {
    connection.exec('PRAGMA busy_timeout = 0')
    try {
      begin.run()
    } finally {
      connection.exec(`PRAGMA busy_timeout = ${BUSY_MS}`)
    }
    group = createGroup()
    return group
  }

  function tryOpenGroup(): Group | undefined {
    try {
      return openGroup()
    } catch (error) {
      if (isBusy(error)) return undefined
      throw error
    }
  }

  /** One of the waiting writes asks for the file; the others join its group. */
  async function waitForGroup(wait: WriteWait): Promise<Group> {
    const release = await openings.take(wait)
    try {
      return await wait.retryWhileBusy(() => group ?? openGroup())
    } finally {
      release()
    }
  }

  function createGroup(): Group {
    depth = 1
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    // Every caller that awaits it handles the rejection; without one it is not an error.
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
      if (connection.inTransaction) rollback.run()
      noteFailure(error)
      reject(error)
    }
  }

  function noteFailure(error: unknown): void {
    failures++
    lastFailure = error
  }

  /** A full disk may end the whole transaction: then the group is lost, and the next write opens another one. */
  function runInGroup<T>(work: () => T): T {
    try {
      // A read that fails (disk, memory) may end it too: a savepoint would then be committed on its own.
      if (!connection.inTransaction)
        throw new DatabaseUnavailable('Cannot write: the open transaction was lost')
      return work()
    } catch (error) {
      if (!connection.inTransaction) {
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
    snapshot,
    countFailures: () => failures,
    flush(failuresBefore) {
      if (failures !== failuresBefore) throw lastFailure
      return group?.durable
    },
    async group(work) {
      const { durable } = group ?? tryOpenGroup() ?? (await waitForGroup(new WriteWait(waitMs)))
      const result = runInGroup(work)
      await durable
      return result
    },
    async plan(work) {
      const wait = new WriteWait(waitMs)
      const release = await plans.take(wait)
      try {
        planned = group ?? tryOpenGroup() ?? (await waitForGroup(wait))
        return await work()
      } finally {
        release()
      }
    },
    commitPlan(work, keep) {
      if (!group || planned !== group) return 'conflict'
      return runInGroup(() => transaction(work, keep))
    },
    pending: () => group?.durable,
  }
}

interface Savepoint {
  readonly set: StatementSync
  readonly undo: StatementSync
  readonly release: StatementSync
}

function prepareSavepoint(connection: Connection, level: number): Savepoint {
  return {
    set: connection.prepare(`SAVEPOINT level${level}`),
    undo: connection.prepare(`ROLLBACK TO level${level}`),
    release: connection.prepare(`RELEASE level${level}`),
  }
}
