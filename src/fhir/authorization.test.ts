import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { authorizationOf } from './authorization.ts'

describe('authorizationOf', () => {
  it('gives the one header there is, whatever the case of its name', () => {
    assert.equal(authorizationOf(['Host', 'a', 'Authorization', 'Bearer x']), 'Bearer x')
    assert.equal(authorizationOf(['AUTHORIZATION', 'Bearer x']), 'Bearer x')
  })

  it('gives several as one list, so that neither is taken for a token', () => {
    assert.equal(
      authorizationOf(['authorization', 'Bearer x', 'Authorization', 'Bearer y']),
      'Bearer x, Bearer y',
    )
  })

  it('reads names, not values', () => {
    assert.equal(authorizationOf(['x', 'authorization', 'y', 'Bearer x']), undefined)
    assert.equal(authorizationOf([]), undefined)
  })
})
