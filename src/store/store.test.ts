import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { sql } from 'kysely'
import { eachDatabase } from '../../test/support/databases.ts'
import { openStore, parseDatabaseUrl, prepareInsert, prepareQuery, type Store } from './index.ts'
import { migrations } from './migrations/index.ts'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

const insertUser = (store: Store, username: string) =>
  sql`INSERT INTO clinician (username, password_hash, display_name, fhir_user_id)
      VALUES (${sql.lit(username)}, '$2y$10$hash', 'Dr. Ada Byron', 'practitioner-7')`.execute(store.db)

const client = {
  client_id: 'app',
  name: 'App',
  auth_method: 'none',
  redirect_uris: '[]',
  scope: 'openid',
  first_party: true,
  created_at: 1,
} as const

async function makeGrant(store: Store): Promise<void> {
  await insertUser(store, 'ada')
  const { id } = await store.db.selectFrom('clinician').select('id').executeTakeFirstOrThrow()
  await store.db.insertInto('client').values(client).execute()
  await store.db
    .insertInto('grant')
    .values({
      id: 'g',
      client_id: 'app',
      clinician_id: id,
      scope: 'openid',
      auth_time: 1,
      created_at: 1,
      last_used_at: 1,
    })
    .execute()
  await store.db
    .insertInto('authorization_code')
    .values({ code_hash: 'c', grant_id: 'g', redirect_uri: 'r', code_challenge: 'x', expires_at: 2 })
    .execute()
  await store.db
    .insertInto('refresh_token')
    .values({ token_hash: 'r', grant_id: 'g', created_at: 1, expires_at: 2 })
    .execute()
}

