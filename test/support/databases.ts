import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe } from 'node:test'
import pg from 'pg'
import { openStore, type Store } from '../../src/store/index.ts'
import { openSqliteStore } from './sqlite-store.ts'

/** Databases that a test has for itself. */
export interface TestDatabases {
  readonly name: 'SQLite' | 'PostgreSQL'
  /** The URL of a new, empty database. */
  create(): Promise<string>
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
    const { name, create, remove } = make()
    describe(`on ${name}`, () => {
      after(async () => {
        await Promise.all(stores.map(store => store.close()))
        await remove()
      })
      const open = async () => {
        const store = await (name === 'SQLite' ? openSqliteStore(await create()) : openStore(await create()))
        stores.push(store)
        return store
      }
      define(name, open, create)
    })
  }
}

function sqliteDatabases(): TestDatabases {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-test-'))
  return {
    name: 'SQLite',
    create: async () => `sqlite:${join(folder, `${randomUUID()}.db`)}`,
    remove: async () => rmSync(folder, { recursive: true, force: true }),
  }
}

// For a store, a separate schema is as isolated as a database, and ten times faster to create.
export function postgresDatabases(): TestDatabases {
  const schemas: string[] = []
  return {
    name: 'PostgreSQL',
    create: async () => {
      const schema = `test_${randomUUID().replaceAll('-', '')}`
      await onPostgres(`create schema ${schema}`)
      schemas.push(schema)
      const url = new URL(postgresUrl())
      url.searchParams.set('options', `-c search_path=${schema}`)
      return url.href
    },
    remove: () => onPostgres(schemas.map(schema => `drop schema ${schema} cascade`).join(';')),
  }
}

async function onPostgres(sql: string): Promise<void> {
  if (sql === '') return
  const client = new pg.Client({ connectionString: postgresUrl() })
  await client.connect()
  await client.query(sql).finally(() => client.end())
}

function postgresUrl(): string {
  const url = process.env.TEST_POSTGRES_URL
  if (url === undefined)
    throw new Error('Cannot test on PostgreSQL: run by `npm test`, or set TEST_POSTGRES_URL')
  return url
}
