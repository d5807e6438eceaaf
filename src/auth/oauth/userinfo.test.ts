import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { decodeClaims, TestAuthServer } from '../testing/test-auth-server.ts'
import { openTestStore } from '../testing/test-store.ts'

describe('/oauth2/userinfo', () => {
  const open = openTestStore()
  let auth: TestAuthServer
  before(async () => {
    auth = await TestAuthServer.open(await open())
  })

  const ask = (authorization: string | undefined, method: 'GET' | 'POST' = 'GET', url = '/oauth2/userinfo') =>
    auth.app.inject({ method, url, headers: authorization === undefined ? {} : { authorization } })
  async function requestTokens(scope?: string) {
    return (await auth.exchange(await auth.getCode(await auth.logIn(), scope ? { scope } : {}))).json()
  }

  it('returns the claims of the ID token, for GET and POST (USERINFO-1)', async () => {
    const tokens = await requestTokens()
    const { sub, fhirUser, name } = decodeClaims(tokens.id_token)
    for (const method of ['GET', 'POST'] as const) {
      const response = await ask(`Bearer ${tokens.access_token}`, method)
      assert.equal(response.statusCode, 200)
      assert.deepEqual(response.json(), { sub, fhirUser, name })
      assert.equal(response.headers['cache-control'], 'no-store')
    }
  })

  it('returns only the claims of the granted scope', async () => {
    const { access_token: token } = await requestTokens('launch openid patient/Patient.rs')
    const body = (await ask(`bearer ${token}`)).json()
    assert.deepEqual(Object.keys(body), ['sub'])
  })

  it('refuses a token without openid with 403, and an invalid token with 401 (USERINFO-1)', async () => {
    const { access_token: narrow } = await requestTokens('launch fhirUser patient/Patient.rs')
    const response = await ask(`Bearer ${narrow}`)
    assert.equal(response.statusCode, 403)
    assert.match(String(response.headers['www-authenticate']), /error="insufficient_scope", scope="openid"/)
    const tokens = await requestTokens()
    for (const header of [`Bearer ${tokens.id_token}`, `Bearer ${tokens.refresh_token}`, 'Bearer x.y.z']) {
      const refused = await ask(header)
      assert.equal(refused.statusCode, 401)
      assert.match(String(refused.headers['www-authenticate']), /^Bearer .*error="invalid_token"/)
    }
    const without = await ask(undefined)
    assert.equal(without.statusCode, 401)
    assert.doesNotMatch(String(without.headers['www-authenticate']), /error=/)
    const inQuery = await ask(undefined, 'GET', `/oauth2/userinfo?access_token=${tokens.access_token}`)
    assert.equal(inQuery.statusCode, 401)
  })

  it("may be read by pages of the client's own origin only", async () => {
    await auth.addClient({ client_id: 'other' })
    const { access_token: token } = await requestTokens()
    for (const [origin, allowed] of [
      ['http://localhost:8081', 'http://localhost:8081'],
      ['https://other.example', undefined],
      ['https://evil.example', undefined],
    ] as const) {
      const headers = { authorization: `Bearer ${token}`, origin }
      const response = await auth.app.inject({ url: '/oauth2/userinfo', headers })
      assert.equal(response.statusCode, 200)
      assert.equal(response.headers['access-control-allow-origin'], allowed, origin)
      assert.equal(response.headers.vary, 'Origin')
    }
  })

  it('refuses a token after its clinician signed out or it expired', async () => {
    const browser = await auth.logIn()
    const { access_token: token } = (await auth.exchange(await auth.getCode(browser))).json()
    await browser.post('/logout', {})
    assert.equal((await ask(`Bearer ${token}`)).statusCode, 401)
    const { access_token: later } = await requestTokens()
    auth.time.now += 300_000
    assert.equal((await ask(`Bearer ${later}`)).statusCode, 401)
  })
})