eachDatabase((name, open, create) => {
  describe('the clinician table', () => {
    it('accepts a plain INSERT of the four named columns and generates the UUID (LOGIN-1)', async () => {
      const store = await open()
      for (const username of ['ada', 'bea', 'cyd']) await insertUser(store, username)
      const rows = await store.db.selectFrom('clinician').selectAll().orderBy('username').execute()
      assert.deepEqual(rows[0], {
        id: rows[0]?.id,
        username: 'ada',
        password_hash: '$2y$10$hash',
        display_name: 'Dr. Ada Byron',
        fhir_user_id: 'practitioner-7',
        disabled: false,
        admin: false,
        auditor: false,
        access_version: 0,
        for_loopback: false,
        must_change_password: false,
        created_at: null,
        signed_in_at: null,
        password_changed_at: null,
      })
      for (const row of rows) assert.match(row.id, UUID)
      assert.equal(new Set(rows.map(row => row.id)).size, 3)
    })

    it('refuses a username that is taken', async () => {
      const store = await open()
      await insertUser(store, 'ada')
      await assert.rejects(insertUser(store, 'ada'), /unique/i)
    })
  })

  describe('Store', () => {
    it('returns booleans, instants and counts as booleans and numbers', async () => {
      const store = await open()
      const at = Date.UTC(2031, 0, 1)
      await store.db
        .insertInto('client')
        .values({ ...client, created_at: at })
        .execute()
      const row = await store.db
        .selectFrom('client')
        .select(['first_party as ours', 'created_at', 'launch_url'])
        .where('first_party', '=', true)
        .executeTakeFirstOrThrow()
      assert.deepEqual(row, { ours: true, created_at: at, launch_url: null })
      const { count } = await store.db
        .selectFrom('client')
        .select(({ fn }) => fn.countAll().as('count'))
        .executeTakeFirstOrThrow()
      assert.equal(count, 1)
      const changed = await store.db
        .updateTable('client')
        .set({ first_party: false })
        .where('client_id', '=', 'app')
        .returning('first_party')
        .executeTakeFirstOrThrow()
      assert.deepEqual(changed, { first_party: false })
    })

    it('deletes grants, codes and refresh tokens with their client', async () => {
      const store = await open()
      await makeGrant(store)
      await store.db.deleteFrom('client').where('client_id', '=', 'app').execute()
      for (const table of ['grant', 'authorization_code', 'refresh_token'] as const) {
        assert.deepEqual(await store.db.selectFrom(table).selectAll().execute(), [], table)
      }
    })

    it('deletes them with their clinician', async () => {
      const store = await open()
      await makeGrant(store)
      await store.db.deleteFrom('clinician').execute()
      assert.deepEqual(await store.db.selectFrom('refresh_token').selectAll().execute(), [])
    })

    it('lets exactly one of many concurrent uses consume a code', async () => {
      const store = await open()
      await makeGrant(store)
      const use = () =>
        store.db.transaction().execute(async trx => {
          const used = await trx
            .updateTable('authorization_code')
            .set({ used_at: 5 })
            .where('code_hash', '=', 'c')
            .where('used_at', 'is', null)
            .executeTakeFirst()
          await pause(1)
          return used.numUpdatedRows
        })
      const uses = await Promise.all(Array.from({ length: 20 }, use))
      assert.equal(
        uses.reduce((sum, n) => sum + n, 0n),
        1n,
      )
    })

    it('rolls back a failed transaction and nothing that others wrote meanwhile', async () => {
      const store = await open()
      await insertUser(store, 'ada')
      const failing = store.db.transaction().execute(async trx => {
        await trx.updateTable('clinician').set({ display_name: 'lost' }).execute()
        await pause(20)
        throw new Error('on purpose')
      })
      const others = Promise.all(Array.from({ length: 10 }, (_, i) => insertUser(store, `other-${i}`)))
      await assert.rejects(failing, /on purpose/)
      await others
      const rows = await store.db.selectFrom('clinician').select(['username', 'display_name']).execute()
      assert.equal(rows.length, 11)
      assert.ok(rows.every(row => row.display_name === 'Dr. Ada Byron'))
    })

    it('loses none of many concurrent read-and-write transactions', async () => {
      const store = await open()
      await insertUser(store, 'ada')
      await store.db.updateTable('clinician').set({ display_name: '0' }).execute()
      const increment = () =>
        store.db.transaction().execute(async trx => {
          const row = await trx
            .selectFrom('clinician')
            .select('display_name')
            .$call(forUpdate)
            .executeTakeFirstOrThrow()
          await pause(1)
          await trx
            .updateTable('clinician')
            .set({ display_name: String(Number(row.display_name) + 1) })
            .execute()
        })
      const forUpdate = <Query extends { forUpdate(): Query }>(query: Query) =>
        store.dialect === 'postgres' ? query.forUpdate() : query
      await Promise.all(Array.from({ length: 30 }, increment))
      const { display_name } = await store.db.selectFrom('clinician').selectAll().executeTakeFirstOrThrow()
      assert.equal(display_name, '30')
    })

    it('serves a read while a transaction is open, with committed data', async () => {
      const store = await open()
      await store.db.transaction().execute(async trx => {
        await trx.insertInto('client').values(client).execute()
        assert.deepEqual(await store.db.selectFrom('client').selectAll().execute(), [])
        assert.equal((await trx.selectFrom('client').selectAll().execute()).length, 1)
      })
      assert.equal((await store.db.selectFrom('client').selectAll().execute()).length, 1)
    })

    it('can be pinged while it is open', async () => {
      const store = await open()
      await store.ping()
    })
  })

  describe('openStore', () => {
    it('keeps its data when it is opened again', async () => {
      const url = await create('empty')
      const first = await openStore(url)
      await insertUser(first, 'ada')
      await first.close()
      const second = await openStore(url)
      assert.equal((await second.db.selectFrom('clinician').selectAll().execute()).length, 1)
      await second.close()
    })

    it('migrates once when several instances open an empty database at the same time', async () => {
      const url = await create('empty')
      const stores = await Promise.all(Array.from({ length: 6 }, () => openStore(url)))
      const applied = await sql<{ name: string }>`select name from schema_migration`.execute(
        stores[0]?.db ?? fail(),
      )
      assert.deepEqual(
        applied.rows.map(row => row.name),
        migrations.map(migration => migration.name),
      )
      await Promise.all(stores.map(store => store.close()))
    })

    it('refuses a database of a newer version', async () => {
      const url = await create('empty')
      const store = await openStore(url)
      await sql`insert into schema_migration (name, needs, applied_at)
        values ('9999-later', '9999-later', 1)`.execute(store.db)
      await store.close()
      await assert.rejects(
        openStore(url),
        /^Error: Cannot open database .*newer version of Sallyport changed it \(it has migration 9999-later\)/,
      )
    })

    it('refuses a URL that is not a database', async () => {
      await assert.rejects(openStore('mysql://x'), /expected sqlite:<path> or postgres:/)
    })
  })

  it(`names its dialect (${name}) (STORE-1)`, async () => {
    assert.equal((await open()).dialect, name === 'SQLite' ? 'sqlite' : 'postgres')
  })
})

