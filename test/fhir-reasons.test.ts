import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createRecords } from '../src/audit-record/index.ts'
import { explainReason } from '../src/auth/words/explanation.ts'
import { FHIR_REASONS } from '../src/auth/words/fhir.ts'
import { type Refusal, refuse, type TokenCheck } from '../src/interceptor/refuse.ts'

type Kind = Refusal['kind']
/** Explained by the scopes of the token, or by the text about the request. */
type ByRequest = 'insufficient-scope' | 'not-within' | 'misunderstood' | 'unsupported-operation'
type Reason = Exclude<Kind, ByRequest | 'bad-token'> | `token-${TokenCheck}`

const fail = (check: TokenCheck): Refusal => ({ kind: 'bad-token', check, why: 'a text that nobody reads' })

/** The compiler finds a reason of the interceptor that is not here, and one without words. */
const REFUSALS: Readonly<Record<Reason & keyof typeof FHIR_REASONS, Refusal>> &
  Readonly<Record<Reason, Refusal>> = {
  'no-bearer': { kind: 'no-bearer' },
  'expired-token': { kind: 'expired-token' },
  'no-keys': { kind: 'no-keys' },
  'no-configuration': { kind: 'no-configuration' },
  'no-trail': { kind: 'no-trail' },
  broken: { kind: 'broken' },
  'token-not-a-jwt': fail('not-a-jwt'),
  'token-too-long': fail('too-long'),
  'token-header-wrong': fail('header-wrong'),
  'token-typ-wrong': fail('typ-wrong'),
  'token-iss-wrong': fail('iss-wrong'),
  'token-aud-wrong': fail('aud-wrong'),
  'token-times-wrong': fail('times-wrong'),
  'token-key-unknown': fail('key-unknown'),
  'token-signature-wrong': fail('signature-wrong'),
  'token-scopes-too-many': fail('scopes-too-many'),
  'token-revoked': fail('revoked'),
}

describe('the reasons of the FHIR server', () => {
  it('are those that the auth server has words for', () => {
    assert.deepEqual(Object.keys(REFUSALS).toSorted(), Object.keys(FHIR_REASONS).toSorted())
  })

  for (const [reason, refusal] of Object.entries(REFUSALS))
    it(`${reason} is in the audit record, and is explained (ACTIVITY-4)`, () => {
      const refused = refuse(refusal)
      const interaction = { kind: 'read', type: 'Patient', id: '1', params: [] } as const
      const problem = { problem: 'refused', refused }
      const request = {
        at: 1,
        method: 'GET',
        address: 'Patient/1',
        interaction,
        status: refused.status,
        problem,
      } as const
      const [{ details }] = createRecords(request, 'http://localhost:8080/fhir')
      assert.deepEqual(details, { reason })
      assert(explainReason({ reason }))
      assert.equal(FHIR_REASONS[reason as Reason].status, refused.status)
    })
})
