import { statSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { SqliteConnection } from './connection.ts'
import { GroupCommit } from './group-commit.ts'
import { DatabaseUnavailable } from './unavailable.ts'
import { Turns, WRITE_WAIT_MS, WriteWait } from './write-wait.ts'

const BUSY_MS = 5000

/** One connection for reads, one for writes, and a queue for writers. */
export interface DatabaseFile {
  readonly reads: SqliteConnection
  readonly writes: SqliteConnection
  readonly turns: Turns
  /** Begins the wait of a write. */
  startWait(): WriteWait
  /** Throws if the file was deleted or replaced: SQLite keeps writing to it, and those writes would be lost. */
  check(): void
  /** Resolves when everything committed so far is on disk. A commit may be acknowledged only then. */
  flush(): Promise<void>
  close(): Promise<void>
}

// Two stores of one process on one file must not wait for each other inside SQLite: that would block the process.
const turnsByPath = new Map<string, Turns>()

export async function openDatabaseFile(path: string, waitMs = WRITE_WAIT_MS): Promise<DatabaseFile> {
  const turns = turnsByPath.get(path) ?? new Turns()
  turnsByPath.set(path, turns)
  const writes = new SqliteConnection(path)
  await new WriteWait(BUSY_MS).retryWhileBusy(() =>
    writes.exec('pragma journal_mode = wal; pragma synchronous = normal; pragma foreign_keys = on'),
  )
  const reads = new SqliteConnection(path, `pragma busy_timeout = ${BUSY_MS}; pragma query_only = on`)
  const log = new WriteAheadLog(`${path}-wal`)
  const { ino } = statSync(path)
  return {
    reads,
    writes,
    turns,
    startWait: () => new WriteWait(waitMs),
    check: () => checkFile(path, ino),
    flush: () => log.flush(),
    close: async () => {
      await log.close()
      reads.close()
      writes.close()
    },
  }
}

function checkFile(path: string, opened: number): void {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined) throw new DatabaseUnavailable(`Cannot use database ${path}: the file was deleted`)
  if (found.ino !== opened)
    throw new DatabaseUnavailable(`Cannot use database ${path}: the file was replaced; restart`)
}

/** Runs work in a transaction. Resolves when it is on disk. */
export function commit<T>(file: DatabaseFile, work: () => T): Promise<T> {
  return writeInTurn(file, () => file.writes.transaction(work))
}

/** Runs a statement or a transaction when it is its turn. Other writers go on while the log is flushed. */
export async function writeInTurn<T>(file: DatabaseFile, write: () => T): Promise<T> {
  const wait = file.startWait()
  const giveBack = await file.turns.take(wait)
  let result: T
  try {
    result = await wait.retryWhileBusy(write)
  } finally {
    giveBack()
  }
  await file.flush()
  return result
}

/**
 * Flushes SQLite's log to disk. A commit with `synchronous=full` does that inside SQLite and blocks the process for
 * milliseconds. With `normal` a commit only writes the log, and a Node thread flushes it. Commits that were made before a
 * flush starts share it. They are as durable, because SQLite flushes log and database before a checkpoint.
 */
class WriteAheadLog {
  readonly #path: string
  readonly #flushes = new GroupCommit(
    () => {},
    () => this.#sync(),
    queueMicrotask,
  )
  // Opened on first use, because the log exists only after a write. It holds no SQLite lock.
  #file: FileHandle | undefined

  constructor(path: string) {
    this.#path = path
  }

  /** Resolves when everything committed so far is on disk. */
  flush(): Promise<void> {
    return this.#flushes.join().durable
  }

  async close(): Promise<void> {
    await this.#flushes.finish()
    await this.#file?.close()
  }

  async #sync(): Promise<void> {
    try {
      this.#file ??= await open(this.#path, 'r+')
      await this.#file.datasync()
    } catch (cause) {
      throw new DatabaseUnavailable('Cannot write to database: its log cannot be flushed', { cause })
    }
  }
}
