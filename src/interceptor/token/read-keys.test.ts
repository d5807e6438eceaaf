import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { describe, it } from 'node:test'
import { StandingAuthServer } from '../testing/auth-server.ts'
import { readKeys } from './read-keys.ts'

const [key] = new StandingAuthServer().keys
const jwk = { ...key?.publicKey.export({ format: 'jwk' }), kid: 'k' }
const kids = (...keys: unknown[]) => [...readKeys({ keys }).keys()]

describe('readKeys', () => {
  it('finds the keys that may verify RS256', () => {
    assert.deepEqual(kids(jwk, { ...jwk, kid: 'l', use: 'sig', alg: 'RS256' }), ['k', 'l'])
    assert.equal(readKeys({ keys: [jwk] }).get('k')?.type, 'public')
  })

  it('passes over all others, and goes on', () => {
    const small = generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey.export({ format: 'jwk' })
    for (const other of [
      { ...jwk, use: 'enc' },
      { ...jwk, alg: 'RS512' },
      { ...jwk, kty: 'EC' },
      { ...jwk, kty: undefined },
      { ...jwk, kid: undefined },
      { ...jwk, kid: 5 },
      { ...jwk, n: undefined },
      { ...jwk, n: 5 },
      { ...jwk, e: undefined },
      { ...jwk, e: 5 },
      { ...jwk, n: '', e: '' },
      { ...small, kid: 'k' },
      { kty: 'oct', k: 'c2VjcmV0', kid: 'k' },
      null,
      'x',
      5,
    ])
      assert.deepEqual(kids(other, { ...jwk, kid: 'after' }), ['after'], JSON.stringify(other))
  })

  it('finds none in what is no key set', () => {
    for (const document of [undefined, null, 'x', 5, [], {}, { keys: 'x' }, { keys: { 0: jwk, length: 1 } }])
      assert.equal(readKeys(document).size, 0)
  })
})
