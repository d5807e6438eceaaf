import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { sql } from 'kysely'
import pg from 'pg'
import { eachDatabase } from '../../test/support/databases.ts'
import { query } from '../../test/support/postgres.ts'
import { inspectMigrations } from './migrate.ts'
import type { Migration } from './migration.ts'
import { migrations } from './migrations/index.ts'
import { inspectDatabase, migrateStore, openStore, run } from './open-store.ts'
import type { Store } from './store.ts'

const FOLDER = new URL('./migrations/', import.meta.url)

/** The SHA-256 of every released migration. A new migration adds a line; no line ever changes. */
const RELEASED: Readonly<Record<string, string>> = {
  '0001-schema.ts': '82fe1edc14f5e88e0e29915fdce53184b497111a488bc17b3a9e33dbb4cc416d',
  '0002-who.ts': 'c1d659a036100beef382594bf34dfb2246525a4895c279eb612763cc29f4f1af',
  '0003-makers.ts': '7ece8ef091061d5811a2640bf4f063b69253711d1ace146002b85e898ca4e4b4',
  '0004-wrong-proofs.ts': '5a509cc985c31cf02000ce1cc7a09b0535c004a0dc97e37d5ae9c388df733ee5',
  '0005-export-jobs.ts': '515280114e09827e2e551fa835fa7fd512851855cbc6ec323960d05d8884c800',
  '0006-agents.ts': 'ebc85a8091b9d34cc3bcd3cca894a861b1a144c8e3c160784c20b5c9c12a4695',
  '0007-proposals.ts': 'b9d0b449a68d8f992a547a9d6593650e20675b151ab3387d265e2ea1ec103716',
  '0008-registrants.ts': 'edf5fed2a244c3906b6b10571bcb3762a808d1b364a7ba3761ded85ca00f300c',
}

describe('released migrations', () => {
  it('never change, because databases migrated earlier would have another schema (STORE-4)', () => {
    const files = readdirSync(FOLDER).filter(name => /^\d{4}-/.test(name))
    const hashes = files.map(name => [name, computeHash(readFileSync(new URL(name, FOLDER)))])
    assert.deepEqual(Object.fromEntries(hashes), RELEASED)
    assert.deepEqual(
      migrations.map(({ name }) => `${name}.ts`),
      files.toSorted(),
    )
  })
})

function computeHash(content: Buffer): string {
  return createHash('sha256').update(content).digest('hex')
}

const inspect = ({ db, dialect }: Store, steps: readonly Migration[]) =>
  run(db, inspectMigrations(steps, dialect))

