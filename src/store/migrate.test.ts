import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import { eachDatabase } from '../../test/support/databases.ts'
import { query } from '../../test/support/postgres.ts'
import type { Store } from './index.ts'
import { clientApproval } from './migrations/0002-client-approval.ts'
import { clientOrigins } from './migrations/0004-client-origins.ts'
import { launchExtensions } from './migrations/0044-launch-extensions.ts'
import { migrations } from './migrations/index.ts'
import { inspectDatabase, migrate } from './open-store.ts'

const FOLDER = new URL('./migrations/', import.meta.url)

/** The SHA-256 of every released migration. A new migration adds a line; no line ever changes. */
const RELEASED: Readonly<Record<string, string>> = {
  '0001-tables.ts': 'af576f0b4eaea9bdebde151ddfa18dafa2ffe3b9780292ba22ce9f0f1bf1faaf',
  '0002-client-approval.ts': '1f5d68f4d00765a798d2cf01889a8ddafd7ca727d526c0a8204a6434d3420fc5',
  '0003-audit-repeats.ts': '6fe7802de7c03ea47959840caed1cca8d7c54912534a237e8392385e962d6c4e',
  '0004-client-origins.ts': '409f0183d5ada57455ccba0debd230b9d345e8229390b4c47cf5da9c3439c8d1',
  '0005-launch-and-successor-indexes.ts': 'a93fde171c4873a00bedb5db5db1a9ae9aa6d460a44f2575ec3859962d7852fd',
  '0006-older-clients.ts': '1b9d10574cfa924da33386403ca4ad2107995c175f2e93499ba3496978455aa0',
  '0007-login-use.ts': 'f8e5ea3c2e1d313eed562988301b2b2fe0942c156e9f0ec1f1819c2cde859144',
  '0008-audit-delivery.ts': 'd9d0a68f077bea6dacd6bbc2b1cbff5bc3445cf3a1ae3f4981a58f6b4098bcc3',
  '0009-limits-of-strangers.ts': 'e16b7e9d024f08d8fa649785d85854ad7475347c90fd026ed2a8996e50b88ad7',
  '0010-launches-of-networks.ts': '46079f161658ef5d8b22c9b8d41790fdc7e4dfcf2690c522f1debc40a8f2e000',
  '0011-audit-search-and-sweep.ts': 'd86a7508dddb52cc44273190fd26acfa856c1469fd6f662694dee05ce5b60a1f',
  '0015-sessions-of-a-browser.ts': '68440539f68791a81bc05ae7a3f18211d4e191f9388be0f8c634c230ec3dcc75',
  '0016-recent-use.ts': '5c8a18cc23607f685e6a901a948c6c36c8dd27d3134c78cd8e3bd9fce8e4ead9',
  '0017-related-persons.ts': '5123ec5368de20628fc1d9a43b6f0687a6211ea254919c453a1e18058b172190',
  '0018-login-providers.ts': '6eda696e0b786fc01e24004ee14085dc59c95c0eeeec27e9992680ac2fcebc49',
  '0020-lab.ts': '4724d1ceedd74e306c3864baa9b62c7e4e2e4b44a4240c689c218edb743f2349',
  '0021-audit-details.ts': '59417c6976b2ea4ea51223f1e064f511e6ca059cc76eb4ad936940133363ea40',
  '0024-administration.ts': '7087072be4416b7375fedf206e349dee651026d9f30b748c39c05b586497215b',
  '0026-audit-seals.ts': '38bd43fc1482800fea7fd12d30c45a31f6da2373fbe732edd4c788a2a5834452',
  '0027-audit-feeds.ts': 'eeee4089e92aa99e60d90597a447b9ab365ec939d37f068f76bed5860040be2b',
  '0028-pending-sign-in-expiry.ts': 'daadc78ee69460ca690a9f42f1d73e691e47cafbaa5ce15f506a23c335ba72d7',
  '0031-audit-queue.ts': 'f0424408e399c64695d0c08bf5a5801c8944cff3c997dff9d60ba20d3830568b',
  '0032-audit-queue-position.ts': 'bd98e84ee7003e625548fa4dc6d32bba890a7cad4226161f6d707b56bb62c873',
  '0040-reserved-login-attempts.ts': '71372bfcf2ea3f7792a9d56564f5d0a5d0f9364aa7bbaf93d9451832b2f47e87',
  '0041-audit-key.ts': 'c9c2936a898b5681f0d75b262e714dcd8b37b75b3d8654e270ee020ac168e796',
  '0042-audit-links.ts': 'ce1874fa63eab134fbf8e0a1fe34965b6596f7eafb6bfa351c447fc3f91b3843',
  '0043-access-that-ends.ts': 'a899b07c0ff0e202437019ec393b328188702edf0c9c22a8d3aeea197fee6753',
  '0044-launch-extensions.ts': '640d38a1fae6dee565119a4c04a7752be9bc0bd1fe3dbacd9a47c359f2a21f26',
}

