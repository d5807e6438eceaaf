import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { fail, type Permission, type Resource } from '../fhir/index.ts'
import { checkPatch } from './index.ts'

const stored: Resource = { resourceType: 'Observation', id: 'o', status: 'final' }
const result: Resource = { ...stored, status: 'amended' }
const replace = [{ op: 'replace', path: '/status', value: 'amended' }]
const test = [{ op: 'test', path: '/status', value: 'final' }, ...replace]
const malformed = fail({ problem: 'malformed-body', text: 'no patch' })
const failed = fail({ problem: 'unusable-patch', text: 'status is final' })

/** Lists what a caller may do, as `r:stored`. */
const reaching =
  (...reached: string[]) =>
  (permission: Permission, resource: Resource) =>
    reached.includes(`${permission}:${resource === stored ? 'stored' : 'result'}`)

describe('checkPatch', () => {
  const reader = reaching('r:stored')

  it('lets a caller who may read the resource test it, and learn why the patch fails', () => {
    assert.equal(checkPatch(test, stored, result, reader), undefined)
    assert.equal(checkPatch(test, stored, failed, reader), failed)
  })

  it('lets a caller who may not read the resource replace elements', () => {
    assert.equal(checkPatch(replace, stored, result, reaching()), undefined)
    assert.equal(checkPatch(replace, stored, result, reaching('s:stored')), undefined)
  })

  it('refuses a patch that reads the resource to a caller who may not', () => {
    for (const outcome of [result, failed])
      assert.equal(checkPatch(test, stored, outcome, reaching())?.problem, 'outside-access')
  })

  it('tells a caller who may not read the resource why a patch fails only if the patch itself is malformed', () => {
    assert.equal(checkPatch(replace, stored, malformed, reaching()), malformed)
    const hidden = checkPatch(replace, stored, failed, reaching())
    assert.partialDeepStrictEqual(hidden, { problem: 'unusable-patch', text: 'Cannot apply patch' })
  })

  for (const reached of ['r:result', 's:result'])
    it(`refuses a patch that makes a hidden resource readable by ${reached[0]}`, () =>
      assert.equal(checkPatch(replace, stored, result, reaching(reached))?.problem, 'outside-access'))
})
