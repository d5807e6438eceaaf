import { closeSync, openSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { Kysely, SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler } from 'kysely'
import { watchAvailability } from '../availability.ts'
import { makeFolder } from '../folder.ts'
import { listProbeStatements } from '../probe.ts'
import type { Schema } from '../schema.ts'
import type { OpenedDatabase, StoreOptions } from '../store.ts'
import { DatabaseUnavailable } from '../unavailable.ts'
import { openAppending } from './append.ts'
import { openDatabaseFile } from './database-file.ts'
import { SqliteDriver } from './driver.ts'

/** The adapter of a driver that hands out as many connections as are asked for, and orders the writers itself. */
class SharedSqliteAdapter extends SqliteAdapter {
  override get supportsMultipleConnections(): boolean {
    return true
  }
}

/** Opens a database file, which is made (readable to this user only) when it is not there. */
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

// SQLite goes on writing to a file that was deleted or replaced under it, and all of that would be lost.
function checkFile(path: string, opened: number): void {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined) throw new DatabaseUnavailable(`Cannot use database ${path}: the file is gone`)
  if (found.ino !== opened)
    throw new DatabaseUnavailable(`Cannot use database ${path}: the file was replaced; start again`)
}
