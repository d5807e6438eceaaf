import { closeSync, openSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { Kysely, SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler } from 'kysely'
import { listProbeStatements, watchAvailability } from '../availability.ts'
import { makeFolder } from '../database-url.ts'
import type { Schema } from '../schema.ts'
import type { OpenedDatabase, StoreOptions } from '../store.ts'
import { DatabaseUnavailable } from '../unavailable.ts'
import { openAppending } from './append.ts'
import { openDatabaseFile } from './database-file.ts'
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
