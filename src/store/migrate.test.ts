import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import { eachDatabase } from '../../test/support/databases.ts'
import type { Store } from './index.ts'
import { migrate } from './migrate.ts'
import { clientApproval } from './migrations/0002-client-approval.ts'
import { clientOrigins } from './migrations/0004-client-origins.ts'
import { migrations } from './migrations/index.ts'

eachDatabase((_, open) => {
  describe('migrate', () => {
    it('leaves nothing of a migration that fails half way', async () => {
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

    it('takes clients that registered themselves for unverified, and all others for approved', async () => {
      const store = await open()
      await sql`drop index client_launchable`.execute(store.db)
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

    it('files the origins of the clients that are there', async () => {
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

    it('leaves the rows that earlier migrations have', async () => {
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
