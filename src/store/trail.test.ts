import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { eachDatabase } from '../../test/support/databases.ts'
import { openStore } from './index.ts'

const row = (at: number, patient_id: string | null = null) => ({
  at,
  server: 'fhir' as const,
  kind: 'fhir',
  allowed: at % 2 === 0,
  status: 200,
  patient_id,
})

eachDatabase((name, open, create) => {
  describe('Store.trail', () => {
    it('has all records of a call, for another store at once (AUDIT-22)', async () => {
      const url = await create()
      const store = await openStore(url)
      await Promise.all([store.trail.append([row(1, 'ada')]), store.trail.append([row(2)])])
      const other = await openStore(url)
      const rows = await (await other.trail.read())
        .selectFrom('audit_event')
        .select(['at', 'allowed', 'patient_id', 'reason'])
        .orderBy('id')
        .execute()
      assert.deepEqual(rows, [
        { at: 1, allowed: false, patient_id: 'ada', reason: null },
        { at: 2, allowed: true, patient_id: null, reason: null },
      ])
      await Promise.all([store.close(), other.close()])
    })

    it('adds all records of a call or none', async () => {
      const store = await open()
      const bad = { ...row(3), status: null as unknown as number }
      await assert.rejects(store.trail.append([row(1), bad]))
      await store.trail.append([row(5)])
      const rows = await (await store.trail.read()).selectFrom('audit_event').select('at').execute()
      assert.deepEqual(rows, [{ at: 5 }])
    })

    it('accepts thousands of records, in parallel with transactions and other calls', async () => {
      const store = await open()
      const many = Array.from({ length: 4000 }, (_, at) => row(at))
      await Promise.all([
        store.trail.append(many),
        store.trail.append(many),
        store.trail.append([]),
        store.db.transaction().execute(async trx => {
          await trx.insertInto('login_failure').values({ username_address_hash: 'x', at: 1 }).execute()
          await new Promise(resolve => setImmediate(resolve))
        }),
      ])
      const { count } = await (await store.trail.read())
        .selectFrom('audit_event')
        .select(({ fn }) => fn.countAll<number>().as('count'))
        .executeTakeFirstOrThrow()
      assert.equal(Number(count), 8000, name)
    })
  })
})
