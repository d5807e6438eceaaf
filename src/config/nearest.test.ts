import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { nearest } from './nearest.ts'

describe('nearest', () => {
  const names = ['SMART_BIND', 'SMART_SECRET', 'SMART_ISSUER_URL']

  it('finds the name that was meant', () => {
    assert.equal(nearest('SMART_BNID', names), 'SMART_BIND')
    assert.equal(nearest('smart_secret', names), 'SMART_SECRET')
  })

  it('guesses nothing far-fetched', () => {
    assert.equal(nearest('SMART_TEAPOT_COLOUR', names), undefined)
    assert.equal(nearest('x', []), undefined)
  })
})