eachDatabase((name, open, create) => {
  describe('inspectDatabase', () => {
    it('reports an empty database as new, and leaves it empty (CHECK-3)', async () => {
      const url = await create('empty')
      for (const _ of [1, 2]) {
        const { store, isNew } = await inspectDatabase(url)
        assert(isNew)
        assert.deepEqual((await store?.db.introspection.getTables()) ?? [], [])
        await store?.close()
      }
    })

    if (name === 'PostgreSQL')
      it('rejects a user who may not create tables (CHECK-3)', async () => {
        const url = await create('empty')
        await query(url, 'create role inspector login')
        try {
          const asInspector = Object.assign(new URL(url), { username: 'inspector' })
          await assert.rejects(inspectDatabase(asInspector.href), /Cannot open database/)
        } finally {
          await query(url, 'drop role inspector')
        }
      })
  })

  describe('a database that a newer version has migrated', () => {
    const expand = {
      name: '9001-expand',
      needs: '0001-schema',
      list: () => ['alter table clinician add column note text'],
    }
    const contract = { name: '9002-contract', needs: '9001-expand', list: () => [] }

    it('is used by the version before, if the newer one only added to it (STORE-8)', async () => {
      const url = await create('empty')
      const newer = await openStore(url)
      assert.deepEqual((await inspect(newer, [...migrations, expand])).isRolling, true)
      await migrateStore(newer, [...migrations, expand])
      const older = await openStore(url)
      await older.close()
      await newer.close()
    })

    it('is refused by versions that use what the newer one removed (STORE-8)', async () => {
      const url = await create('empty')
      const newer = await openStore(url)
      const all = [...migrations, expand, contract]
      assert.equal((await inspect(newer, all)).isRolling, false)
      await migrateStore(newer, all)
      await assert.rejects(openStore(url), /a newer version of Sallyport changed it \(it has migration 9002/)
      assert.deepEqual((await inspect(newer, [...migrations, expand])).pending, [])
      await newer.close()
    })
  })

  if (name === 'PostgreSQL')
    it('opens a migrated database as a user who may not create tables (STORE-8)', async () => {
      const url = await create('empty')
      await (await openStore(url)).close()
      const [row] = await query(url, 'select current_schema() as name')
      await query(
        url,
        `create role server login;
        grant usage on schema ${row?.name} to server;
        grant select, insert, update, delete on all tables in schema ${row?.name} to server;
        grant usage on all sequences in schema ${row?.name} to server`,
      )
      try {
        const store = await openStore(Object.assign(new URL(url), { username: 'server' }).href)
        await store.ping()
        await store.close()
      } finally {
        await query(url, 'drop owned by server; drop role server')
      }
    })

  if (name === 'PostgreSQL')
    it('uses the schema of the connection, whatever the others hold (STORE-8)', async () => {
      const url = await create()
      await query(url, 'create schema second')
      const inSecond = new URL(url)
      inSecond.searchParams.set('options', '-c search_path=second')
      const before = await inspectDatabase(inSecond.href)
      assert(before.isNew)
      await before.store?.close()
      await (await openStore(inSecond.href)).close()
      const [row] = await query(url, 'select count(*) from second.schema_migration')
      assert.equal(Number(row?.count), migrations.length)
    })

  describe('migrate', () => {
    it('rolls back a migration that fails halfway', async () => {
      const store = await open()
      const broken = {
        name: '9998-broken',
        needs: '0001-schema',
        list: () => ['create table half (id text)', 'create table half (id text)'],
      }
      await assert.rejects(migrateStore(store, [...migrations, broken]), /already exists/)
      await assert.rejects(sql`select * from half`.execute(store.db), /half/)
      await migrateStore(store)
    })

    it('copies the names of accounts and apps that were removed before, from the audit trail (AUDIT-25)', async () => {
      const url = await create('empty')
      if (name === 'SQLite') writeFileSync(url.replace('sqlite:', ''), '')
      const { store } = await inspectDatabase(url)
      assert(store)
      await migrateStore(store, migrations.slice(0, 1))
      const record = { at: 1, server: 'auth', kind: 'admin', allowed: true, status: 200 } as const
      const account = { id: 'a1', username: 'ada', displayName: 'Ada', fhirUser: 'Practitioner/p1' }
      const app = (client_name: string) => ({ client_id: 'growth', client_name, first_party: true })
      const removals = [
        ['client remove growth', app('First')],
        ['client remove growth', app('Growth')],
        ['clinician remove ada', account],
        ['account remove bea', { username: 'bea' }],
        ['client set other', app('Other')],
      ] as const
      for (const [request, before] of removals)
        await store.db
          .insertInto('audit_event')
          .values({ ...record, request, details: JSON.stringify({ before }) })
          .execute()
      await migrateStore(store)
      assert.deepEqual(await store.db.selectFrom('removed_clinician').selectAll().execute(), [
        { id: 'a1', username: 'ada', display_name: 'Ada', fhir_user_id: 'p1' },
      ])
      const apps = await store.db.selectFrom('removed_client').selectAll().execute()
      assert.deepEqual(
        apps.map(app => [app.client_id, app.name, Boolean(app.first_party)]),
        [['growth', 'Growth', true]],
      )
      await store.close()
    })

    if (name === 'PostgreSQL')
      it('fails no transaction of a server that uses the same tables in another order (STORE-8)', async () => {
        const url = await create()
        const store = await openStore(url)
        const server = new pg.Client(url)
        await server.connect()
        await server.query('begin')
        await server.query('select 1 from client')
        const steps = [
          ...migrations,
          {
            name: '9997-two-tables',
            needs: '0001-schema',
            list: () => [
              'alter table clinician add column hint text',
              'alter table client add column hint text',
            ],
          },
        ]
        const migrated = migrateStore(store, steps)
        while ((await query(url, 'select from pg_locks where not granted')).length === 0) await pause(10)
        await server.query('select 1 from clinician')
        await server.query('commit')
        await migrated
        await server.query('select hint from client')
        await server.end()
        await store.close()
      })

    it('keeps the rows of earlier migrations', async () => {
      const store = await open()
      await sql`insert into clinician (username, password_hash, display_name, fhir_user_id)
                values ('ada', 'hash', 'Ada', 'p')`.execute(store.db)
      const further = {
        name: '9999-further',
        needs: '0001-schema',
        list: () => ["alter table clinician add column note text default 'none'"],
      }
      await migrateStore(store, [...migrations, further])
      const rows = await sql<{ note: string }>`select note from clinician`.execute(store.db)
      assert.deepEqual(rows.rows, [{ note: 'none' }])
    })
  })
})
