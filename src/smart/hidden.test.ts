import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { CurrentVersion } from '../fhir/index.ts'
import { type Access, type AccessFilter, failHidden, findUpdateConflict } from './index.ts'

const makeAccess = (filters: Readonly<Record<string, AccessFilter>>): Access => ({
  filterFor: (type, permission) => filters[`${type}.${permission}`] ?? [],
})

describe('failHidden', () => {
  const access = makeAccess({ 'Patient.r': [{ patient: '1' }], 'Condition.r': [{ patient: '1' }] })

  it('names a resource that the grant itself names', () => {
    assert.partialDeepStrictEqual(failHidden(access, 'r', 'Patient', '1'), {
      problem: 'absent',
      type: 'Patient',
      id: '1',
    })
  })

  it('gives one response for resources that are absent and outside the grant', () => {
    for (const [type, id] of [
      ['Patient', '2'],
      ['Condition', 'c'],
    ] as const)
      assert.partialDeepStrictEqual(failHidden(access, 'r', type, id), { problem: 'outside-access' })
    assert.equal(failHidden(access, 'u', 'Patient', '1').problem, 'outside-access')
  })
})

describe('findUpdateConflict', () => {
  const own = makeAccess({ 'Patient.u': [{ patient: '1' }], 'Condition.u': [{ patient: '1' }] })
  const patient = { type: 'Patient', id: '1' }
  const condition = { type: 'Condition', id: 'c' }
  const before = { etag: 'W/"2"' }
  const find = (target: typeof patient, current: CurrentVersion | 'deleted' | 'absent', ifMatch?: string) =>
    findUpdateConflict(own, target, current, ifMatch === undefined ? {} : { ifMatch })?.problem

  it('is none without a precondition, or with one that holds', () => {
    for (const current of [before, 'deleted', 'absent'] as const)
      assert.equal(find(condition, current), undefined)
    assert.equal(find(condition, before, 'W/"2"'), undefined)
  })

  it('is a stale version where the caller may know of the resource', () => {
    assert.equal(find(condition, before, 'W/"1"'), 'stale')
    assert.equal(find(condition, 'deleted', 'W/"1"'), 'stale')
    assert.equal(find(patient, 'absent', 'W/"1"'), 'stale')
  })

  it('reveals no absence to a caller who may not learn of it', () => {
    assert.equal(find(condition, 'absent', 'W/"1"'), 'outside-access')
    assert.equal(find({ type: 'Patient', id: '2' }, 'absent', 'W/"1"'), 'outside-access')
  })
})
