import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe } from 'node:test'
import { openStore, type Store } from '../../src/store/index.ts'
import { databaseUrl, query } from './postgres.ts'
import { openSqliteStore } from './sqlite-store.ts'

/** Databases that a test has for itself. */
export interface TestDatabases {
  readonly name: 'SQLite' | 'PostgreSQL'
  /** The URL of a new, empty database. */
  create(): Promise<string>
  /** Opens a new database with the tables of this version, as a copy, which is quicker than migrating. */
  openMigrated(): Promise<Store>
  /** Removes all that were made. */
  remove(): Promise<void>
}

/**
 * Runs the same tests on SQLite and on a real PostgreSQL (the global set-up starts one, `TEST_POSTGRES_URL`). Each
 * `open()` makes a fresh database; all of them are closed and removed after the tests.
 */
export function eachDatabase(
  define: (name: TestDatabases['name'], open: () => Promise<Store>, create: () => Promise<string>) => void,
): void {
  for (const make of [sqliteDatabases, postgresDatabases]) {
    const stores: Store[] = []
    const { name, create, openMigrated, remove } = make()
    describe(`on ${name}`, () => {
      after(async () => {
        await Promise.all(stores.map(store => store.close()))
        await remove()
      })
      const open = async () => {
        const store = await openMigrated()
        stores.push(store)
        return store
      }
      define(name, open, create)
    })
  }
}

function sqliteDatabases(): TestDatabases {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-test-'))
  const create = async () => `sqlite:${join(folder, `${randomUUID()}.db`)}`
  return {
    name: 'SQLite',
    create,
    openMigrated: async () => openSqliteStore(await create()),
    remove: async () => rmSync(folder, { recursive: true, force: true }),
  }
}

export function postgresDatabases(): TestDatabases {
  const schemas: string[] = []
  return {
    name: 'PostgreSQL',
    // For a store, a separate schema is as isolated as a database, and quicker to create.
    create: async () => {
      const schema = `test_${randomUUID().replaceAll('-', '')}`
      await onPostgres(`create schema ${schema}`)
      schemas.push(schema)
      const url = new URL(postgresUrl())
      url.searchParams.set('options', `-c search_path=${schema}`)
      return url.href
    },
    openMigrated: async () => {
      // Removed with the template: that of a single database waits for the disk.
      const template = readEnv('TEST_POSTGRES_TEMPLATE')
      const copy = `${template}_${randomUUID().slice(0, 8)}`
      await onPostgres(`create database ${copy} template ${template}`)
      return openStore(databaseUrl(postgresUrl(), copy))
    },
    remove: () => onPostgres(schemas.map(schema => `drop schema ${schema} cascade`).join(';')),
  }
}

async function onPostgres(sql: string): Promise<void> {
  if (sql !== '') await query(postgresUrl(), sql)
}

function postgresUrl(): string {
  return readEnv('TEST_POSTGRES_URL')
}

function readEnv(name: 'TEST_POSTGRES_URL' | 'TEST_POSTGRES_TEMPLATE'): string {
  const value = process.env[name]
  if (value === undefined) throw new Error(`Cannot test on PostgreSQL: ${name} is missing. Run \`npm test\``)
  return value
}