describe('released migrations', () => {
  it('never change, because databases migrated earlier would have another schema', () => {
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
    it('reports an empty database as new, and leaves it empty', async () => {
      const url = await create('empty')
      for (const _ of [1, 2]) {
        const { store, isNew } = await inspectDatabase(url)
        assert(isNew)
        assert.deepEqual((await store?.db.introspection.getTables()) ?? [], [])
        await store?.close()
      }
    })

    if (name === 'PostgreSQL')
      it('rejects a user who may not create tables', async () => {
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
        up: async (db: Store['db']) => {
          await db.schema.createTable('half').addColumn('id', 'text').execute()
          throw new Error('on purpose')
        },
      }
      await assert.rejects(migrate(store, [...migrations, broken]), /on purpose/)
      await assert.rejects(sql`select * from half`.execute(store.db), /half/)
      await migrate(store)
    })

    it('marks self-registered clients as unverified and all others as approved', async () => {
      const store = await open()
      await sql`drop index client_launchable`.execute(store.db)
      await sql`drop index client_approved`.execute(store.db)
      await sql`alter table client drop column approved`.execute(store.db)
      for (const [id, firstParty] of [
        ['growth', false],
        ['0f8fad5b-d9cb-469f-a165-70867728950e', false],
        ['7c9e6679-7425-40de-944b-e07fc1f90ae7', true],
      ])
        await sql`insert into client (client_id, name, auth_method, redirect_uris, scope, first_party, created_at)
                  values (${id}, 'n', 'none', '[]', 's', ${sql.lit(firstParty)}, 1)`.execute(store.db)
      await clientApproval.up(store.db, store.dialect)
      const rows = await store.db
        .selectFrom('client')
        .select('client_id')
        .where('approved', '=', false)
        .execute()
      assert.deepEqual(rows, [{ client_id: '0f8fad5b-d9cb-469f-a165-70867728950e' }])
    })

    it('stores the origins of existing clients', async () => {
      const store = await open()
      await sql`drop index client_launchable`.execute(store.db)
      await sql`drop table client_origin`.execute(store.db)
      const redirects = '["https://a.example:8443/cb", "https://a.example:8443/two", "com.example.app:/cb"]'
      await sql`insert into client (client_id, name, auth_method, redirect_uris, launch_url, scope, first_party, created_at)
                values ('app', 'n', 'none', ${redirects}, 'http://localhost/launch', 's', false, 1)`.execute(
        store.db,
      )
      await clientOrigins.up(store.db, store.dialect)
      const rows = await store.db.selectFrom('client_origin').select('origin').orderBy('origin').execute()
      assert.deepEqual(rows, [{ origin: 'http://localhost' }, { origin: 'https://a.example:8443' }])
    })

    it('keeps launches with an extension, and knows which access developer tools gave', async () => {
      const store = await open()
      for (const table of ['launch_token', 'grant'] as const)
        await sql`alter table ${sql.table(table)} rename column extension to lab`.execute(store.db)
      await sql`create index grant_lab on "grant" (id) where lab is not null`.execute(store.db)
      await sql`insert into launch_token (token_hash, patient_id, need_patient_banner, client_id, clinician_username, fhir_base_url, launch_id, lab, created_at, expires_at)
                values ('h', 'p', false, 'c', 'u', 'f', 'l', '{"x":1}', 1, 2)`.execute(store.db)
      await sql`insert into clinician (id, username, password_hash, display_name, fhir_user_id)
                values ('ada', 'ada', 'hash', 'Ada', 'p')`.execute(store.db)
      for (const [id, basis] of [
        ['given', '{"loopback":true,"lab":true}'],
        ['usual', '{"loopback":true}'],
      ])
        await sql`insert into login (id_hash, clinician_id, created_at, expires_at, basis)
                  values (${id}, 'ada', 1, 2, ${basis})`.execute(store.db)
      await launchExtensions.up(store.db, store.dialect)
      const launches = await store.db.selectFrom('launch_token').select('extension').execute()
      assert.deepEqual(launches, [{ extension: '{"x":1}' }])
      const logins = await store.db.selectFrom('login').select('basis').orderBy('id_hash').execute()
      assert.deepEqual(
        logins.map(({ basis }) => basis),
        ['{"loopback":true,"developerTools":true}', '{"loopback":true}'],
      )
    })

    it('keeps the rows of earlier migrations', async () => {
      const store = await open()
      await sql`insert into clinician (username, password_hash, display_name, fhir_user_id)
                values ('ada', 'hash', 'Ada', 'p')`.execute(store.db)
      const further = {
        name: '9999-further',
        up: (db: Store['db']) =>
          db.schema
            .alterTable('clinician')
            .addColumn('note', 'text', column => column.defaultTo('none'))
            .execute(),
      }
      await migrate(store, [...migrations, further])
      const rows = await sql<{ note: string }>`select note from clinician`.execute(store.db)
      assert.deepEqual(rows.rows, [{ note: 'none' }])
    })
  })
})
