import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe } from 'node:test'
import { openStore, type Store } from '../../src/store/index.ts'
import { databaseUrl, query } from './postgres.ts'
import { copyTables } from './sqlite-store.ts'
import { IS_THOROUGH } from './thorough.ts'

type CreateDatabase = (content?: 'empty') => Promise<string>

/** Databases that a test has for itself. */
export interface TestDatabases {
  readonly name: 'SQLite' | 'PostgreSQL'
  /** The URL of a new database, with the tables of this version unless it is to be empty: copying them is quicker than migrating. */
  create: CreateDatabase
  /** Removes all that were made. */
  remove(): Promise<void>
}

type DefineTests = (name: TestDatabases['name'], open: () => Promise<Store>, create: CreateDatabase) => void

/**
 * Runs the same tests on SQLite and on a real PostgreSQL (the global set-up starts one, `TEST_POSTGRES_URL`). Each
 * `open()` makes a fresh database; all of them are closed and removed after the tests.
 */
export function eachDatabase(define: DefineTests, databases = BOTH): void {
  for (const make of databases) {
    const stores: Store[] = []
    const { name, create, remove } = make()
    describe(`on ${name}`, () => {
      after(async () => {
        await Promise.all(stores.map(store => store.close()))
        await remove()
      })
      const open = async () => {
        const store = await openStore(await create())
        stores.push(store)
        return store
      }
      define(name, open, create)
    })
  }
}

/**
 * Defines tests of the behaviour above the store, whose statements are the same on both: on PostgreSQL only in a
 * thorough run.
 */
export function eachDatabaseIfThorough(define: DefineTests): void {
  eachDatabase(define, IS_THOROUGH ? BOTH : [sqliteDatabases])
}

function sqliteDatabases(): TestDatabases {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-test-'))
  return {
    name: 'SQLite',
    create: async content => {
      const url = `sqlite:${join(folder, `${randomUUID()}.db`)}`
      if (content !== 'empty') await copyTables(url)
      return url
    },
    remove: async () => rmSync(folder, { recursive: true, force: true }),
  }
}

export function postgresDatabases(): TestDatabases {
  return {
    name: 'PostgreSQL',
    create: content => (content === 'empty' ? createDatabase('template0') : createDatabase(readTemplate())),
    // They are removed with the template: the removal of a single database waits for the disk.
    remove: async () => {},
  }
}

const BOTH = [sqliteDatabases, postgresDatabases]

async function createDatabase(template: string): Promise<string> {
  const name = `${readTemplate()}_${randomUUID().slice(0, 8)}`
  await query(postgresUrl(), `create database ${name} template ${template} strategy file_copy`)
  return databaseUrl(postgresUrl(), name)
}

function readTemplate(): string {
  return readEnv('TEST_POSTGRES_TEMPLATE')
}

function postgresUrl(): string {
  return readEnv('TEST_POSTGRES_URL')
}

function readEnv(name: 'TEST_POSTGRES_URL' | 'TEST_POSTGRES_TEMPLATE'): string {
  const value = process.env[name]
  if (value === undefined) throw new Error(`Cannot test on PostgreSQL: ${name} is missing. Run \`npm test\``)
  return value
}
