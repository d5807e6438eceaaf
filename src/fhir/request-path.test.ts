import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isId, parsePath } from './request-path.ts'

describe('isId', () => {
  it('knows the ids of FHIR, of which path games are none', () => {
    for (const id of ['1', 'a-b.C', '...', 'a'.repeat(64)]) assert.equal(isId(id), true, id)
    for (const id of ['', '.', '..', 'a_b', 'a b', 'a'.repeat(65)]) assert.equal(isId(id), false, id)
  })
})

describe('parsePath', () => {
  it('cuts a path at its slashes, and nothing else', () => {
    assert.deepEqual(parsePath('/Patient/1/$everything'), ['Patient', '1', '$everything'])
    for (const path of ['', '/']) assert.deepEqual(parsePath(path), [])
  })

  it('refuses what a proxy might read in another way', () => {
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
