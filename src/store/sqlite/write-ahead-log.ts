import { type FileHandle, open } from 'node:fs/promises'
import { DatabaseUnavailable } from '../availability.ts'
import { SharedRuns } from './shared-runs.ts'

/**
 * Flushes SQLite's log to disk. A commit with `synchronous=full` does that inside SQLite and blocks the process for
 * milliseconds. With `normal` a commit only writes the log, and a Node thread flushes it. Commits that were made before a
 * flush starts share it. They are as durable, because SQLite flushes log and database before a checkpoint.
 */
export class WriteAheadLog {
  readonly #path: string
  readonly #flushes = new SharedRuns(() => this.#sync())
  // Opened on first use, because the log exists only after a write. It holds no SQLite lock.
  #file: FileHandle | undefined

  constructor(path: string) {
    this.#path = path
  }

  /** Resolves when everything committed so far is on disk. */
  flush(): Promise<void> {
    return this.#flushes.run()
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
