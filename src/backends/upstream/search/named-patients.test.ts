import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseParams } from '../../../fhir/index.ts'
import { findNamedPatients } from './portions.ts'

const base = 'http://fhir.test/fhir'

function named(type: string, query: string) {
  const params = parseParams(query) ?? assert.fail(query)
  return findNamedPatients({ kind: 'search-type', type, params }, type, base)
}

describe('the patients that a search names', () => {
  it('are those of its compartment', () => {
    const search = { kind: 'search-compartment', compartment: 'Patient', id: 'a', type: 'Condition' } as const
    assert.deepEqual(findNamedPatients({ ...search, params: [['patient', 'b']] }, 'Condition', base), ['a'])
  })

  for (const [type, query, expected] of [
    ['Condition', 'code=x&patient=a,Patient/b', ['a', 'b']],
    ['Condition', `subject=${base}/Patient/a`, ['a']],
    ['Condition', 'subject:Patient=a', ['a']],
    ['Condition', 'patient=a&patient=b', ['a']],
    ['Patient', '_id=a,b', ['a', 'b']],
  ] as const)
    it(`are ${expected} for ${type}?${query}`, () => assert.deepEqual(named(type, query), expected))

  for (const [type, query] of [
    ['Condition', ''],
    ['Condition', '_id=a'],
    ['Condition', 'asserter=Patient/a'],
    ['Condition', 'subject=Group/a'],
    ['Condition', 'subject=Patient/a,Group/b'],
    ['Condition', 'patient:identifier=a'],
    ['Condition', 'patient.name=a'],
    ['Condition', 'patient=http://elsewhere.test/Patient/a'],
    ['Condition', 'patient='],
    ['Patient', 'patient=a'],
    ['Patient', 'general-practitioner=a'],
  ] as const)
    it(`are none for ${type}?${query}`, () => assert.equal(named(type, query), undefined))
})
