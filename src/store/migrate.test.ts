import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import { eachDatabase } from '../../test/support/databases.ts'
import type { Store } from './index.ts'
import { migrate } from './migrate.ts'
import { migrations } from './migrations/index.ts'

eachDatabase((_, open) => {
  describe('migrate', () => {
    it('leaves nothing of a migration that fails half way', async () => {
      const store = await open()
      const broken = {
        name: '0002-broken',
        up: async (db: Store['db']) => {
          await db.schema.createTable('half').addColumn('id', 'text').execute()
          throw new Error('on purpose')
        },
      }
      await assert.rejects(migrate(store, [...migrations, broken]), /on purpose/)
      await assert.rejects(sql`select * from half`.execute(store.db), /half/)
      await migrate(store)
    })

    it('leaves the rows that earlier migrations have', async () => {
      const store = await open()
      await sql`insert into clinician (username, password_hash, display_name, fhir_user_id)
                values ('ada', 'hash', 'Ada', 'p')`.execute(store.db)
      const further = {
        name: '0002-further',
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
