import assert from 'node:assert/strict'
import { createPublicKey, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto'
import { describe, it } from 'node:test'
import { CompactSign, calculateJwkThumbprint, jwtVerify } from 'jose'
import { rsaPair } from '../../test/support/rsa-pair.ts'
import {
  type Algorithm,
  computeThumbprint,
  decodeJwt,
  MAX_RSA_KEY_BITS,
  readKeySet,
  signJwt,
  type VerificationKey,
  verifySignature,
  verifySignatureInThread,
} from './index.ts'

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

const rsa = rsaPair(0).privateKey
const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
const p384 = generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey
const PRIVATE_KEYS: Readonly<Record<Algorithm, KeyObject>> = {
  RS256: rsa,
  RS384: rsa,
  PS256: rsa,
  ES256: p256,
  ES384: p384,
}
const ALGORITHMS = ['RS256', 'RS384', 'PS256', 'ES256', 'ES384'] as const
const toJwk = (privateKey: KeyObject, more: object = {}) => ({
  ...createPublicKey(privateKey).export({ format: 'jwk' }),
  kid: 'k',
  ...more,
})

function toVerificationKey(alg: Algorithm): VerificationKey {
  const [key] = readKeySet({ keys: [toJwk(PRIVATE_KEYS[alg])] }, [alg]) ?? []
  assert.ok(key)
  return key
}

/** Verifies in this thread and in another one, with the same result. */
async function verify(token: string, key: VerificationKey): Promise<boolean> {
  const jwt = decodeJwt(token)
  if (!jwt) return false
  const isGenuine = verifySignature(jwt, key)
  assert.equal(await verifySignatureInThread(jwt, key), isGenuine)
  return isGenuine
}

describe('decodeJwt', () => {
  const [header, claims] = [encode({ alg: 'RS256' }), encode({ sub: 'ä' })]

  it('decodes header, claims, signed octets and signature', () => {
    assert.deepEqual(decodeJwt(`${header}.${claims}.c2ln`), {
      header: { alg: 'RS256' },
      claims: { sub: 'ä' },
      input: Buffer.from(`${header}.${claims}`),
      signature: Buffer.from('sig'),
    })
  })

  it('returns undefined for anything but three base64url parts with JSON objects in UTF-8', () => {
    const latin1 = Buffer.from('{"a":"\xff"}', 'latin1').toString('base64url')
    for (const token of [
      '',
      header,
      `${header}.${claims}`,
      `${header}.${claims}.`,
      `${header}.${claims}.c2ln.c2ln`,
      `${header}.${claims}.c2=n`,
      `${header}.${claims}.c2ln\n`,
      ` ${header}.${claims}.c2ln`,
      `${encode([])}.${claims}.c2ln`,
      `${encode(null)}.${claims}.c2ln`,
      `${header}.${encode('x')}.c2ln`,
      `${header}.${encode(5)}.c2ln`,
      `${header}.${encode([1])}.c2ln`,
      `${header}.${latin1}.c2ln`,
      `${latin1}.${claims}.c2ln`,
      `${header}.e30x.c2ln`,
      `e30x.${claims}.c2ln`,
    ])
      assert.equal(decodeJwt(token), undefined, token)
  })
})

describe('signJwt and verifySignature', () => {
  for (const alg of ALGORITHMS)
    it(`sign and verify ${alg} as jose does`, async () => {
      const token = await signJwt({ alg, typ: 'JWT', kid: 'k' }, { sub: 'ü' }, PRIVATE_KEYS[alg])
      const { payload, protectedHeader } = await jwtVerify(token, createPublicKey(PRIVATE_KEYS[alg]))
      assert.deepEqual([protectedHeader, payload], [{ alg, typ: 'JWT', kid: 'k' }, { sub: 'ü' }])
      const theirs = await new CompactSign(Buffer.from('{"sub":"ü"}'))
        .setProtectedHeader({ alg, kid: 'k' })
        .sign(PRIVATE_KEYS[alg])
      const key = toVerificationKey(alg)
      assert.deepEqual([await verify(token, key), await verify(theirs, key)], [true, true])
    })

  it('reject every signature of another algorithm, key or content', async () => {
    for (const alg of ALGORITHMS) {
      const token = await signJwt({ alg, typ: 'JWT', kid: 'k' }, {}, PRIVATE_KEYS[alg])
      for (const other of ALGORITHMS)
        assert.equal(
          await verify(token, toVerificationKey(other)),
          other === alg,
          `${alg} with a key for ${other}`,
        )
      const [header = '', claims = '', signature = ''] = token.split('.')
      const key = toVerificationKey(alg)
      for (const changed of [
        `${header}.${encode({ sub: 'other' })}.${signature}`,
        `${encode({ alg, typ: 'at+jwt', kid: 'k' })}.${claims}.${signature}`,
        ...['none', 'HS256', 'RS512', alg.toLowerCase(), undefined, [alg]].map(
          it => `${encode({ alg: it, typ: 'JWT', kid: 'k' })}.${claims}.${signature}`,
        ),
      ])
        assert.equal(await verify(changed, key), false, changed)
      for (const length of [1, 2, 63, 64, 65, 96, 255, 256, 257, 1_000])
        assert.equal(
          await verify(`${header}.${claims}.${randomBytes(length).toString('base64url')}`, key),
          false,
        )
    }
  })

  it('reject a signature with the salt of another length, and one in DER', async () => {
    const { sign, constants } = await import('node:crypto')
    const input = `${encode({ alg: 'PS256', kid: 'k' })}.${encode({})}`
    const padding = constants.RSA_PKCS1_PSS_PADDING
    const salted = sign('sha256', Buffer.from(input), { key: rsa, padding, saltLength: 20 })
    assert.equal(await verify(`${input}.${salted.toString('base64url')}`, toVerificationKey('PS256')), false)
    const elliptic = `${encode({ alg: 'ES256', kid: 'k' })}.${encode({})}`
    const der = sign('sha256', Buffer.from(elliptic), p256)
    assert.equal(await verify(`${elliptic}.${der.toString('base64url')}`, toVerificationKey('ES256')), false)
  })
})

describe('readKeySet', () => {
  const jwk = toJwk(rsa)
  const readKids = (...keys: unknown[]) =>
    readKeySet({ keys }, ['RS256'])?.map(({ kid, algorithms }) => [kid, ...algorithms])

  it('reads the keys that may verify one of the algorithms', () => {
    assert.deepEqual(
      readKids(jwk, { ...jwk, kid: 'l', use: 'sig', alg: 'RS256' }, { ...jwk, key_ops: ['verify'] }),
      [
        ['k', 'RS256'],
        ['l', 'RS256'],
        ['k', 'RS256'],
      ],
    )
    const keys = [jwk, { ...jwk, alg: 'PS256' }, toJwk(p256), toJwk(p384), toJwk(p384, { alg: 'ES256' })]
    assert.deepEqual(
      readKeySet({ keys }, ALGORITHMS)?.map(key => key.algorithms),
      [['RS256', 'RS384', 'PS256'], ['PS256'], ['ES256'], ['ES384']],
    )
  })

  it('holds the public part only', () => {
    const keys = [{ ...rsa.export({ format: 'jwk' }), kid: 'k' }]
    assert.deepEqual(
      readKeySet({ keys }, ['RS256'])?.map(key => key.publicKey.type),
      ['public'],
    )
  })

  it('reads RSA keys of up to 8192 bits (CLIENT-6)', () => {
    const modulus = (first: number, bytes: number) => {
      const n = Buffer.alloc(bytes, 0xff)
      n[0] = first
      return { ...jwk, n: n.toString('base64url') }
    }
    assert.deepEqual(readKids(modulus(0xff, 1024)), [['k', 'RS256']])
    assert.deepEqual(readKids(modulus(0x01, 1025)), [])
  })

  it('reads RSA keys with an exponent of up to 64 bits, because a longer one makes a verification slow (CLIENT-6)', () => {
    const exponent = (bytes: number) => ({ ...jwk, e: Buffer.alloc(bytes, 0xff).toString('base64url') })
    assert.deepEqual(readKids(exponent(8)), [['k', 'RS256']])
    for (const bytes of [9, 255]) assert.deepEqual(readKids(exponent(bytes)), [])
  })

  it('ignores every other key', () => {
    const small = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey
    const large = { ...jwk, n: Buffer.alloc(MAX_RSA_KEY_BITS / 8 + 1, 0xff).toString('base64url') }
    for (const other of [
      { ...jwk, use: 'enc' },
      { ...jwk, alg: 'RS512' },
      { ...jwk, alg: 'PS256' },
      { ...jwk, key_ops: ['sign'] },
      { ...jwk, key_ops: 'verify' },
      { ...jwk, kty: 'EC' },
      { ...jwk, kty: undefined },
      { ...jwk, kid: undefined },
      { ...jwk, kid: '' },
      { ...jwk, kid: 5 },
      { ...jwk, n: undefined },
      { ...jwk, n: 5 },
      { ...jwk, e: undefined },
      { ...jwk, e: 5 },
      { ...jwk, n: '', e: '' },
      toJwk(small),
      large,
      toJwk(p256),
      { kty: 'oct', k: 'c2VjcmV0', kid: 'k' },
      null,
      'x',
      5,
    ])
      assert.deepEqual(
        readKids(other, { ...jwk, kid: 'after' }),
        [['after', 'RS256']],
        JSON.stringify(other)?.slice(0, 80),
      )
  })

  it('returns undefined for a document that is not a JWK Set', () => {
    for (const document of [undefined, null, 'x', 5, [], {}, { keys: 'x' }, { keys: { 0: jwk, length: 1 } }])
      assert.equal(readKeySet(document, ['RS256']), undefined)
  })
})

describe('computeThumbprint', () => {
  it('equals the thumbprint of jose', async () => {
    const { kty = '', n = '', e = '' } = createPublicKey(rsa).export({ format: 'jwk' })
    assert.equal(computeThumbprint({ kty, n, e }), await calculateJwkThumbprint({ kty, n, e }))
    const { crv = '', x = '', y = '' } = createPublicKey(p384).export({ format: 'jwk' })
    assert.equal(
      computeThumbprint({ kty: 'EC', crv, x, y }),
      await calculateJwkThumbprint({ kty: 'EC', crv, x, y }),
    )
  })
})
