import assert from 'node:assert/strict'
import { before, beforeEach, describe, it } from 'node:test'
import { readForm } from '../../testing/read-form.ts'
import { decodeClaims, readRedirect, TestAuthServer } from '../../testing/test-auth-server.ts'
import type { TestBrowser } from '../../testing/test-browser.ts'
import { openTestStore } from '../../testing/test-store.ts'

const SELFMADE = { client_id: 'selfmade', redirect_uri: 'https://selfmade.example/callback' }
const SELFMADE_SCOPE = 'launch openid fhirUser patient/Patient.rs'

describe('the login for GET /oauth2/authorize', () => {
  const open = openTestStore()
  let auth: TestAuthServer
  let mainBrowser: TestBrowser
  before(async () => {
    auth = await TestAuthServer.open(await open())
    await auth.addClient({ client_id: 'query', redirect_uris: '["https://query.example/cb?tenant=a%20b"]' })
    await auth.addClient({ client_id: 'third', first_party: false })
    await auth.addClient({
      client_id: 'selfmade',
      first_party: false,
      approved: false,
      scope: SELFMADE_SCOPE,
    })
  })
  beforeEach(async () => {
    mainBrowser = await auth.logIn()
  })

  describe('with prompt, max_age and id_token_hint', () => {
    it('requires a new login if prompt is login or select_account (AUTHORIZE-9)', async () => {
      for (const prompt of ['login', 'select_account']) {
        auth.time.now += 1000
        const response = await auth.authorize(mainBrowser, { prompt })
        const form = await mainBrowser.get(response.headers.location ?? '')
        assert.match(form.body, /Sign in/)
        const { interaction = '' } = readRedirect(response)
        const done = await mainBrowser.post('/login', {
          username: 'clinician',
          password: 'sallyport',
          interaction,
        })
        assert.ok(readRedirect(await mainBrowser.follow(done, auth.settings.issuerUrl)).code, prompt)
      }
    })

    it('requires a new login if the login is older than max_age (AUTHORIZE-9)', async () => {
      auth.time.now += 60_000
      assert.ok(readRedirect(await auth.authorize(mainBrowser, { max_age: '60' })).code)
      auth.time.now += 1
      assert.match(
        (await auth.authorize(mainBrowser, { max_age: '60' })).headers.location ?? '',
        /^\/login\?/,
      )
    })

    it('responds to prompt=none with login_required without a login (AUTHORIZE-9)', async () => {
      assert.equal(
        readRedirect(await auth.authorize(auth.openBrowser(), { prompt: 'none' })).error,
        'login_required',
      )
      assert.ok(readRedirect(await auth.authorize(mainBrowser, { prompt: 'none' })).code)
    })

    it('shows a page for a silent request of an unverified app, and redirects after its user has decided', async () => {
      const silent = { ...SELFMADE, prompt: 'none', scope: SELFMADE_SCOPE }
      const picking = { ...silent, scope: 'launch/patient patient/Patient.rs' }
      const own = (await auth.exchange(await auth.getCode(mainBrowser))).json()
      await auth.addUser('another')
      const another = await auth.logIn('another')
      const hinted = { ...SELFMADE, id_token_hint: own.id_token }
      const launchOfOther = { ...SELFMADE, launch: await auth.launch(mainBrowser, { clientId: 'selfmade' }) }
      for (const [response, error] of [
        [await auth.authorize(auth.openBrowser(), silent), 'login_required'],
        [await auth.authorize(mainBrowser, silent), 'consent_required'],
        [await auth.authorize(mainBrowser, picking), 'interaction_required'],
        [await auth.authorize(another, hinted), 'login_required'],
        [await auth.authorize(another, launchOfOther), 'invalid_request'],
      ] as const) {
        assert.deepEqual([response.statusCode, response.headers.location], [400, undefined], error)
        assert.match(response.body, new RegExp(error))
      }
      for (const [decision, answer] of [
        ['deny', /^https:\/\/selfmade\.example\/callback\?error=access_denied/],
        ['allow', /^https:\/\/selfmade\.example\/callback\?code=/],
      ] as const) {
        const launch = await auth.launch(mainBrowser, { clientId: 'selfmade' })
        const asked = await auth.authorize(mainBrowser, { ...SELFMADE, launch })
        const page = await mainBrowser.follow(asked, auth.settings.issuerUrl)
        const done = await mainBrowser.post('/oauth2/consent', `${readForm(page.body)}&decision=${decision}`)
        assert.match(done.headers.location ?? '', answer)
      }
    })

    it('requires a login for an unverified app without redirecting to it if the hint names another user', async () => {
      const own = (await auth.exchange(await auth.getCode(mainBrowser))).json()
      await auth.addUser('third-person')
      const browser = auth.openBrowser()
      const response = await auth.authorize(browser, { ...SELFMADE, id_token_hint: own.id_token })
      const { interaction = '' } = readRedirect(response)
      const login = await browser.get(response.headers.location ?? '')
      assert.match(
        login.body,
        /selfmade sent you here\.[\s\S]*we ask you what it may use[\s\S]*Unverified app/,
      )
      const done = await browser.post('/login', {
        username: 'third-person',
        password: 'sallyport',
        interaction,
      })
      const ended = await browser.follow(done, auth.settings.issuerUrl)
      assert.deepEqual([ended.statusCode, ended.headers.location], [400, undefined])
    })

    it('responds to prompt=none with consent_required before the user has given consent', async () => {
      const redirect_uri = 'https://third.example/callback'
      const response = await auth.authorize(mainBrowser, { client_id: 'third', redirect_uri, prompt: 'none' })
      assert.equal(readRedirect(response).error, 'consent_required')
    })

    it('accepts an ID token of the same user, even an expired one, and refuses that of another user', async () => {
      const { id_token: hint } = (await auth.exchange(await auth.getCode(mainBrowser))).json()
      assert.ok(readRedirect(await auth.authorize(mainBrowser, { id_token_hint: hint })).code)
      await auth.addUser('hinted')
      const other = await auth.logIn('hinted')
      assert.equal(readRedirect(await auth.authorize(other, { id_token_hint: hint })).error, 'login_required')
    })

    it('refuses an access token as id_token_hint', async () => {
      const { access_token: hint } = (await auth.exchange(await auth.getCode(mainBrowser))).json()
      assert.equal(
        readRedirect(await auth.authorize(mainBrowser, { id_token_hint: hint })).error,
        'invalid_request',
      )
    })

    it('shows the login_hint in the login form, escaped', async () => {
      const fresh = auth.openBrowser()
      const response = await auth.authorize(fresh, { login_hint: '"><script>' })
      const page = await fresh.get(response.headers.location ?? '')
      assert.match(page.body, /value="&quot;&gt;&lt;script&gt;"/)
    })
  })

  describe('without a login', () => {
    it('continues the request unchanged after the login page (LOGIN-4)', async () => {
      const launch = await auth.launch(mainBrowser)
      const fresh = auth.openBrowser()
      const response = await auth.authorize(fresh, { launch })
      assert.match(response.headers.location ?? '', /^\/login\?interaction=[\w-]{43}$/)
      const form = await fresh.get(response.headers.location ?? '')
      assert.match(form.body, /Demo app sent you here\.[\s\S]*After you sign in, it opens\./)
      // The policy of the page lets the form's redirects through to the app.
      assert.match(
        String(form.headers['content-security-policy']),
        /form-action 'self' http:\/\/localhost:8081;/,
      )
      const { interaction = '' } = readRedirect(response)
      const wrong = await fresh.post('/login', { username: 'clinician', password: 'no', interaction })
      assert.ok(wrong.body.includes(`name="interaction" value="${interaction}"`))
      const done = await fresh.post('/login', { username: 'clinician', password: 'sallyport', interaction })
      const answer = readRedirect(await fresh.follow(done, auth.settings.issuerUrl))
      const body = (await auth.exchange(answer.code ?? '')).json()
      assert.equal(answer.state, 'state-1')
      assert.equal(body.patient, 'juniper')
      assert.equal(decodeClaims(body.id_token).nonce, 'nonce-1')
    })

    it('keeps a launch that expires during the login for 10 minutes (LAUNCH-7)', async () => {
      for (const [minutes, status] of [
        [9, 302],
        [11, 400],
      ] as const) {
        const launch = await auth.launch(await auth.logIn())
        auth.time.now += 4 * 60_000
        const fresh = auth.openBrowser()
        const { interaction = '' } = readRedirect(await auth.authorize(fresh, { launch }))
        auth.time.now += minutes * 60_000
        const login = await fresh.post('/login', {
          username: 'clinician',
          password: 'sallyport',
          interaction,
        })
        if (status === 302) assert.ok(readRedirect(await fresh.follow(login, auth.settings.issuerUrl)).code)
        else assert.equal((await fresh.get(`/oauth2/resume?interaction=${interaction}`)).statusCode, status)
      }
    })

    it('responds once, however often it is resumed', async () => {
      const fresh = auth.openBrowser()
      const { interaction = '' } = readRedirect(await auth.authorize(fresh))
      await fresh.login()
      const responses = await Promise.all(
        Array.from({ length: 10 }, () => fresh.get(`/oauth2/resume?interaction=${interaction}`)),
      )
      assert.equal(responses.filter(one => one.headers.location?.includes('code=')).length, 1)
      const late = await fresh.get(`/oauth2/resume?interaction=${interaction}`)
      assert.equal(late.statusCode, 400)
      assert.match(late.body, /This request was already answered/)
    })
  })
})
