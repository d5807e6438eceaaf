import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findNearest } from './distance.ts'

describe('findNearest', () => {
  const names = ['SMART_BIND', 'SMART_SECRET', 'SMART_ISSUER_URL']

  it('finds the intended name', () => {
    assert.equal(findNearest('SMART_BNID', names), 'SMART_BIND')
    assert.equal(findNearest('smart_secret', names), 'SMART_SECRET')
  })

  it('suggests nothing for a distant name', () => {
    assert.equal(findNearest('SMART_TEAPOT_COLOUR', names), undefined)
    assert.equal(findNearest('x', []), undefined)
  })
})
