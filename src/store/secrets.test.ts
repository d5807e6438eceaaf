import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createRandomToken, isSameText, sha256 } from './index.ts'

describe('sha256', () => {
  it('returns the digest as base64url', () => {
    // FIPS 180-2, B.1: "abc".
    assert.equal(
      Buffer.from(sha256('abc'), 'base64url').toString('hex'),
      'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
    )
  })
})

describe('randomToken', () => {
  it('is 32 bytes as 43 characters of base64url (LAUNCH-5)', () => {
    const token = createRandomToken()
    assert.match(token, /^[\w-]{43}$/)
    assert.equal(Buffer.from(token, 'base64url').length, 32)
  })

  it('never repeats', () => {
    assert.equal(new Set(Array.from({ length: 1000 }, createRandomToken)).size, 1000)
  })
})

describe('sameText', () => {
  it('is true only for equal texts of any length', () => {
    assert.equal(isSameText('secret', 'secret'), true)
    assert.equal(isSameText('secret', 'secreT'), false)
    assert.equal(isSameText('secret', 'secret2'), false)
    assert.equal(isSameText('', 'x'), false)
    assert.equal(isSameText('', ''), true)
  })
})
