import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { eachDatabase } from '../../../../test/support/databases.ts'
import { sha256, sweep } from '../../../store/index.ts'
import { LIFETIME } from '../../base/limits.ts'
import { decodeClaims, TestAuthServer, unknownToken } from '../../testing/test-auth-server.ts'
import { TestBrowser } from '../../testing/test-browser.ts'

const OFFLINE = {
  client_id: 'offline',
  redirect_uri: 'https://offline.example/callback',
  scope: 'launch openid fhirUser offline_access patient/*.rs',
}
const AS_OFFLINE = { client_id: OFFLINE.client_id, redirect_uri: OFFLINE.redirect_uri }

eachDatabase((_name, open) => {
  describe('refresh', () => {
    let auth: TestAuthServer
    let mainBrowser: TestBrowser
    before(async () => {
      auth = await TestAuthServer.open(await open())
      mainBrowser = await auth.logIn()
      await auth.addClient({ client_id: 'offline' })
    })

    async function online(browser = mainBrowser) {
      return (await auth.exchange(await auth.getCode(browser))).json()
    }
    async function offline(browser = mainBrowser) {
      return (await auth.exchange(await auth.getCode(browser, OFFLINE), AS_OFFLINE)).json()
    }

    it('issues a new access token for the same patient, and rotates the refresh token (REFRESH-3)', async () => {
      const first = await online()
      auth.time.now += 1000
      const response = await auth.refresh(first.refresh_token)
      const body = response.json()
      assert.equal(response.statusCode, 200)
      assert.equal(response.headers['cache-control'], 'no-store')
      assert.notEqual(body.refresh_token, first.refresh_token)
      assert.equal(body.scope, first.scope)
      assert.equal(body.expires_in, 300)
      assert.equal(body.patient, 'juniper')
      assert.equal(body.need_patient_banner, true)
      assert.equal(decodeClaims(body.access_token).patient, 'juniper')
      assert.equal(decodeClaims(body.id_token).sub, decodeClaims(first.id_token).sub)
      assert.equal('nonce' in decodeClaims(body.id_token), false)
      assert.equal((await auth.refresh(body.refresh_token)).statusCode, 200)
    })

    it('refuses a successor that was moved from the row of another token, and revokes the grant', async () => {
      const [{ refresh_token: own }, { refresh_token: other }] = [await online(), await online()]
      const { refresh_token: successor } = (await auth.refresh(own)).json()
      await auth.refresh(other)
      const { db } = auth.store
      const { successor_sealed } = await db
        .selectFrom('refresh_token')
        .select('successor_sealed')
        .where('token_hash', '=', sha256(other))
        .executeTakeFirstOrThrow()
      await db
        .updateTable('refresh_token')
        .set({ successor_sealed })
        .where('token_hash', '=', sha256(own))
        .execute()
      for (const token of [own, successor]) {
        const response = await auth.refresh(token)
        assert.deepEqual([response.statusCode, response.json().error], [400, 'invalid_grant'])
      }
    })

    it('responds to the retry of a lost response with the same successor (REFRESH-2)', async () => {
      const { refresh_token: token } = await online()
      const first = (await auth.refresh(token)).json()
      auth.time.now += LIFETIME.refreshRetry
      const retry = await auth.refresh(token)
      assert.equal(retry.statusCode, 200)
      assert.equal(retry.json().refresh_token, first.refresh_token)
      assert.equal((await auth.refresh(first.refresh_token)).statusCode, 200)
    })

    it('keeps a successor readable only during the retry window', async () => {
      const { refresh_token: token } = await online()
      await auth.refresh(token)
      const kept = async () =>
        (
          await auth.store.db
            .selectFrom('refresh_token')
            .select('successor_sealed')
            .where('token_hash', '=', sha256(token))
            .executeTakeFirstOrThrow()
        ).successor_sealed
      auth.time.now += LIFETIME.refreshRetry
      await sweep(auth.store, auth.time.now)
      assert.ok(await kept())
      assert.equal((await auth.refresh(token)).statusCode, 200)
      auth.time.now += 1
      await sweep(auth.store, auth.time.now)
      assert.equal(await kept(), null)
      assert.equal((await auth.refresh(token)).json().error, 'invalid_grant')
    })

    it('revokes the grant if a token is used again after the retry window (REFRESH-2)', async () => {
      const { refresh_token: token } = await online()
      const { refresh_token: successor } = (await auth.refresh(token)).json()
      auth.time.now += LIFETIME.refreshRetry + 1
      assert.equal((await auth.refresh(token)).json().error, 'invalid_grant')
      assert.equal((await auth.refresh(successor)).json().error, 'invalid_grant')
    })

    it('revokes the grant if a token is used again after its successor (REFRESH-2)', async () => {
      const { refresh_token: token } = await online()
      const { refresh_token: successor } = (await auth.refresh(token)).json()
      const { refresh_token: third } = (await auth.refresh(successor)).json()
      assert.equal((await auth.refresh(token)).json().error, 'invalid_grant')
      assert.equal((await auth.refresh(third)).json().error, 'invalid_grant')
    })

    it('revokes the grant if a token is used again with other parameters', async () => {
      const { refresh_token: token } = await online()
      const { refresh_token: successor } = (await auth.refresh(token)).json()
      assert.equal((await auth.refresh(token, { scope: 'openid' })).json().error, 'invalid_grant')
      assert.equal((await auth.refresh(successor)).json().error, 'invalid_grant')
    })

    it('rotates once for 50 concurrent requests, which all get the same successor', async () => {
      const { refresh_token: token } = await online()
      const responses = await Promise.all(Array.from({ length: 50 }, () => auth.refresh(token)))
      assert.ok(responses.every(response => response.statusCode === 200))
      const successors = new Set(responses.map(response => response.json().refresh_token))
      assert.equal(successors.size, 1)
      const [successor = ''] = successors
      assert.equal((await auth.refresh(successor)).statusCode, 200)
    })

    it('leaves one valid token if an old token and its successor are used concurrently', async () => {
      const { refresh_token: token } = await online()
      const { refresh_token: successor } = (await auth.refresh(token)).json()
      await Promise.all(Array.from({ length: 20 }, (_, at) => auth.refresh(at % 2 ? token : successor)))
      const { grant_id: grant } = await auth.store.db
        .selectFrom('refresh_token')
        .select('grant_id')
        .orderBy('created_at', 'desc')
        .limit(1)
        .executeTakeFirstOrThrow()
      const live = await auth.store.db
        .selectFrom('refresh_token')
        .select('token_hash')
        .where('grant_id', '=', grant)
        .where('used_at', 'is', null)
        .execute()
      assert.equal(live.length, 1)
    })

    it('accepts a narrower or equal scope, and does not change the grant (REFRESH-3)', async () => {
      const { refresh_token: token, scope } = await online()
      const narrowed = (await auth.refresh(token, { scope: 'patient/Patient.r' })).json()
      assert.equal(narrowed.scope, 'patient/Patient.r')
      assert.equal(decodeClaims(narrowed.access_token).scope, 'patient/Patient.r')
      const same = (await auth.refresh(narrowed.refresh_token, { scope })).json()
      assert.equal(same.scope, scope)
      assert.equal((await auth.refresh(same.refresh_token)).json().scope, scope)
    })

    it('refuses a wider scope and keeps the token valid (REFRESH-3)', async () => {
      const { refresh_token: token } = await online()
      for (const scope of [
        'patient/*.rs',
        'patient/Patient.cruds',
        'openid user/Patient.rs',
        'nonsense',
        ' ',
      ]) {
        const response = await auth.refresh(token, { scope })
        assert.equal(response.statusCode, 400, scope)
        assert.equal(response.json().error, 'invalid_scope', scope)
      }
      assert.equal((await auth.refresh(token)).statusCode, 200)
    })

    it('refuses an unknown token, and one of another client, which stays valid (REFRESH-4)', async () => {
      const { refresh_token: token } = await online()
      assert.equal((await auth.refresh(unknownToken)).json().error, 'invalid_grant')
      assert.equal((await auth.refresh(token, { client_id: 'offline' })).json().error, 'invalid_grant')
      assert.equal((await auth.refresh(token)).statusCode, 200)
    })

    it('requires no client_id of a public client, and authentication of any other', async () => {
      const { refresh_token: token } = await online()
      const nameless = (refresh_token: string) =>
        auth.requestToken({ grant_type: 'refresh_token', refresh_token })
      assert.equal((await nameless(token)).statusCode, 200)
      const { refresh_token: other } = await offline()
      await auth.store.db
        .updateTable('client')
        .set({ auth_method: 'client_secret', secret_hash: 'x' })
        .where('client_id', '=', 'offline')
        .execute()
      assert.equal((await nameless(other)).json().error, 'invalid_client')
      assert.equal((await nameless(unknownToken)).json().error, 'invalid_client')
      await auth.store.db
        .updateTable('client')
        .set({ auth_method: 'none', secret_hash: null })
        .where('client_id', '=', 'offline')
        .execute()
    })

    it('ends online_access with the logout, but not offline_access (LOGIN-10)', async () => {
      const browser = await auth.logIn()
      const [bound, free] = [await online(browser), await offline(browser)]
      await browser.post('/logout', {})
      assert.equal((await auth.refresh(bound.refresh_token)).json().error, 'invalid_grant')
      assert.equal((await auth.refresh(free.refresh_token, AS_OFFLINE)).statusCode, 200)
    })

    it('ends online_access after 8 hours however often it is renewed, and offline_access 100 days after its last use (REFRESH-1)', async () => {
      const browser = await auth.logIn()
      let { refresh_token: bound } = await online(browser)
      let { refresh_token: free } = await offline(browser)
      for (let hour = 1; hour < 8; hour++) {
        auth.time.now += 3_600_000
        bound = (await auth.refresh(bound)).json().refresh_token
      }
      auth.time.now += 3_600_000 - 60_000
      const last = (await auth.refresh(bound)).json()
      bound = last.refresh_token
      // No token outlives its grant.
      assert.deepEqual([last.expires_in, last.refresh_token_expires_in], [60, 60])
      assert.equal(decodeClaims(last.access_token).exp, Math.floor(auth.time.now / 1000) + 60)
      auth.time.now += 60_000
      assert.equal((await auth.refresh(bound)).json().error, 'invalid_grant')
      for (const days of [99, 99]) {
        auth.time.now += days * 86_400_000
        free = (await auth.refresh(free, AS_OFFLINE)).json().refresh_token
      }
      auth.time.now += 100 * 86_400_000
      assert.equal((await auth.refresh(free, AS_OFFLINE)).json().error, 'invalid_grant')
      mainBrowser = await auth.logIn()
    })

    it('ends offline_access at its maximum age, however often it is used, also if it was given before the setting (REFRESH-1)', async () => {
      const days = 30
      const store = await open()
      const limited = await TestAuthServer.open(store, { settings: { offlineAccessMaxDays: days } })
      await limited.addClient({ client_id: 'offline' })
      const secret_hash = sha256('secret')
      await limited.addClient({ client_id: 'looker', auth_method: 'client_secret', secret_hash })
      const looker = { client_id: 'looker', redirect_uri: 'https://looker.example/callback' }
      const secret = { client_id: 'looker', client_secret: 'secret' }
      const browser = await limited.logIn()
      const start = limited.time.now
      const code = await limited.getCode(browser, { ...OFFLINE, ...looker })
      const own = (await limited.exchange(code, { ...looker, ...secret })).json()
      let last = (await limited.exchange(await limited.getCode(browser, OFFLINE), AS_OFFLINE)).json()
      assert.equal(last.refresh_token_expires_in, days * 86_400)
      limited.time.now += 20 * 86_400_000
      last = (await limited.refresh(last.refresh_token, AS_OFFLINE)).json()
      const officer = await limited.logIn()
      assert.match((await officer.get('/manage')).body, /Works while you are away/)
      assert.match(
        (await officer.get('/manage')).body,
        new RegExp(new Date(start + days * 86_400_000).toISOString()),
      )
      limited.time.now = start + days * 86_400_000 - 60_000
      last = (await limited.refresh(last.refresh_token, AS_OFFLINE)).json()
      assert.deepEqual([last.expires_in, last.refresh_token_expires_in], [60, 60])

      const shorter = await TestAuthServer.open(store, { settings: { offlineAccessMaxDays: 7 } })
      shorter.time.now = start + 8 * 86_400_000
      assert.equal((await shorter.refresh(last.refresh_token, AS_OFFLINE)).json().error, 'invalid_grant')
      const introspected = await new TestBrowser(shorter.app).post('/oauth2/introspect', {
        token: own.refresh_token,
        ...secret,
      })
      assert.deepEqual(introspected.json(), { active: false })
      assert.match((await (await shorter.logIn()).get('/manage')).body, /No app has access/)

      limited.time.now += 60_000
      assert.equal((await limited.refresh(last.refresh_token, AS_OFFLINE)).json().error, 'invalid_grant')
      assert.match((await (await limited.logIn()).get('/manage')).body, /No app has access/)
    })

    it('continues if the same clinician logs in again, and ends if another one does (REFRESH-1)', async () => {
      await auth.addUser('second')
      const browser = await auth.logIn()
      const { refresh_token: token } = await online(browser)
      await browser.login()
      const { refresh_token: next } = (await auth.refresh(token)).json()
      await browser.login('second')
      assert.equal((await auth.refresh(next)).json().error, 'invalid_grant')
    })

    it('refuses a disabled clinician (REFRESH-4)', async () => {
      await auth.addUser('third')
      const { refresh_token: token } = await offline(await auth.logIn('third'))
      const disable = auth.store.db.updateTable('clinician').set({ disabled: true })
      await disable.where('username', '=', 'third').execute()
      assert.equal((await auth.refresh(token, AS_OFFLINE)).json().error, 'invalid_grant')
    })
  })
})