function fail(): never {
  throw new Error('Cannot test: no store')
}

describe('parseDatabaseUrl', () => {
  it('accepts a path after sqlite:', () => {
    assert.deepEqual(parseDatabaseUrl('sqlite:./data/sallyport.db'), {
      dialect: 'sqlite',
      path: './data/sallyport.db',
    })
    assert.deepEqual(parseDatabaseUrl('sqlite:/var/lib/a b.db'), {
      dialect: 'sqlite',
      path: '/var/lib/a b.db',
    })
  })

  it('accepts postgres:// and postgresql://, and shows neither user nor password (STORE-1)', () => {
    for (const scheme of ['postgres', 'postgresql']) {
      const url = `${scheme}://someone:hush@db.example:5433/sallyport?sslmode=verify-full`
      assert.deepEqual(parseDatabaseUrl(url), {
        dialect: 'postgres',
        url,
        shownAs: `${scheme}://db.example:5433/sallyport`,
      })
    }
  })

  it('accepts nothing else', () => {
    for (const text of [
      '',
      'sqlite:',
      'sqlite::memory:',
      'mysql://h/d',
      'data.db',
      'postgres:',
      'postgres://h:port/d',
    ]) {
      assert.equal(parseDatabaseUrl(text), undefined, text)
    }
  })
})

eachDatabase((_name, open) => {
  describe('prepareQuery', () => {
    it('compiles a query once for a database, and binds the parameters of each call in a transaction too', async () => {
      const store = await open()
      let built = 0
      const insert = prepareQuery((db, { id, at }: { id: string; at: number }) => {
        built++
        return db.insertInto('revocation').values({ id, revoked_at: 7, expires_at: at })
      })
      const find = prepareQuery((db, { id }: { id: string }) =>
        db.selectFrom('revocation').selectAll().where('id', '=', id).where('revoked_at', '=', 7),
      )
      assert.equal((await insert(store.db, { id: 'a', at: 1 })).numAffectedRows, 1n)
      await store.db.transaction().execute(trx => insert(trx, { id: 'b', at: 2 }))
      assert.equal(built, 1)
      assert.deepEqual((await find(store.db, { id: 'b' })).rows, [{ id: 'b', revoked_at: 7, expires_at: 2 }])
      assert.deepEqual((await find(store.db, { id: "' or 1=1" })).rows, [])
    })
  })

  describe('prepareInsert', () => {
    it('inserts rows with different columns', async () => {
      const store = await open()
      const insert = prepareInsert('client')
      await insert(store.db, client)
      await insert(store.db, { logo_url: 'https://a', ...client, client_id: 'other' })
      await insert(store.db, { ...client, client_id: 'third', first_party: false })
      const rows = await store.db
        .selectFrom('client')
        .select(['client_id', 'logo_url', 'first_party'])
        .orderBy('client_id')
        .execute()
      assert.deepEqual(rows, [
        { client_id: 'app', logo_url: null, first_party: true },
        { client_id: 'other', logo_url: 'https://a', first_party: true },
        { client_id: 'third', logo_url: null, first_party: false },
      ])
    })
  })
})
