import assert from 'node:assert/strict'
import { describe, it, mock } from 'node:test'
import { createInterceptor } from './interceptor.ts'
import { applyTokenFailures } from './simulate.ts'
import { authUrl, fhirBaseUrl, TestIssuer } from './testing/test-issuer.ts'

const auth = new TestIssuer()
const interceptor = createInterceptor({ authUrl, fhirBaseUrl, fetch: auth.fetch, clock: auth.clock })
const lab = applyTokenFailures(interceptor)

describe('applyTokenFailures', () => {
  it('refuses the requests of a token that names a failure, and marks the response (LAB-6)', async () => {
    for (const status of [401, 403, 429, 500]) {
      const result = await lab.authenticate(auth.bearer({ simulate: `fhir:${status}` }))
      assert.ok(!result.allowed)
      assert.equal(result.status, status)
      assert.equal(result.outcome.issue[0]?.details.text, `Simulated by the lab: fhir:${status}.`)
      assert.equal(result.rejectedGrant?.clientId, 'app')
    }
  })

  it('delays the requests of a token by five seconds (LAB-6)', async () => {
    const bearer = auth.bearer({ simulate: 'fhir:slow' })
    await interceptor.authenticate(bearer)
    mock.timers.enable({ apis: ['setTimeout'] })
    try {
      let isDone = false
      const waiting = Promise.resolve(lab.authenticate(bearer)).then(it => {
        isDone = true
        return it.allowed ? it.grant?.note : assert.fail()
      })
      mock.timers.tick(4_999)
      await Promise.resolve()
      assert.equal(isDone, false)
      mock.timers.tick(1)
      assert.equal(await waiting, 'Simulated by the lab: fhir:slow')
    } finally {
      mock.timers.reset()
    }
  })

  it('names the simulation as the reason for the refusal of an unusable token, in the audit trail only (LAB-6)', async () => {
    const simulate = 'access-token:expired'
    const refused = await lab.authenticate(auth.bearer({ simulate, exp: 1 }))
    assert.ok(!refused.allowed)
    assert.equal(refused.why, 'The token is not accepted: simulated by the lab: access-token:expired')
    assert.equal(refused.rejectedGrant?.clientId, 'app')
    assert.equal(refused.outcome.issue[0]?.details.text, 'The access token has expired.')
  })

  it('notes for the audit trail what a token says about itself that nobody has verified, if it is plain (LAB-6)', async () => {
    const claims = { client_id: 'growth', jti: 'launch-1.x', simulate: 'access-token:bad-signature' }
    const refused = await lab.authenticate(`${auth.bearer(claims).slice(0, -8)}AAAAAAAA`)
    assert.ok(!refused.allowed)
    assert.deepEqual(refused.claimed, {
      iss: authUrl,
      aud: fhirBaseUrl,
      client_id: 'growth',
      jti: 'launch-1.x',
    })
    const hostile = { iss: 'https://other.example', client_id: '<b>\u202e', jti: 'x'.repeat(201), aud: ['a'] }
    const other = await lab.authenticate(auth.bearer(hostile))
    assert.deepEqual(!other.allowed && other.claimed, { iss: 'https://other.example' })
    const expired = await lab.authenticate(auth.bearer({ exp: 1 }))
    assert.equal(!expired.allowed && expired.claimed, undefined)
    const usual = await interceptor.authenticate(auth.bearer(hostile))
    assert.equal(!usual.allowed && usual.claimed, undefined)
  })

  it('trusts the claims of our own auth server only', async () => {
    const grant = { scopes: [], issuer: 'https://other.example' }
    const caller = { allowed: true, grant, decide: () => assert.fail() } as const
    const other = applyTokenFailures({ authenticate: () => caller })
    assert.equal(other.authenticate(auth.bearer({ simulate: 'fhir:500' })), caller)
  })

  it('changes nothing for other tokens, and refuses invalid ones for their own reason (LAB-6)', async () => {
    for (const claims of [{}, { simulate: 'fhir:418' }, { simulate: 7 }])
      assert.ok((await lab.authenticate(auth.bearer(claims))).allowed)
    const expired = await lab.authenticate(auth.bearer({ simulate: 'fhir:500', exp: 1 }))
    assert.equal(!expired.allowed && expired.status, 401)
    assert.equal((await interceptor.authenticate(auth.bearer({ simulate: 'fhir:500' }))).allowed, true)
  })
})
