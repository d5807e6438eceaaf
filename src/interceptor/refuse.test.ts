import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { failFor } from '../fhir/index.ts'
import { type Refusal, refuse } from './refuse.ts'

function describeRefusal(refusal: Refusal): readonly unknown[] {
  const { status, headers, outcome, hint, why, by } = refuse(refusal)
  const [issue] = outcome.issue
  const { text = '' } = issue?.details ?? {}
  const expected = hint === undefined ? text : `${text.replace(/\.$/, '')}. ${hint}`
  assert.equal(issue?.diagnostics, expected)
  return [status, issue?.code, issue?.details.text, headers, hint, why, by]
}

describe('refuse', () => {
  it('has the specified texts, and keeps the reason for the audit trail', () => {
    const INVALID = { 'www-authenticate': 'Bearer error="invalid_token"' }
    assert.deepEqual(describeRefusal({ reason: 'no-bearer' }), [
      401,
      'login',
      'Missing or non-Bearer Authorization header. All FHIR requests need a SMART access token.',
      { 'www-authenticate': 'Bearer' },
      undefined,
      undefined,
      undefined,
    ])
    assert.deepEqual(describeRefusal({ reason: 'token-not-a-jwt' }), [
      401,
      'login',
      'The access token is not valid on this FHIR server.',
      INVALID,
      'The token is not accepted: it is not a JWT.',
      undefined,
      undefined,
    ])
    assert.deepEqual(describeRefusal({ reason: 'expired-token' }), [
      401,
      'expired',
      'The access token has expired.',
      INVALID,
      undefined,
      undefined,
      undefined,
    ])
    assert.deepEqual(describeRefusal({ reason: 'no-keys' }), [
      503,
      'transient',
      'The access token cannot be verified yet: no key set.',
      { 'retry-after': '2' },
      undefined,
      undefined,
      undefined,
    ])
    assert.deepEqual(describeRefusal({ reason: 'broken' }), [
      500,
      'exception',
      'The request could not be checked, so it was refused.',
      {},
      undefined,
      undefined,
      undefined,
    ])
  })

  it('names the scopes that would permit the request', () => {
    const insufficient = {
      reason: 'insufficient-scope',
      method: 'GET',
      type: 'Condition',
      missing: [],
    } as const
    assert.deepEqual(describeRefusal({ ...insufficient, permission: 'r', contexts: ['patient', 'user'] }), [
      403,
      'forbidden',
      'Insufficient scope for GET on Condition. Required: patient/Condition.r or patient/*.rs',
      { 'www-authenticate': 'Bearer error="insufficient_scope", scope="patient/Condition.r"' },
      'Any one of these scopes would permit it: patient/Condition.r, patient/*.rs, user/Condition.r, user/*.rs',
      undefined,
      undefined,
    ])
    assert.equal(
      describeRefusal({ ...insufficient, permission: 'r', contexts: ['patient'], ignored: ['user'] })[4],
      'This server accepts no user/ scopes. Any one of these scopes would permit it: patient/Condition.r, patient/*.rs',
    )
    for (const [permission, wide] of [
      ['s', 'patient/*.rs'],
      ['c', 'patient/*.c'],
      ['u', 'patient/*.u'],
      ['d', 'patient/*.d'],
    ] as const)
      assert(
        String(describeRefusal({ ...insufficient, permission, contexts: [] })[2]).endsWith(`or ${wide}`),
        permission,
      )
  })

  it('names the scopes of all types that a search uses', () => {
    const make = (type: string) => ({
      reason: 'insufficient-scope' as const,
      method: 'GET' as const,
      type,
      permission: 's' as const,
      contexts: ['patient'] as const,
      missing: [],
    })
    const log = { ...make('AuditEvent'), reason: 'insufficient-scope-for-protected' as const }
    const { headers, hint, scopes } = refuse({ ...make('Observation'), others: [make('Encounter'), log] })
    assert.deepEqual(scopes, ['patient/Observation.s', 'patient/Encounter.s', 'system/AuditEvent.s'])
    // The first scope that the text names, as for every other request.
    assert.equal(
      headers['www-authenticate'],
      'Bearer error="insufficient_scope", scope="patient/Observation.s"',
    )
    assert.equal(
      hint,
      'Any one of these scopes would permit it: patient/Observation.s, patient/*.rs. The search also uses: patient/Encounter.s, system/AuditEvent.s',
    )
  })

  it('says only that a request is outside the grant, with a hint (ERROR-1, ERROR-4)', () => {
    const text = 'Not within the granted patient, user or filter.'
    assert.deepEqual(describeRefusal(failFor('stored-not-within')), [
      403,
      'forbidden',
      text,
      {},
      'The stored resource is not within the grant',
      undefined,
      undefined,
    ])
    assert.equal('by' in refuse(failFor('stored-not-within')), false)
    assert.equal(describeRefusal({ ...failFor('stored-not-within'), by: 'patient/*.r' })[6], 'patient/*.r')
  })

  it('lists the methods of a URL', () => {
    const refusal = { reason: 'method-not-allowed', allow: ['GET', 'HEAD'] } as const
    assert.deepEqual(refuse(refusal).headers, { allow: 'GET, HEAD' })
  })

  it('says why a request cannot be read', () => {
    for (const [status, code, reason, text] of [
      [400, 'invalid', 'version-id-malformed', 'Cannot read version id.'],
      [404, 'not-supported', 'url-unknown', 'Cannot find this URL on the FHIR server.'],
      [405, 'not-supported', 'method-not-allowed', 'Cannot process this method at this URL.'],
      [
        415,
        'not-supported',
        'search-body-not-a-form',
        'Cannot search: the body of _search is application/x-www-form-urlencoded.',
      ],
    ] as const)
      assert.deepEqual(describeRefusal({ reason }), [status, code, text, {}, undefined, undefined, undefined])
  })
})
