import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openStore, type Store } from '../../src/store/index.ts'

/** A migrated, empty database, created once per process: copying it is ten times as quick as migrating another. */
let migrated: Promise<string> | undefined

async function migrateOnce(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-tables-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'tables.db')
  const store = await openStore(`sqlite:${file}`)
  await store.close()
  return file
}

/** Creates a SQLite database at a URL where there is none. */
export async function copyTables(url: string): Promise<void> {
  migrated ??= migrateOnce()
  copyFileSync(await migrated, url.replace(/^sqlite:/, ''))
}

/** Opens a fresh SQLite database at a URL where there is none. */
export async function openSqliteStore(url: string): Promise<Store> {
  await copyTables(url)
  return openStore(url)
}
