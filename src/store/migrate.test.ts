import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import { eachDatabase } from '../../test/support/databases.ts'
import { query } from '../../test/support/postgres.ts'
import { migrations } from './migrations/index.ts'
import { inspectDatabase, migrate } from './open-store.ts'

const FOLDER = new URL('./migrations/', import.meta.url)

/** The SHA-256 of every released migration. A new migration adds a line; no line ever changes. */
const RELEASED: Readonly<Record<string, string>> = {
  '0001-schema.ts': '98fbf429af12adddfcd18a2d74d8d3227d50f11d7c25ff5f51fed22141cc0251',
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

  describe('migrate', () => {
    it('rolls back a migration that fails halfway', async () => {
      const store = await open()
      const broken = {
        name: '9998-broken',
        list: () => ['create table half (id text)', 'create table half (id text)'],
      }
      await assert.rejects(migrate(store, [...migrations, broken]), /already exists/)
      await assert.rejects(sql`select * from half`.execute(store.db), /half/)
      await migrate(store)
    })

    it('keeps the rows of earlier migrations', async () => {
      const store = await open()
      await sql`insert into clinician (username, password_hash, display_name, fhir_user_id)
                values ('ada', 'hash', 'Ada', 'p')`.execute(store.db)
      const further = {
        name: '9999-further',
        list: () => ["alter table clinician add column note text default 'none'"],
      }
      await migrate(store, [...migrations, further])
      const rows = await sql<{ note: string }>`select note from clinician`.execute(store.db)
      assert.deepEqual(rows.rows, [{ note: 'none' }])
    })
  })
})
