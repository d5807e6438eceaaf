import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { fhirBaseUrl } from '../testing/auth-server.ts'
import { grantOf } from './grant-of.ts'

describe('grantOf', () => {
  it('is what the claims say', () => {
    const { scopes, ...grant } = grantOf(
      {
        ...{ scope: 'openid patient/*.rs', patient: '1', fhirUser: `${fhirBaseUrl}/Practitioner/2` },
        ...{ sub: 'c-1', client_id: 'app', jti: 'g.t' },
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

  it('names nobody where a claim cannot be read', () => {
    const nobody = { scopes: [] }
    assert.deepEqual(grantOf({}, fhirBaseUrl), nobody)
    for (const patient of [5, null, '', '..', 'a b', 'Patient/1', ['1'], 'a'.repeat(65)])
      assert.deepEqual(grantOf({ patient }, fhirBaseUrl), nobody, String(patient))
    for (const fhirUser of [
      5,
      null,
      '',
      'Practitioner',
      'http://other.test/Practitioner/2',
      'Device/2',
      'Group/2',
    ])
      assert.deepEqual(grantOf({ fhirUser }, fhirBaseUrl), nobody, String(fhirUser))
    assert.deepEqual(grantOf({ sub: 5, client_id: null, jti: ['x'], scope: 5 }, fhirBaseUrl), nobody)
  })

  it('knows all users that FHIR has, and their version is not theirs', () => {
    for (const type of ['Practitioner', 'PractitionerRole', 'Patient', 'RelatedPerson', 'Person'])
      assert.deepEqual(grantOf({ fhirUser: `${type}/2/_history/3` }, fhirBaseUrl).fhirUser, { type, id: '2' })
  })
})
