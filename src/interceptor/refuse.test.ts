import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
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
    assert.deepEqual(describeRefusal({ kind: 'no-bearer' }), [
      401,
      'login',
      'Missing or non-Bearer Authorization header. All FHIR requests need a SMART access token.',
      { 'www-authenticate': 'Bearer' },
      undefined,
      undefined,
      undefined,
    ])
    assert.deepEqual(describeRefusal({ kind: 'bad-token', check: 'not-a-jwt', why: 'it is not a JWT' }), [
      401,
      'login',
      'The access token is not valid on this FHIR server.',
      INVALID,
      'The token is not accepted: it is not a JWT.',
      'it is not a JWT',
      undefined,
    ])
    assert.deepEqual(describeRefusal({ kind: 'expired-token' }), [
      401,
      'expired',
      'The access token has expired.',
      INVALID,
      undefined,
      undefined,
      undefined,
    ])
    assert.deepEqual(describeRefusal({ kind: 'no-keys' }), [
      503,
      'transient',
      'The access token cannot be verified yet: no key set.',
      { 'retry-after': '2' },
      undefined,
      undefined,
      undefined,
    ])
    assert.deepEqual(describeRefusal({ kind: 'broken' }), [
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
      kind: 'insufficient-scope',
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

  it('says only that a request is outside the grant, with a hint (ERROR-1, ERROR-4)', () => {
    const text = 'Not within the granted patient, user or filter.'
    assert.deepEqual(describeRefusal({ kind: 'not-within', hint: 'Because' }), [
      403,
      'forbidden',
      text,
      {},
      'Because',
      undefined,
      undefined,
    ])
    assert.equal('by' in refuse({ kind: 'not-within', hint: 'Because' }), false)
    assert.equal(
      describeRefusal({ kind: 'not-within', hint: 'Because', by: 'patient/*.r' })[6],
      'patient/*.r',
    )
  })

  it('lists the methods of a URL', () => {
    const refusal = { kind: 'misunderstood', status: 405, text: 'No', allow: ['GET', 'HEAD'] } as const
    assert.deepEqual(refuse(refusal).headers, { allow: 'GET, HEAD' })
  })

  it('says why a request cannot be read', () => {
    for (const [status, code] of [
      [400, 'invalid'],
      [404, 'not-supported'],
      [405, 'not-supported'],
      [415, 'not-supported'],
    ] as const)
      assert.deepEqual(describeRefusal({ kind: 'misunderstood', status, text: 'Cannot read it' }), [
        status,
        code,
        'Cannot read it.',
        {},
        undefined,
        undefined,
        undefined,
      ])
  })
})
