import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Grant, grantFingerprint, parseScopes } from './index.ts'

const grant: Grant = {
  scopes: parseScopes('patient/Condition.rs patient/Patient.rs'),
  patient: '1',
  fhirUser: { type: 'Practitioner', id: 'p' },
  subject: 'c-1',
  clientId: 'app',
  tokenId: 'j-1',
}

describe('grantFingerprint', () => {
  it('is the same for every token of a grant (ABSENT-8)', () => {
    const { scopes } = grant
    const renewed: Grant = { ...grant, tokenId: 'j-2', scopes: scopes.toReversed() }
    assert.equal(grantFingerprint(renewed), grantFingerprint(grant))
    assert.equal(grantFingerprint(grant), grantFingerprint(grant))
    assert.match(grantFingerprint(grant), /^[\w-]{43}$/)
  })

  it('differs between users, clients, patients and sets of scopes', () => {
    const { patient: _, ...nobody } = grant
    const others: readonly Grant[] = [
      grant,
      nobody,
      { ...grant, patient: '2' },
      { ...grant, subject: 'c-2' },
      { ...grant, clientId: 'other' },
      { ...grant, fhirUser: { type: 'Practitioner', id: 'q' } },
      { ...grant, scopes: parseScopes('patient/Condition.rs') },
      { ...grant, scopes: parseScopes('patient/Condition.rs patient/Patient.rs openid') },
    ]
    assert.equal(new Set(others.map(grantFingerprint)).size, others.length)
  })

  it('is empty without a grant', () => assert.equal(grantFingerprint(undefined), ''))
})
