import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { describe, it } from 'node:test'
import { createInterceptor } from '../interceptor.ts'
import { authUrl, fhirBaseUrl, TestIssuer } from '../testing/test-issuer.ts'

const OTHER = `${fhirBaseUrl}/mcp`

function stand() {
  const auth = new TestIssuer()
  const base = createInterceptor({ authUrl, fhirBaseUrl, fetch: auth.fetch, clock: auth.clock })
  const other = base.forAudience(OTHER)
  const getReason = async (guard: typeof other, claims: Record<string, unknown> = {}) => {
    const result = await guard.authenticate(auth.bearer(claims))
    return result.allowed ? 'accepted' : result.reason
  }
  return { auth, base, other, getReason }
}

describe('Interceptor.forAudience', () => {
  it('accepts only tokens for its audience, and the FHIR base none of them (AGENT-1)', async () => {
    const { base, other, getReason } = stand()
    assert.equal(await getReason(other, { aud: OTHER }), 'accepted')
    assert.equal(await getReason(base), 'accepted')
    // Each was accepted before by the other one, whose cache must not be shared.
    assert.equal(await getReason(other), 'token-aud-wrong')
    assert.equal(await getReason(base, { aud: OTHER }), 'token-aud-wrong')
  })

  it('decides like the interceptor', async () => {
    const { auth, other } = stand()
    const caller = await other.authenticate(auth.bearer({ aud: OTHER }))
    assert(caller.allowed)
    assert.equal(caller.grant.patient, '1')
    const { allowed } = caller.decide({ kind: 'search-type', type: 'Condition', params: [] })
    assert(allowed && !caller.decide({ kind: 'search-type', type: 'Observation', params: [] }).allowed)
  })

  it('fetches no key set of its own', async () => {
    const { auth, base, other, getReason } = stand()
    await getReason(base)
    await getReason(other, { aud: OTHER })
    assert.equal(auth.requests, 1)
  })

  it('refuses every token while the auth server refuses the audience, and accepts them again', async () => {
    const { auth, base, other, getReason } = stand()
    const refuse = async (...audiences: string[]) => {
      auth.feed = () => ({
        revoked: [],
        refused: audiences.map(one => hash('sha256', one, 'base64url').slice(0, 22)),
        lifetime: 360,
        next: auth.now,
      })
      auth.now += 2_000
      await base.start()
    }
    await refuse(OTHER)
    assert.equal(await getReason(other, { aud: OTHER }), 'token-revoked')
    assert.equal(await getReason(base), 'accepted')
    auth.away = true
    auth.now += 2_000
    await base.start()
    assert.equal(await getReason(other, { aud: OTHER }), 'token-revoked', 'the auth server is unreachable')
    auth.away = false
    await refuse()
    assert.equal(await getReason(other, { aud: OTHER }), 'accepted')
    base.close()
  })

  it('refuses the tokens of a revoked grant', async () => {
    const { auth, base, other, getReason } = stand()
    auth.feed = () => ({
      revoked: [hash('sha256', 'g', 'base64url').slice(0, 22)],
      lifetime: 360,
      next: auth.now,
    })
    await base.start()
    base.close()
    assert.equal(await getReason(other, { aud: OTHER, jti: 'g.1' }), 'token-revoked')
  })

  it('needs the auth server', () => {
    const trusted = { issuer: 'https://idp.example', jwksUrl: 'https://idp.example/keys' }
    const guard = createInterceptor({ trustedIssuers: [trusted], fhirBaseUrl })
    assert.throws(() => guard.forAudience(OTHER), /authUrl/)
  })
})
