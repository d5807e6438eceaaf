import { closeSync, openSync, statSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { Kysely, SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler } from 'kysely'
import { DatabaseUnavailable, listProbeStatements, watchAvailability } from '../availability.ts'
import { makeFolder } from '../database-url.ts'
import type { Schema } from '../schema.ts'
import type { OpenedDatabase, StoreOptions } from '../store.ts'
import { Connection, openDatabaseFile, retryWhileBusy, type Turns } from './database-file.ts'
import { SqliteDriver } from './driver.ts'

class SharedSqliteAdapter extends SqliteAdapter {
  override get supportsMultipleConnections(): boolean {
    return true
  }
}

/** Creates the file, readable by this user only, if it does not exist. */
export async function openSqlite(
  path: string,
  { turnMs, clock, auditRequired = true }: Pick<StoreOptions, 'turnMs' | 'clock' | 'auditRequired'> = {},
): Promise<OpenedDatabase> {
  const absolute = resolve(path)
  makeFolder(dirname(absolute))
  closeSync(openSync(absolute, 'a', 0o600))
  const file = await openDatabaseFile(absolute, turnMs)
  const opened = statSync(absolute).ino
  const appending = openAppending(absolute, file.turns)
  const availability = watchAvailability({
    tryWrite: () => appending.run(listProbeStatements(auditRequired)),
    ...(clock && { clock }),
  })
  const db = new Kysely<Schema>({
    dialect: {
      createDriver: () => new SqliteDriver(file, availability),
      createQueryCompiler: () => new SqliteQueryCompiler(),
      createAdapter: () => new SharedSqliteAdapter(),
      createIntrospector: kysely => new SqliteIntrospector(kysely),
    },
    log: event => {
      if (event.level === 'error') availability.report(event.error)
    },
  })
  return {
    db,
    dialect: 'sqlite',
    begin: availability.begin,
    ping: async () => {
      checkFile(absolute, opened)
      await availability.probe()
    },
    append: async (table, rows) => {
      checkFile(absolute, opened)
      await availability.enter()
      try {
        await appending.append(table, rows)
      } catch (error) {
        availability.report(error)
        throw error
      }
    },
    close: async () => {
      await db.destroy()
      await appending.close()
      file.close()
    },
  }
}

// SQLite keeps writing to a file that was deleted or replaced, and those writes would be lost.
function checkFile(path: string, opened: number): void {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined) throw new DatabaseUnavailable(`Cannot use database ${path}: the file is gone`)
  if (found.ino !== opened)
    throw new DatabaseUnavailable(`Cannot use database ${path}: the file was replaced; restart`)
}

type Row = Readonly<Record<string, unknown>>

interface Appending {
  append(table: string, rows: readonly Row[]): Promise<void>
  run(statements: readonly string[]): Promise<void>
  close(): Promise<void>
}

/**
 * A commit with `synchronous=full` waits for the disk inside SQLite and blocks the process for milliseconds. Here
 * the commit only writes the log (`normal`), and a Node thread then flushes the log. Acknowledged rows are as
 * durable, because SQLite flushes log and database before a checkpoint.
 */
function openAppending(path: string, turns: Turns): Appending {
  const connection = new Connection(path)
  connection.exec('pragma synchronous = normal')
  // Opened on first use, because the log exists only after a write. It holds no SQLite lock.
  let log: Promise<FileHandle> | undefined

  async function commit(work: () => void): Promise<void> {
    const giveBack = await turns.take()
    try {
      await retryWhileBusy(() => connection.write('begin immediate'))
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
  for (const row of rows) connection.write(statement, ...columns.map(name => row[name]))
}

function runAndCommit(connection: Connection, work: () => void): void {
  try {
    work()
    connection.write('commit')
  } catch (error) {
    if (connection.inTransaction) connection.exec('rollback')
    throw error
  }
}
