import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findNearest } from './find-nearest.ts'

describe('nearest', () => {
  const names = ['SMART_BIND', 'SMART_SECRET', 'SMART_ISSUER_URL']

  it('finds the name that was meant', () => {
    assert.equal(findNearest('SMART_BNID', names), 'SMART_BIND')
    assert.equal(findNearest('smart_secret', names), 'SMART_SECRET')
  })

  it('guesses nothing far-fetched', () => {
    assert.equal(findNearest('SMART_TEAPOT_COLOUR', names), undefined)
    assert.equal(findNearest('x', []), undefined)
  })
})
