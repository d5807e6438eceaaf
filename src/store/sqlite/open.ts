import { closeSync, openSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { Kysely, SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler } from 'kysely'
import { DatabaseUnavailable, listProbeStatements, watchAvailability } from '../availability.ts'
import { makeFolder } from '../database-url.ts'
import type { Schema } from '../schema.ts'
import type { OpenedDatabase, StoreOptions } from '../store.ts'
import { type Connection, type DatabaseFile, openDatabaseFile, retryWhileBusy } from './database-file.ts'
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
  const availability = watchAvailability({
    tryWrite: () => commit(file, () => runAll(file.writes, listProbeStatements(auditRequired))),
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
        if (rows.length > 0) await commit(file, () => write(file.writes, table, rows))
      } catch (error) {
        availability.report(error)
        throw error
      }
    },
    close: async () => {
      await db.destroy()
      await file.close()
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

/** All rows of a call share one commit. */
async function commit(file: DatabaseFile, work: () => void): Promise<void> {
  const giveBack = await file.turns.take()
  try {
    await retryWhileBusy(() => file.writes.write('begin immediate'))
    runAndCommit(file.writes, work)
  } finally {
    giveBack()
  }
  await file.flush()
}

function write(connection: Connection, table: string, rows: readonly Row[]): void {
  const columns = Object.keys(rows[0] ?? {})
  const names = columns.map(name => `"${name}"`).join(', ')
  const statement = `insert into "${table}" (${names}) values (${columns.map(() => '?').join(', ')})`
  for (const row of rows) connection.write(statement, ...columns.map(name => row[name]))
}

function runAll(connection: Connection, statements: readonly string[]): void {
  for (const statement of statements) connection.exec(statement)
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
