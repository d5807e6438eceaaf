import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { PORTAL_CLIENT } from '../../smart/index.ts'
import { fhirBaseUrl } from '../testing/test-issuer.ts'
import { readTrustedGrant, type TrustedIssuer } from './verifier.ts'

const trusted: TrustedIssuer = { issuer: 'http://other.test', jwksUrl: 'http://other.test/jwks' }
const readGrant = (claims: Readonly<Record<string, unknown>>, more: Partial<TrustedIssuer> = {}) =>
  readTrustedGrant(claims, { ...trusted, ...more }, fhirBaseUrl)

describe('readTrustedGrant', () => {
  it('reads the claims by their SMART names by default', () => {
    const claims = { scope: 'patient/*.rs', patient: 'Patient/1', fhirUser: 'Practitioner/2' }
    const { scopes, ...grant } = readGrant({ ...claims, client_id: 'app', sub: 's' })
    assert.deepEqual(grant, {
      patient: '1',
      fhirUser: { type: 'Practitioner', id: '2' },
      subject: 's',
      issuer: 'http://other.test',
      clientId: 'app',
    })
    assert.equal(scopes[0]?.text, 'patient/*.rs')
    assert.equal('clientId' in readGrant(claims), false)
    assert.equal('clientId' in readGrant({ ...claims, client_id: PORTAL_CLIENT }), false)
    assert.equal('userPatients' in readGrant({ ...claims, user_patients: ['1'] }), false)
    const forged = readGrant({
      ...claims,
      client_id: PORTAL_CLIENT,
      audit: { address: '1.2.3.4', note: 'n' },
    })
    assert.equal('address' in forged || 'note' in forged, false)
  })

  it('reads nested claims, and claims whose names are URLs', () => {
    const names = { patientClaim: 'https://a.test/p', fhirUserClaim: 'ext.user', scopeClaim: 'ext.in.scope' }
    const ext = { user: 'Practitioner/2', in: { scope: ['user/*.rs'] } }
    const grant = readGrant({ 'https://a.test/p': '1', ext }, names)
    assert.deepEqual([grant.patient, grant.fhirUser?.id, grant.scopes[0]?.text], ['1', '2', 'user/*.rs'])
  })

  it('finds nothing if there is no such claim', () => {
    for (const [patientClaim, claims] of [
      ['ext.patient', {}],
      ['ext.patient', { ext: null }],
      ['ext.patient', { ext: 5 }],
      ['ext.0', { ext: 'abc' }],
      ['ext.constructor.name', { ext: {} }],
      ['ext.in.patient', { ext: { in: null } }],
    ] as const)
      assert.equal('patient' in readGrant(claims, { patientClaim }), false, patientClaim)
  })
})
