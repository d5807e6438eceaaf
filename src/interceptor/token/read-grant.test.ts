import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { fhirBaseUrl } from '../testing/test-issuer.ts'
import { readGrant } from './read-grant.ts'

describe('grantOf', () => {
  it('reads scopes, patient, user, subject, client and token id', () => {
    const { scopes, ...grant } = readGrant(
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

  it('ignores a claim that cannot be read', () => {
    const nobody = { scopes: [] }
    assert.deepEqual(readGrant({}, fhirBaseUrl), nobody)
    for (const patient of [5, null, '', '..', 'a b', 'Patient/1', ['1'], 'a'.repeat(65)])
      assert.deepEqual(readGrant({ patient }, fhirBaseUrl), nobody, String(patient))
    for (const fhirUser of [
      5,
      null,
      '',
      'Practitioner',
      'http://other.test/Practitioner/2',
      'Device/2',
      'Group/2',
    ])
      assert.deepEqual(readGrant({ fhirUser }, fhirBaseUrl), nobody, String(fhirUser))
    assert.deepEqual(readGrant({ sub: 5, client_id: null, jti: ['x'], scope: 5 }, fhirBaseUrl), nobody)
  })

  it('accepts every user type of FHIR, and ignores the version', () => {
    for (const type of ['Practitioner', 'PractitionerRole', 'Patient', 'RelatedPerson', 'Person'])
      assert.deepEqual(readGrant({ fhirUser: `${type}/2/_history/3` }, fhirBaseUrl).fhirUser, {
        type,
        id: '2',
      })
  })
})
