import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Kysely } from 'kysely'
import { eachDatabase } from '../../../test/support/databases.ts'
import { isFailure } from '../../core/index.ts'
import type { Schema } from '../../store/index.ts'
import { makeFault } from './fault.ts'
import { runTransaction } from './transaction.ts'

const revoke = (db: Kysely<Schema>, id: string) =>
  db.insertInto('revocation').values({ id, revoked_at: 1, expires_at: 2 }).execute()

eachDatabase((_name, open) => {
  describe('runTransaction', () => {
    it('keeps what was written before a result', async () => {
      const { db } = await open()
      const result = await runTransaction(db, async trx => {
        await revoke(trx, 'kept')
        return 'done'
      })
      assert.equal(result, 'done')
      assert.deepEqual(await db.selectFrom('revocation').select('id').execute(), [{ id: 'kept' }])
    })

    it('undoes what was written before a failure, and returns the failure', async () => {
      const { db } = await open()
      const result = await runTransaction(db, async trx => {
        await revoke(trx, 'undone')
        return makeFault('factor-gone')
      })
      assert.ok(isFailure(result))
      assert.equal(result.reason, 'factor-gone')
      assert.deepEqual(await db.selectFrom('revocation').select('id').execute(), [])
    })

    it('undoes what was written before an error, and rejects with it', async () => {
      const { db } = await open()
      const failed = runTransaction(db, async trx => {
        await revoke(trx, 'undone')
        throw new Error('bug')
      })
      await assert.rejects(failed, /bug/)
      assert.deepEqual(await db.selectFrom('revocation').select('id').execute(), [])
    })
  })
})
