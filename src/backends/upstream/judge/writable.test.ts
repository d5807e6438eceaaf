import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { fullAccess } from '../../../smart/index.ts'
import { condition, patientAccess } from '../../sqlite/testing/fhir.ts'
import type { Call } from '../call.ts'
import { bodyOf } from './writable.ts'

const read = (body: unknown, access = fullAccess, id?: string) =>
  bodyOf({ body, access } as Call, 'u', 'Condition', id)
const problemOf = (...asked: Parameters<typeof read>) => {
  const found = read(...asked)
  return 'problem' in found ? found.problem : undefined
}

describe('the body of a write', () => {
  const invalid = { ...condition('c', 'ann'), onsetDateTime: 'yesterday' }

  it('must be valid where it is judged, and is left to the upstream where it is not', () => {
    assert.equal(problemOf(invalid, patientAccess('ann')), 'invalid-resource')
    assert.equal(read(invalid), invalid)
  })

  it('is of the type and under the id of the address, whoever writes', () => {
    for (const access of [fullAccess, patientAccess('ann')]) {
      assert.notEqual(problemOf({ resourceType: 'Patient', id: 'c' }, access), undefined)
      assert.notEqual(problemOf(condition('other', 'ann'), access, 'c'), undefined)
      assert.equal(problemOf(condition('c', 'ann'), access, 'c'), undefined)
    }
  })
})
