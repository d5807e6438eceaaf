import { type FileHandle, open } from 'node:fs/promises'
import { Connection, retryWhileBusy } from './database-file.ts'
import type { Turns } from './turns.ts'

type Row = Readonly<Record<string, unknown>>

/** Rows that are added in a commit of their own, and are durable without the process having waited for the disk. */
export interface Appending {
  append(table: string, rows: readonly Row[]): Promise<void>
  /** Runs statements in one transaction, and resolves when it is durable. */
  run(statements: readonly string[]): Promise<void>
  close(): Promise<void>
}

/**
 * A commit with `synchronous=full` waits for the disk inside of SQLite and blocks the process for milliseconds. Here the
 * commit only writes the log (`normal`), and the log is then flushed by a thread of Node: what is acknowledged is as
 * durable, since SQLite itself flushes log and database before it moves rows from one to the other.
 */
export function openAppending(path: string, turns: Turns): Appending {
  const connection = new Connection(path)
  connection.exec('pragma synchronous = normal')
  // Opened at the first use: the log exists once something was written. It carries no lock of SQLite's.
  let log: Promise<FileHandle> | undefined

  async function commit(work: () => void): Promise<void> {
    const giveBack = await turns.take()
    try {
      await retryWhileBusy(() => connection.exec('begin immediate'))
      runAndCommit(connection, work)
    } finally {
      giveBack()
    }
    log ??= open(`${path}-wal`, 'r+')
    await (await log).datasync()
  }

  return {
    async append(table, rows) {
      if (rows.length === 0) return
      await commit(() => write(connection, table, rows))
    },
    run: statements =>
      commit(() => {
        for (const statement of statements) connection.exec(statement)
      }),
    async close() {
      await (await log)?.close()
      connection.close()
    },
  }
}

function write(connection: Connection, table: string, rows: readonly Row[]): void {
  const columns = Object.keys(rows[0] ?? {})
  const names = columns.map(name => `"${name}"`).join(', ')
  const statement = `insert into "${table}" (${names}) values (${columns.map(() => '?').join(', ')})`
  for (const row of rows)
    connection.write(
      statement,
      columns.map(name => row[name]),
    )
}

function runAndCommit(connection: Connection, work: () => void): void {
  try {
    work()
    connection.exec('commit')
  } catch (error) {
    if (connection.inTransaction) connection.exec('rollback')
    throw error
  }
}
