import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isLoopbackHost, isLoopbackUrl } from './derive.ts'

describe('isLoopbackHost', () => {
  for (const host of [
    'localhost',
    'LOCALHOST',
    'auth.localhost',
    '127.0.0.1',
    '127.9.9.9',
    '::1',
    '[::1]',
    '::ffff:127.0.0.1',
    '[::ffff:7f00:1]',
  ]) {
    it(`is true for ${host} (SETTING-6)`, () => assert.equal(isLoopbackHost(host), true))
  }

  for (const host of [
    '0.0.0.0',
    '::',
    '10.0.0.1',
    '128.0.0.1',
    'localhost.example',
    '127.0.0.1.example',
    'mylocalhost',
    '::2',
    // 7.241.0.1 and 0.0.0.127: groups omit leading zeros.
    '::ffff:7f1:1',
    '::ffff:7f',
    '',
  ]) {
    it(`is false for ${host || 'an empty text'}`, () => assert.equal(isLoopbackHost(host), false))
  }
})

describe('isLoopbackUrl', () => {
  it('checks only the host, in any notation', () => {
    assert.equal(isLoopbackUrl('http://0x7f.1:8080/fhir'), true)
    assert.equal(isLoopbackUrl('https://[::1]/x'), true)
    assert.equal(isLoopbackUrl('https://ehr.example/localhost'), false)
  })
})
