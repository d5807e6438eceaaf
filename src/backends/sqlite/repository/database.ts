import { describeError } from '../../../core/index.ts'
import {
  type CommitGroup,
  DatabaseUnavailable,
  GroupCommit,
  isBusy,
  SqliteConnection,
  type SqlValue,
  Turns,
  WRITE_WAIT_MS,
  WriteWait,
} from '../../../sqlite/index.ts'
import { migrate, runScript } from '../../../store/index.ts'
import { MIGRATIONS } from './schema.ts'

export type { SqlValue }

/** Compares two values of a column as SQLite does: texts by their bytes. */
export function compareValues(a: SqlValue, b: SqlValue): number {
  if (typeof a === 'string' && typeof b === 'string') return Buffer.compare(Buffer.from(a), Buffer.from(b))
  return Number(a) - Number(b)
}

/** How long a statement outside of groups waits for another process. It blocks this one. */
const BUSY_MS = 5000

const CONFIGURATION = `PRAGMA busy_timeout = ${BUSY_MS}; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
  PRAGMA temp_store = MEMORY; PRAGMA cache_size = -16000; PRAGMA trusted_schema = OFF`

/**
 * The connection to `fhir.db`. A transaction is durable when it is committed (`synchronous=FULL`). Requests that write in one
 * turn of the event loop share a transaction, a group, in which the write of each is a savepoint.
 */
export class Database extends SqliteConnection {
  readonly file: string
  readonly #waitMs: number
  readonly #groups = new GroupCommit(
    () => this.#beginGroup(),
    () => this.#commitGroup(),
  )
  readonly #openings = new Turns()
  readonly #plans = new Turns()
  /** The group in which the current plan began or was resumed, and the file as it was when it began. */
  #planned: { readonly group: CommitGroup<void>; readonly state: string } | undefined
  #failures = 0
  #lastFailure: unknown

  /** `waitMs`: how long a write waits for other writes of this process and for other processes, together. */
  constructor(file: string, waitMs = WRITE_WAIT_MS) {
    super(file, CONFIGURATION)
    this.file = file
    this.#waitMs = waitMs
  }

  /**
   * Runs work that writes, together with the writes of other requests. Resolves when it is durable. Use `transaction` inside
   * to undo a part.
   */
  async group<T>(work: () => T): Promise<T> {
    const { durable } = this.#tryToJoin() ?? (await this.#waitForGroup(this.#startWait()))
    const result = this.#runInGroup(work)
    await durable
    return result
  }

  /**
   * Runs work that reads, checks and then writes, one at a time. The group is open from the beginning, so that no other
   * process writes to the file until the group ends. Work that pauses ends the group: see `resumePlan`.
   */
  async plan<T>(work: () => Promise<T>): Promise<T> {
    const wait = this.#startWait()
    const release = await this.#plans.take(wait)
    try {
      const group = this.#tryToJoin() ?? (await this.#waitForGroup(wait))
      this.#planned = { group, state: this.#readState() }
      return await work()
    } finally {
      release()
    }
  }

  /**
   * Opens a group for the current plan, if it has paused. Returns false if another process has written since the plan began, or
   * if a group was lost: the data that the plan has read may have changed. No other plan of this process has written meanwhile.
   */
  async resumePlan(): Promise<boolean> {
    const planned = this.#planned
    if (!planned) return false
    if (planned.group === this.#groups.open) return true
    const group = this.#tryToJoin() ?? (await this.#waitForGroup(this.#startWait()))
    if (this.#readState() !== planned.state) return false
    this.#planned = { ...planned, group }
    return true
  }

  /** Changes when another connection has written to the file, and when a group was lost whose writes a plan may have read. */
  #readState(): string {
    return `${this.rows('PRAGMA data_version', [])[0]?.[0]} ${this.#failures}`
  }

  /**
   * Writes the current plan, as `transaction` does. Returns 'conflict' if the group in which the plan began has ended: the
   * data that the plan has read may have changed.
   */
  commitPlan<T>(work: () => T, keep?: (result: T) => boolean): T | 'conflict' {
    const { open } = this.#groups
    if (!open || this.#planned?.group !== open) return 'conflict'
    return this.#runInGroup(() => this.transaction(work, keep))
  }

  /** Runs work that reads one state of the file: other processes may write to it meanwhile. */
  snapshot<T>(work: () => T): T {
    if (this.inTransaction) return work()
    this.write('begin')
    try {
      return work()
    } finally {
      if (this.inTransaction) this.write('commit')
    }
  }

  /** Resolves when the open group is durable; rejects if it is lost. Undefined if no group is open. */
  pending(): Promise<void> | undefined {
    return this.#groups.open?.durable
  }

  /** The number of groups that have failed. */
  countFailures(): number {
    return this.#failures
  }

  /** Why the last group failed. */
  get lastFailure(): unknown {
    return this.#lastFailure
  }

  /**
   * Resolves when the open group is durable. Rejects if a group has failed since `countFailures` returned `failuresBefore`:
   * reads and writes since then may have been undone.
   */
  flush(failuresBefore: number): void | Promise<void> {
    if (this.#failures !== failuresBefore) throw this.#lastFailure
    return this.pending()
  }

  /** Commits the open group, if any. */
  settle(): void {
    this.#groups.settle()
  }

  override close(): void {
    this.settle()
    super.close()
  }

  #startWait(): WriteWait {
    return new WriteWait(this.#waitMs)
  }

  /** Undefined if another process is writing. */
  #tryToJoin(): CommitGroup<void> | undefined {
    try {
      return this.#groups.join()
    } catch (error) {
      if (isBusy(error)) return undefined
      throw error
    }
  }

  /** One of the waiting writes asks for the file; the others join its group. */
  async #waitForGroup(wait: WriteWait): Promise<CommitGroup<void>> {
    const release = await this.#openings.take(wait)
    try {
      return await wait.retryWhileBusy(() => this.#groups.join())
    } finally {
      release()
    }
  }

  /** Throws if another process is writing. It must not wait, because that would block this process. */
  #beginGroup(): void {
    this.exec('PRAGMA busy_timeout = 0')
    try {
      this.write('begin immediate')
    } finally {
      this.exec(`PRAGMA busy_timeout = ${BUSY_MS}`)
    }
  }

  #commitGroup(): void {
    try {
      this.write('commit')
    } catch (error) {
      if (this.inTransaction) this.write('rollback')
      this.#noteFailure(error)
      throw error
    }
  }

  /** A full disk may end the whole transaction: then the group is lost, and the next write opens another one. */
  #runInGroup<T>(work: () => T): T {
    try {
      // A read that fails (disk, memory) may end it too: a savepoint would then be committed on its own.
      if (!this.inTransaction) throw new DatabaseUnavailable('Cannot write: the open transaction was lost')
      return work()
    } catch (error) {
      if (!this.inTransaction) {
        this.#noteFailure(error)
        this.#groups.lose(error)
      }
      throw error
    }
  }

  #noteFailure(error: unknown): void {
    this.#failures++
    this.#lastFailure = error
  }
}

/**
 * Opens the file, or creates it with its tables. The index has an edition of its own (`INDEX_EDITION`), and is rebuilt from
 * the content.
 */
export function openDatabase(file: string, waitMs?: number): Database {
  try {
    const database = new Database(file, waitMs)
    database.transaction(() => runScript(database, migrate(MIGRATIONS, 'sqlite')))
    return database
  } catch (error) {
    const reason = describeError(error)
    throw new Error(`Cannot open FHIR data in ${file}: ${reason}`, { cause: error })
  }
}
