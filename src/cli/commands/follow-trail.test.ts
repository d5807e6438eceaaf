import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { eachDatabaseIfThorough } from '../../../test/support/databases.ts'
import { type AuditRecord, createAuditor, findRecords } from '../../audit/index.ts'
import { followTrail } from './audit.ts'

const login = (at: number): AuditRecord => ({ at, server: 'auth', kind: 'login', allowed: true, status: 302 })

eachDatabaseIfThorough((_name, open) => {
  describe('followTrail', () => {
    it('continues after the last printed record and includes late records', async () => {
      const store = await open()
      const { record } = createAuditor({ store })
      for (const at of [8000, 9000, 9500, 10_000, 10_000]) await record(login(at))
      const shown = await findRecords(store, { limit: 2 })
      assert.deepEqual(
        shown.map(({ at }) => at),
        [10_000, 10_000],
      )
      const look = await followTrail(store, {}, shown[0], 20_000)
      const ats = async () => (await look()).map(({ at }) => at)
      assert.deepEqual(await ats(), [])
      await record(login(10_000), login(9999), login(11_000))
      assert.deepEqual(await ats(), [9999, 10_000, 11_000])
      assert.deepEqual(await ats(), [])
      await record(login(17_000), login(10_999))
      assert.deepEqual(await ats(), [10_999, 17_000])
      assert.deepEqual(await ats(), [])
    })

    it('keeps the filter, and starts with new records if none was printed', async () => {
      const store = await open()
      const { record } = createAuditor({ store })
      const look = await followTrail(store, { events: [{ kind: 'login' }] }, undefined, 20_000)
      await record(login(20_001), { ...login(20_001), kind: 'logout' }, login(20_002))
      assert.deepEqual(
        (await look()).map(({ at, kind }) => `${kind} ${at}`),
        ['login 20001', 'login 20002'],
      )
    })
  })
})
