import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { measureGrowth } from '../../test/support/growth.ts'
import { isWithin } from './is-within.ts'
import { union } from './limit.ts'
import type { Limit } from './reach.ts'

const lab: Limit = { patient: '1', query: [['category', 'lab']] }
const finalLab: Limit = {
  patient: '1',
  query: [
    ['category', 'lab'],
    ['status', 'final'],
  ],
}

describe('union', () => {
  it('is everything when one limit leaves nothing out', () => {
    assert.equal(union([{ patient: '1' }, {}, { id: 'a' }]), 'everything')
    assert.deepEqual(union([]), [])
  })

  const KEPT: [name: string, limits: Limit[], kept: number[]][] = [
    ['different patients', [{ patient: '1' }, { patient: '2' }], [0, 1]],
    ['different ids', [{ id: 'a' }, { id: 'b' }], [0, 1]],
    ['a patient and an id', [{ patient: '1' }, { id: 'a' }], [0, 1]],
    ['an id, and the same for one patient', [{ id: 'a', patient: '1' }, { id: 'a' }], [1]],
    ['a patient, and a filter of that patient', [lab, { patient: '1' }], [1]],
    ['a patient, and a filter of another', [lab, { patient: '2' }], [0, 1]],
    ['a filter and a narrower one', [finalLab, lab], [1]],
    ['different values of a filter', [lab, { patient: '1', query: [['category', 'vital']] }], [0, 1]],
    ['the same value of different filters', [lab, { patient: '1', query: [['code', 'lab']] }], [0, 1]],
    ['a filter of everybody, and of one patient', [lab, { query: [['category', 'lab']] }], [1]],
    ['the same twice', [lab, { ...lab }], [0]],
    ['a patient alone, and that patient with others', [{ patient: '1', sole: true }, { patient: '1' }], [1]],
  ]
  for (const [name, limits, kept] of KEPT)
    it(`keeps what is needed of ${name}, in either order`, () => {
      const expected = kept.map(at => limits[at])
      assert.deepEqual(union(limits), expected)
      const turned = union(limits.toReversed())
      assert(turned !== 'everything')
      assert.deepEqual(
        new Set(turned.map(limit => JSON.stringify(limit))),
        new Set(expected.map(limit => JSON.stringify(limit))),
      )
    })
  it('costs no more than the number of limits', () => {
    const limits = (count: number): Limit[] =>
      Array.from({ length: count }, (_, at) => ({ patient: '1', query: [['code', String(at)]] }))
    const grown = measureGrowth(count => union(limits(count)), 100)
    assert.ok(grown < 8, `four times the limits cost ${grown.toFixed(1)} times as much`)
  })
})

describe('isWithin', () => {
  it('looks at the resource once, however many granular limits there are', () => {
    const resource = {
      resourceType: 'Observation',
      subject: { reference: 'Patient/1' },
      code: { coding: Array.from({ length: 20 }, (_, at) => ({ system: 's', code: `c${at}` })) },
    }
    const reach = (count: number): Limit[] =>
      Array.from({ length: count }, (_, at) => ({ patient: '1', query: [['code', `s|x${at}`]] }))
    const reaches = new Map([1, 4, 148].map(count => [count, reach(count)]))
    const test = (count: number) => isWithin(resource, reaches.get(count) ?? [], 'http://localhost/fhir')
    assert.equal(test(148), false)
    // Four times the limits cost less than four times as much: most of it is the resource.
    const grown = measureGrowth(count => {
      for (let round = 0; round < 50; round++) test(count)
    }, 1)
    assert.ok(grown < 2.5, `four limits cost ${grown.toFixed(1)} times as much as one`)
  })
})
