import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { samplePatients } from '../../sample-patients/index.ts'
import { reportPatients } from './sample-patients.ts'

describe('reportPatients', () => {
  it('reports each 500 patients when they are complete, and passes all resources on', () => {
    const now = Date.now()
    const reports: number[] = []
    const passed = [...reportPatients(samplePatients({ count: 1_001, now }), done => reports.push(done))]
    assert.deepEqual(reports, [500, 1_000])
    assert.equal(passed.length, [...samplePatients({ count: 1_001, now })].length)
  })

  it('reports nothing about a usual first start', () => {
    const reports: number[] = []
    for (const _ of reportPatients(samplePatients({ now: Date.now() }), done => reports.push(done)));
    assert.deepEqual(reports, [])
  })
})
