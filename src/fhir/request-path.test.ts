import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isId, parsePath } from './request-path.ts'

describe('isId', () => {
  it('accepts the ids of FHIR, but not dot segments', () => {
    for (const id of ['1', 'a-b.C', '...', 'a'.repeat(64)]) assert.equal(isId(id), true, id)
    for (const id of ['', '.', '..', 'a_b', 'a b', 'a'.repeat(65)]) assert.equal(isId(id), false, id)
  })
})

describe('parsePath', () => {
  it('splits a path at its slashes', () => {
    assert.deepEqual(parsePath('/Patient/1/$everything'), ['Patient', '1', '$everything'])
    for (const path of ['', '/']) assert.deepEqual(parsePath(path), [])
  })

  it('refuses paths that a proxy might read differently', () => {
    for (const path of [
      'Patient/1',
      '/Patient/',
      '//Patient',
      '/Patient/..',
      '/./Patient',
      '/Patient%2f1',
      '/a;b',
    ])
      assert.equal('status' in parsePath(path), true, path)
  })
})
