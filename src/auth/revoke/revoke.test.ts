import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { eachDatabase } from '../../../test/support/databases.ts'
import { decodeClaims, strangerToken, TestAuthServer } from '../testing/test-auth-server.ts'
import { TestBrowser } from '../testing/test-browser.ts'
import { computeRevocationKey, type RevocationList } from './routes.ts'

eachDatabase((_name, open) => {
  describe('POST /oauth2/revoke', () => {
    let house: TestAuthServer
    before(async () => {
      house = await TestAuthServer.open(await open())
      await house.addClient({ client_id: 'other' })
    })

    async function requestTokens() {
      return (await house.exchange(await house.code(await house.loggedIn()))).json()
    }
    const revoke = (form: Record<string, string>, headers: Record<string, string> = {}) =>
      new TestBrowser(house.app).post('/oauth2/revoke', { client_id: 'sallyport-app', ...form }, headers)
    const feed = async (since = 0): Promise<RevocationList> =>
      (await house.visitor().get(`/oauth2/revocations?since=${since}`)).json()
    const isListed = async (token: string, since?: number) => {
      const jti = String(decodeClaims(token).jti)
      const { revoked } = await feed(since)
      return [jti, jti.split('.')[0] ?? ''].some(id => revoked.includes(computeRevocationKey(id)))
    }
    const userinfo = async (token: string) => {
      const headers = { authorization: `Bearer ${token}` }
      return (await house.app.inject({ url: '/oauth2/userinfo', headers })).statusCode
    }

    it('ends the whole grant with a refresh token, also with one that was rotated', async () => {
      for (const rotated of [false, true]) {
        const tokens = await requestTokens()
        const next = rotated ? (await house.refresh(tokens.refresh_token)).json() : tokens
        const response = await revoke({ token: tokens.refresh_token })
        assert.equal(response.statusCode, 200)
        assert.equal(response.body, '')
        assert.equal(response.headers['cache-control'], 'no-store')
        assert.equal((await house.refresh(next.refresh_token)).json().error, 'invalid_grant')
        assert.ok(await isListed(tokens.access_token))
        assert.equal(await userinfo(tokens.access_token), 401)
      }
    })

    it('ends an access token alone', async () => {
      const tokens = await requestTokens()
      const other = (await house.refresh(tokens.refresh_token)).json()
      assert.equal((await revoke({ token: tokens.access_token })).statusCode, 200)
      assert.equal((await revoke({ token: tokens.access_token })).statusCode, 200)
      assert.ok(await isListed(tokens.access_token))
      assert.equal(await userinfo(tokens.access_token), 401)
      assert.equal(await isListed(other.access_token), false)
      assert.equal(await userinfo(other.access_token), 200)
      assert.equal((await house.refresh(other.refresh_token)).statusCode, 200)
    })

    it('answers 200 for what is unknown, expired or of another client, and leaves that as it is', async () => {
      const tokens = await requestTokens()
      for (const token of [strangerToken, 'nonsense', tokens.id_token])
        assert.equal((await revoke({ token })).statusCode, 200)
      for (const token of [tokens.refresh_token, tokens.access_token])
        assert.equal((await revoke({ token, client_id: 'other' })).statusCode, 200)
      assert.equal(await isListed(tokens.access_token), false)
      assert.equal((await house.refresh(tokens.refresh_token)).statusCode, 200)
    })

    it('refuses who is no client, and a request without token', async () => {
      assert.equal((await revoke({ token: 'x', client_id: 'nobody' })).statusCode, 401)
      assert.equal((await revoke({})).json().error, 'invalid_request')
    })

    it('lists what a logout ends, and drops it once every such token has expired', async () => {
      const visitor = await house.loggedIn()
      const { access_token: token } = (await house.exchange(await house.code(visitor))).json()
      const { next } = await feed()
      await visitor.post('/logout', {})
      assert.ok(await isListed(token))
      assert.ok(await isListed(token, next), 'what comes late is still in the next answer')
      assert.equal(await isListed(token, next + 60_000), false)
      house.time.now += 361_000
      assert.deepEqual((await feed()).revoked, [])
    })

    it('lists what a logout ends also where offline_access is but a value in a scope', async () => {
      const visitor = await house.loggedIn()
      const scope = 'launch patient/Observation.rs?code=offline_access patient/Patient.rs'
      const { access_token: token } = (await house.exchange(await house.code(visitor, { scope }))).json()
      await visitor.post('/logout', {})
      assert.ok(await isListed(token))
    })

    it('lists no id itself, to anybody, uncached', async () => {
      const tokens = await requestTokens()
      await revoke({ token: tokens.refresh_token })
      const response = await house.visitor().get('/oauth2/revocations')
      assert.equal(response.headers['cache-control'], 'no-store')
      const grantId = String(decodeClaims(tokens.access_token).jti).split('.')[0] ?? ''
      assert.equal(response.body.includes(grantId), false)
      for (const mark of response.json().revoked) assert.match(mark, /^[\w-]{22}$/)
      for (const since of ['x', '-1', '1e999', '', '99999999999999999999', `${house.time.now}.5`])
        assert.equal((await house.visitor().get(`/oauth2/revocations?since=${since}`)).statusCode, 200)
    })

    it('may be called by pages of the client’s own origin only', async () => {
      const own = await revoke({ token: 'x' }, { origin: 'http://localhost:8081' })
      assert.equal(own.headers['access-control-allow-origin'], 'http://localhost:8081')
      const foreign = await revoke({ token: 'x' }, { origin: 'https://evil.example' })
      assert.equal(foreign.headers['access-control-allow-origin'], undefined)
      assert.equal(foreign.headers.vary, 'Origin')
    })
  })
})
