import { closeSync, openSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { Kysely, SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler } from 'kysely'
import { listProbeStatements, watchAvailability } from '../availability.ts'
import { makeFolder } from '../database-url.ts'
import type { Schema } from '../schema.ts'
import type { OpenedDatabase, StoreOptions } from '../store.ts'
import { openAuditQueue } from './audit-queue.ts'
import { type Connection, commit, insertRows, openDatabaseFile } from './database-file.ts'
import { SqliteDriver } from './driver.ts'

class SharedSqliteAdapter extends SqliteAdapter {
  override get supportsMultipleConnections(): boolean {
    return true
  }
}

/** Creates the file, readable by this user only, if it does not exist. */
export async function openSqlite(
  path: string,
  options: Pick<StoreOptions, 'turnMs' | 'clock' | 'auditRequired' | 'worker'> = {},
): Promise<OpenedDatabase> {
  const { turnMs, clock, auditRequired = true, worker } = options
  const absolute = resolve(path)
  makeFolder(dirname(absolute))
  closeSync(openSync(absolute, 'a', 0o600))
  const file = await openDatabaseFile(absolute, turnMs)
  const queue = openAuditQueue(file, { path: absolute, worker, onError: error => availability.report(error) })
  const availability = watchAvailability({
    tryWrite: async () => {
      await commit(file, () => runAll(file.writes, listProbeStatements(auditRequired)))
      if (auditRequired) await queue.probe()
    },
    ...(clock && { clock }),
  })
  const write = async (work: () => Promise<void>) => {
    file.check()
    await availability.enter()
    try {
      await work()
    } catch (error) {
      availability.report(error)
      throw error
    }
  }
  const db = new Kysely<Schema>({
    dialect: {
      createDriver: () => new SqliteDriver(file, availability, queue.drain),
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
      file.check()
      await availability.probe()
    },
    append: (table, rows) =>
      write(async () => {
        if (rows.length > 0) await commit(file, () => insertRows(file.writes, table, rows))
      }),
    appendRecords: rows => write(() => queue.add(rows)),
    close: async () => {
      await queue.close()
      await db.destroy()
      await file.close()
    },
  }
}

function runAll(connection: Connection, statements: readonly string[]): void {
  for (const statement of statements) connection.exec(statement)
}
