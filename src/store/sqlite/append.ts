import { type FileHandle, open } from 'node:fs/promises'
import { Connection, retryWhileBusy, type Turns } from './database-file.ts'

type Row = Readonly<Record<string, unknown>>

export interface Appending {
  append(table: string, rows: readonly Row[]): Promise<void>
  run(statements: readonly string[]): Promise<void>
  close(): Promise<void>
}

/**
 * A commit with `synchronous=full` waits for the disk inside SQLite and blocks the process for milliseconds. Here
 * the commit only writes the log (`normal`), and a Node thread then flushes the log. Acknowledged rows are as
 * durable, because SQLite flushes log and database before a checkpoint.
 */
export function openAppending(path: string, turns: Turns): Appending {
  const connection = new Connection(path)
  connection.exec('pragma synchronous = normal')
  // Opened on first use, because the log exists only after a write. It holds no SQLite lock.
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
