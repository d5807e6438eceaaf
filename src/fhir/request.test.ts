import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { getAuthorizationHeader } from './request.ts'

describe('getAuthorizationHeader', () => {
  it('returns the header in any case of its name', () => {
    assert.equal(getAuthorizationHeader(['Host', 'a', 'Authorization', 'Bearer x']), 'Bearer x')
    assert.equal(getAuthorizationHeader(['AUTHORIZATION', 'Bearer x']), 'Bearer x')
  })

  it('joins several headers, so that none is read as a token', () => {
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
