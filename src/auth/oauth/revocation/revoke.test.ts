import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { sql } from 'kysely'
import { eachDatabaseIfThorough } from '../../../../test/support/databases.ts'
import { LIMITS } from '../../base/limits.ts'
import { decodeClaims, TestAuthServer, unknownToken } from '../../testing/test-auth-server.ts'
import { TestBrowser } from '../../testing/test-browser.ts'
import { computeRevocationKey, type RevocationList } from './list.ts'

eachDatabaseIfThorough((_name, open) => {
  describe('POST /oauth2/revoke', () => {
    let auth: TestAuthServer
    before(async () => {
      auth = await TestAuthServer.open(await open())
      await auth.addClient({ client_id: 'other' })
    })

    async function requestTokens() {
      return (await auth.exchange(await auth.getCode(await auth.logIn()))).json()
    }
    const revoke = (form: Record<string, string>, headers: Record<string, string> = {}) =>
      new TestBrowser(auth.app).post('/oauth2/revoke', { client_id: 'sallyport-app', ...form }, headers)
    const getFeed = (since: number) => auth.openBrowser().get(`/oauth2/revocations?since=${since}`)
    const feed = async (since = 0): Promise<RevocationList> => {
      auth.time.now += LIMITS.revocationsMs
      return (await getFeed(since)).json()
    }
    const isListed = async (token: string, since?: number) => {
      const jti = String(decodeClaims(token).jti)
      const { revoked } = await feed(since)
      return [jti, jti.split('.')[0] ?? ''].some(id => revoked.includes(computeRevocationKey(id)))
    }
    const userinfo = async (token: string) => {
      const headers = { authorization: `Bearer ${token}` }
      return (await auth.app.inject({ url: '/oauth2/userinfo', headers })).statusCode
    }

    it('revokes the whole grant of a refresh token, even of a rotated one (REVOKE-1)', async () => {
      for (const rotated of [false, true]) {
        const tokens = await requestTokens()
        const next = rotated ? (await auth.refresh(tokens.refresh_token)).json() : tokens
        const response = await revoke({ token: tokens.refresh_token })
        assert.equal(response.statusCode, 200)
        assert.equal(response.body, '')
        assert.equal(response.headers['cache-control'], 'no-store')
        assert.equal((await auth.refresh(next.refresh_token)).json().error, 'invalid_grant')
        assert.ok(await isListed(tokens.access_token))
        assert.equal(await userinfo(tokens.access_token), 401)
      }
    })

    it('lists grants that end with a change of the settings, or of the database by hand (REVOKE-5)', async () => {
      const login = { order: [], passwords: true, secondFactor: 'none' as const, providers: [] }
      const { db } = auth.store
      for (const [change, undo] of [
        [async () => auth.changeLogin({ ...login, passwords: false }), async () => auth.changeLogin(login)],
        [
          () => db.updateTable('clinician').set({ disabled: true }).execute(),
          () => db.updateTable('clinician').set({ disabled: false }).execute(),
        ],
      ]) {
        const { access_token: token } = await requestTokens()
        assert.equal(await isListed(token), false)
        await change?.()
        assert.equal(await userinfo(token), 401)
        assert.equal(await isListed(token, auth.time.now), true)
        await undo?.()
        assert.equal(await userinfo(token), 401, 'it does not come back')
      }
    })

    it('revokes an access token alone (REVOKE-1)', async () => {
      const tokens = await requestTokens()
      const other = (await auth.refresh(tokens.refresh_token)).json()
      assert.equal((await revoke({ token: tokens.access_token })).statusCode, 200)
      assert.equal((await revoke({ token: tokens.access_token })).statusCode, 200)
      assert.ok(await isListed(tokens.access_token))
      assert.equal(await userinfo(tokens.access_token), 401)
      assert.equal(await isListed(other.access_token), false)
      assert.equal(await userinfo(other.access_token), 200)
      assert.equal((await auth.refresh(other.refresh_token)).statusCode, 200)
    })

    it('responds with 200 to an unknown or expired token or one of another client, and changes nothing (REVOKE-1)', async () => {
      const tokens = await requestTokens()
      for (const token of [unknownToken, 'nonsense', tokens.id_token])
        assert.equal((await revoke({ token })).statusCode, 200)
      for (const token of [tokens.refresh_token, tokens.access_token])
        assert.equal((await revoke({ token, client_id: 'other' })).statusCode, 200)
      assert.equal(await isListed(tokens.access_token), false)
      assert.equal((await auth.refresh(tokens.refresh_token)).statusCode, 200)
    })

    it('refuses an unknown client, and a request without a token', async () => {
      assert.equal((await revoke({ token: 'x', client_id: 'nobody' })).statusCode, 401)
      assert.equal((await revoke({})).json().error, 'invalid_request')
    })

    it('lists the grants that a logout ends until their tokens have expired (REVOKE-2)', async () => {
      const browser = await auth.logIn()
      const { access_token: token } = (await auth.exchange(await auth.getCode(browser))).json()
      const { next } = await feed()
      await browser.post('/logout', {})
      assert.ok(await isListed(token))
      assert.ok(await isListed(token, next), 'what comes late is still in the next answer')
      auth.time.now += 60_000
      assert.equal(await isListed(token, auth.time.now), false)
      assert.ok(await isListed(token))
      auth.time.now += 300_000
      assert.deepEqual((await feed()).revoked, [])
    })

    it('lists the grants that a logout ends even if offline_access occurs only as a value in a scope', async () => {
      const browser = await auth.logIn()
      const scope = 'launch patient/Observation.rs?code=offline_access patient/Patient.rs'
      const { access_token: token } = (await auth.exchange(await auth.getCode(browser, { scope }))).json()
      await browser.post('/logout', {})
      assert.ok(await isListed(token))
    })

    it('lists hashes instead of ids, to any caller, uncached (REVOKE-2)', async () => {
      const tokens = await requestTokens()
      await revoke({ token: tokens.refresh_token })
      const response = await auth.openBrowser().get('/oauth2/revocations')
      assert.equal(response.headers['cache-control'], 'no-store')
      const grantId = String(decodeClaims(tokens.access_token).jti).split('.')[0] ?? ''
      assert.equal(response.body.includes(grantId), false)
      for (const mark of response.json().revoked) assert.match(mark, /^[\w-]{22}$/)
      for (const since of ['x', '-1', '1e999', '', '99999999999999999999', `${auth.time.now}.5`])
        assert.equal((await auth.openBrowser().get(`/oauth2/revocations?since=${since}`)).statusCode, 200)
    })

    it('generates each list once for all requests within a short time, whatever their since (REVOKE-4)', async () => {
      const { access_token: token } = await requestTokens()
      const all = await feed()
      const { now } = auth.time
      const recent = (await getFeed(now)).json()
      await revoke({ token })
      for (const since of [0, 1, now - 60_000]) assert.deepEqual((await getFeed(since)).json(), all)
      for (const since of [now - 5_000, now, now + 60_000])
        assert.deepEqual((await getFeed(since)).json(), recent)
      auth.time.now += LIMITS.recentRevocationsMs
      assert.deepEqual((await getFeed(0)).json(), all)
      const key = computeRevocationKey(String(decodeClaims(token).jti))
      assert.ok((await getFeed(all.next)).json().revoked.includes(key), 'the next list has it')
      assert.ok(await isListed(token))
    })

    it('lists more revocations than a function may have arguments (REVOKE-4)', async () => {
      const [now, expiresAt] = [auth.time.now, auth.time.now + 900_000]
      await sql`insert into revocation (id, revoked_at, expires_at)
        with recursive number (value) as (select 1 union all select value + 1 from number where value < 150000)
        select 'many-' || value, cast(${now} as bigint), cast(${expiresAt} as bigint) from number`.execute(
        auth.store.db,
      )
      const { revoked, lifetime } = await feed()
      assert.ok(revoked.length >= 150_000)
      assert.equal(lifetime, 895)
      auth.time.now = expiresAt
      assert.deepEqual((await feed()).revoked, [])
    })

    it("may be called by pages of the client's own origin only", async () => {
      const own = await revoke({ token: 'x' }, { origin: 'http://localhost:8081' })
      assert.equal(own.headers['access-control-allow-origin'], 'http://localhost:8081')
      const foreign = await revoke({ token: 'x' }, { origin: 'https://evil.example' })
      assert.equal(foreign.headers['access-control-allow-origin'], undefined)
      assert.equal(foreign.headers.vary, 'Origin')
    })
  })
})
