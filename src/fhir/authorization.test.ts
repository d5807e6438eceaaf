import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { getAuthorizationHeader } from './authorization.ts'

describe('getAuthorizationHeader', () => {
  it('gives the one header there is, whatever the case of its name', () => {
    assert.equal(getAuthorizationHeader(['Host', 'a', 'Authorization', 'Bearer x']), 'Bearer x')
    assert.equal(getAuthorizationHeader(['AUTHORIZATION', 'Bearer x']), 'Bearer x')
  })

  it('gives several as one list, so that neither is taken for a token', () => {
    assert.equal(
      getAuthorizationHeader(['authorization', 'Bearer x', 'Authorization', 'Bearer y']),
      'Bearer x, Bearer y',
    )
  })

  it('reads names, not values', () => {
    assert.equal(getAuthorizationHeader(['x', 'authorization', 'y', 'Bearer x']), undefined)
    assert.equal(getAuthorizationHeader([]), undefined)
  })
})
