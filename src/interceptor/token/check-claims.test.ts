import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { fill } from '../../core/index.ts'
import { getFhirWords } from '../../fhir/index.ts'
import { fhirBaseUrl } from '../testing/test-issuer.ts'
import { checkClaims, type ExpectedToken, readGrant, removeTrailingSlash } from './check-claims.ts'

const NOW = Date.UTC(2026, 0, 1)

const seconds = NOW / 1000

const expected: ExpectedToken = {
  issuer: 'http://auth.test',
  audiences: ['http://fhir.test/fhir'],
  algorithms: ['RS256'],
}

const HEADER = { alg: 'RS256', typ: 'at+jwt', kid: 'k' }

const CLAIMS = { iss: 'http://auth.test', aud: 'http://fhir.test/fhir', exp: seconds + 1 }

function fault(header: object, claims: object, more: Partial<ExpectedToken> = {}): string | undefined {
  const jwt = {
    header: { ...HEADER, ...header },
    claims: { ...CLAIMS, ...claims },
    input: Buffer.alloc(0),
    signature: Buffer.alloc(0),
  }
  const found = checkClaims(jwt, { ...expected, ...more }, NOW)
  const { hint } = found ? getFhirWords(found.reason) : {}
  return hint === undefined
    ? found?.reason
    : fill(hint, found?.facts ?? {}).replace(/^The token is not accepted: (.*)\.$/, '$1')
}

describe('checkClaims', () => {
  it('accepts an access token of our auth server', () => {
    for (const typ of ['at+jwt', 'AT+JWT', 'application/at+jwt']) assert.equal(fault({ typ }, {}), undefined)
    for (const aud of ['http://fhir.test/fhir/', ['x', 'http://fhir.test/fhir']])
      assert.equal(fault({}, { aud }), undefined)
  })

  it('requires an allowed alg, the typ of an access token and a kid, and rejects crit (BEARER-5)', () => {
    for (const alg of ['none', 'HS256', 'RS384', 'rs256', undefined])
      assert.equal(fault({ alg }, {}), 'alg is not RS256')
    assert.equal(fault({ alg: 'ES256' }, {}, { algorithms: ['RS256', 'ES256'] }), undefined)
    assert.equal(fault({ alg: 'PS256' }, {}, { algorithms: ['RS256', 'ES256'] }), 'alg is not RS256 or ES256')
    for (const typ of ['JWT', 'at+jwt ', '', undefined, 5, ['at+jwt'], 'text/at+jwt', 'x/application/at+jwt'])
      assert.equal(fault({ typ }, {}), 'typ is not at+jwt')
    assert.equal(fault({ typ: 'JWT' }, {}, { types: ['jwt', 'at+jwt'] }), undefined)
    assert.equal(fault({ typ: 'x' }, {}, { types: ['jwt', 'at+jwt'] }), 'typ is not jwt or at+jwt')
    for (const kid of [undefined, '', 5, ['k']]) assert.equal(fault({ kid }, {}), 'kid is missing')
    for (const crit of [[], ['exp'], null]) assert.equal(fault({ crit }, {}), 'crit is not understood')
  })

  it('requires the exact issuer and audience (BEARER-5)', () => {
    for (const iss of ['http://auth.test/', 'http://other.test', undefined, ['http://auth.test']])
      assert.equal(fault({}, { iss }), 'iss is not http://auth.test')
    for (const aud of [
      'http://fhir.test',
      'http://fhir.test/fhir2',
      undefined,
      [],
      [['http://fhir.test/fhir']],
      5,
    ])
      assert.equal(fault({}, { aud }), 'aud is not http://fhir.test/fhir')
    assert.equal(fault({}, { aud: 'urn:b' }, { audiences: ['urn:a', 'urn:b'] }), undefined)
  })

  it('rejects a token from exp on, and until ten seconds before nbf (BEARER-5)', () => {
    for (const exp of [undefined, '1', null, Number.POSITIVE_INFINITY])
      assert.equal(fault({}, { exp }), 'exp is missing')
    for (const exp of [seconds, seconds - 1, 0]) assert.equal(fault({}, { exp }), 'expired-token')
    assert.equal(fault({}, { exp: seconds + 0.001 }), undefined)
    for (const nbf of [seconds - 9, seconds, seconds + 10]) assert.equal(fault({}, { nbf }), undefined)
    for (const nbf of [seconds + 10.002, seconds + 11, '0', null])
      assert.equal(fault({}, { nbf }), 'nbf is to come')
  })
})

describe('removeTrailingSlash', () => {
  it('removes one slash from the end', () => {
    assert.deepEqual(['http://a/b/', 'http://a/b', '/'].map(removeTrailingSlash), [
      'http://a/b',
      'http://a/b',
      '',
    ])
  })
})

describe('readGrant', () => {
  it('reads scopes, patient, user, subject, client and token id', () => {
    const { scopes, ...grant } = readGrant(
      {
        scope: 'openid patient/*.rs',
        patient: '1',
        fhirUser: `${fhirBaseUrl}/Practitioner/2`,
        sub: 'c-1',
        client_id: 'app',
        jti: 'g.t',
      },
      fhirBaseUrl,
    )
    assert.deepEqual(
      scopes.map(it => it.text),
      ['openid', 'patient/*.rs'],
    )
    assert.deepEqual(grant, {
      patient: '1',
      fhirUser: { type: 'Practitioner', id: '2' },
      subject: 'c-1',
      clientId: 'app',
      tokenId: 'g.t',
    })
  })

  it('ignores a claim that cannot be read', () => {
    const emptyGrant = { scopes: [] }
    assert.deepEqual(readGrant({}, fhirBaseUrl), emptyGrant)
    for (const patient of [5, null, '', '..', 'a b', 'Patient/1', ['1'], 'a'.repeat(65)])
      assert.deepEqual(readGrant({ patient }, fhirBaseUrl), emptyGrant, String(patient))
    for (const fhirUser of [
      5,
      null,
      '',
      'Practitioner',
      'http://other.test/Practitioner/2',
      'Device/2',
      'Group/2',
    ])
      assert.deepEqual(readGrant({ fhirUser }, fhirBaseUrl), emptyGrant, String(fhirUser))
    assert.deepEqual(readGrant({ sub: 5, client_id: null, jti: ['x'], scope: 5 }, fhirBaseUrl), emptyGrant)
  })

  it('accepts every user type of FHIR, and ignores the version', () => {
    for (const type of ['Practitioner', 'PractitionerRole', 'Patient', 'RelatedPerson', 'Person'])
      assert.deepEqual(readGrant({ fhirUser: `${type}/2/_history/3` }, fhirBaseUrl).fhirUser, {
        type,
        id: '2',
      })
  })
})
