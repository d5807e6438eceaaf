import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { eachDatabase } from '../../test/support/databases.ts'
import { prepareQuery } from './index.ts'

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
})
