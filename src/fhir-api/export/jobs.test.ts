import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { eachDatabase } from '../../../test/support/databases.ts'
import { createSealer, type Store } from '../../store/index.ts'
import type { ExportJobs, ExportOrder } from '../exports.ts'
import { createExportJobs } from './jobs.ts'

const ORDER: ExportOrder = {
  level: 'group',
  url: 'http://fhir.test/fhir/Group/g/$export',
  moment: { time: 5, mark: 7 },
  types: ['Patient', 'Condition'],
  filters: [],
  elements: [],
  patients: ['ann'],
  notes: [],
}
const OWNER = { issuer: '', client: 'service' }
const FILE = { kind: 'output', type: 'Patient', from: 0, to: 7, rows: 1 } as const

eachDatabase((_name, openStore) => {
  describe('the jobs of exports', () => {
    let store: Store
    let jobs: ExportJobs
    before(async () => {
      store = await openStore()
      jobs = createExportJobs(store, createSealer('secret'))
    })

    it('are found by their client until they end or expire (EXPORT-6)', async () => {
      const id = await jobs.add(ORDER, OWNER, 100)
      assert.deepEqual((await jobs.find(id, OWNER, 99))?.order, ORDER)
      assert.equal(await jobs.find(id, OWNER, 100), undefined)
      for (const other of [
        { issuer: '', client: 'other' },
        { issuer: 'https://other', client: 'service' },
      ])
        assert.equal(await jobs.find(id, other, 0), undefined)
      assert.deepEqual([await jobs.count(OWNER, 0), await jobs.count(OWNER, 100)], [1, 0])
      await jobs.end(id)
      assert.deepEqual([await jobs.isOpen(id, 0), await jobs.count(OWNER, 0)], [false, 0])
    })

    it('take one change of the files when two processes make it at once (EXPORT-6)', async () => {
      const id = await jobs.add(ORDER, OWNER, 100)
      const job = await jobs.find(id, OWNER, 0)
      assert(job)
      assert.deepEqual(
        [await jobs.update(job, { files: [FILE] }, 3), await jobs.update(job, { files: [] }, 4)],
        [true, false],
      )
      const found = await jobs.find(id, OWNER, 0)
      assert.deepEqual([found?.plan, found?.nextPollAt], [{ files: [FILE] }, 3])
    })

    it('are stored without the names of patients in plain text (STORE-2)', async () => {
      await jobs.add(ORDER, OWNER, 100)
      const rows = await store.db.selectFrom('export_job').selectAll().execute()
      assert(!JSON.stringify(rows).includes('ann'))
    })
  })
})
