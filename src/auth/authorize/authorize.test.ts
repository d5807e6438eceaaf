import assert from 'node:assert/strict'
import { before, beforeEach, describe, it } from 'node:test'
import { readForm } from '../testing/read-form.ts'
import {
  decodeClaims,
  readRedirect,
  TestAuthServer,
  unknownToken,
  VERIFIER,
} from '../testing/test-auth-server.ts'
import type { TestBrowser } from '../testing/test-browser.ts'
import { openTestStore } from '../testing/test-store.ts'

const SELFMADE = { client_id: 'selfmade', redirect_uri: 'https://selfmade.example/callback' }
const SELFMADE_SCOPE = 'launch openid fhirUser patient/Patient.rs'

describe('GET /oauth2/authorize', () => {
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

  it('responds to a valid request with a code, the exact state, and iss', async () => {
    const state = 'a b&c=d/é?#%20'.repeat(40)
    const response = await auth.authorize(mainBrowser, { launch: await auth.launch(mainBrowser), state })
    assert.equal(response.statusCode, 302)
    const address = new URL(response.headers.location ?? '')
    assert.equal(address.origin + address.pathname, 'http://localhost:8081/callback')
    assert.equal(address.searchParams.get('state'), state)
    assert.equal(address.searchParams.get('iss'), 'http://localhost:9000')
    assert.match(address.searchParams.get('code') ?? '', /^[\w-]{43}$/)
  })

  it('does nothing on HEAD, so that a link scanner consumes no launch token', async () => {
    const launch = await auth.launch(mainBrowser)
    const url = `/oauth2/authorize?${new URLSearchParams(auth.makeParameters({ launch }))}`
    const cookie = `sallyport-login=${mainBrowser.cookies.get('sallyport-login')}`
    assert.equal((await auth.app.inject({ method: 'HEAD', url, headers: { cookie } })).statusCode, 405)
    assert.ok(readRedirect(await auth.authorize(mainBrowser, { launch })).code)
  })

  it('keeps the query of a registered redirect URI', async () => {
    const launch = await auth.launch(mainBrowser, { clientId: 'query' })
    const redirect_uri = 'https://query.example/cb?tenant=a%20b'
    const response = await auth.authorize(mainBrowser, { client_id: 'query', redirect_uri, launch })
    assert.ok(response.headers.location?.startsWith(`${redirect_uri}&code=`))
  })

  describe('never redirects to an unverified URI', () => {
    const cases: readonly (readonly [string, Record<string, string | undefined>])[] = [
      ['no client', { client_id: undefined }],
      ['an unknown client', { client_id: 'nobody' }],
      ['no redirect_uri', { redirect_uri: undefined }],
      ['a longer redirect_uri', { redirect_uri: 'http://localhost:8081/callback/more' }],
      ['a redirect_uri with a query', { redirect_uri: 'http://localhost:8081/callback?x=1' }],
      ['a redirect_uri with a fragment', { redirect_uri: 'http://localhost:8081/callback#x' }],
      ['another host', { redirect_uri: 'http://localhost:8081.evil.example/callback' }],
      ['another case', { redirect_uri: 'http://LOCALHOST:8081/callback' }],
      ['the URI of another client', { redirect_uri: 'https://third.example/callback' }],
      ['markup', { redirect_uri: '"><script>alert(1)</script>' }],
      ['a NUL', { client_id: 'sallyport-app\0' }],
    ]
    for (const [name, different] of cases) {
      it(`shows a page for ${name}`, async () => {
        const response = await auth.authorize(mainBrowser, different)
        assert.equal(response.statusCode, 400)
        assert.equal(response.headers.location, undefined)
        assert.match(String(response.headers['content-type']), /^text\/html/)
        assert.match(response.body, /The app could not be opened/)
        assert.doesNotMatch(response.body, /<script>alert/)
      })
    }

    it('shows a page for a repeated client_id or redirect_uri', async () => {
      const query = new URLSearchParams(auth.makeParameters())
      for (const name of ['client_id', 'redirect_uri']) {
        const response = await mainBrowser.get(`/oauth2/authorize?${query}&${name}=${query.get(name)}`)
        assert.equal(response.statusCode, 400, name)
        assert.equal(response.headers.location, undefined)
      }
    })
  })

  describe('redirects with an error, state and iss', () => {
    const cases: readonly (readonly [string, Record<string, string | undefined>, string])[] = [
      ['no response_type', { response_type: undefined }, 'invalid_request'],
      ['response_type token', { response_type: 'token' }, 'unsupported_response_type'],
      ['response_type code id_token', { response_type: 'code id_token' }, 'unsupported_response_type'],
      ['response_mode fragment', { response_mode: 'fragment' }, 'invalid_request'],
      ['response_mode form_post', { response_mode: 'form_post' }, 'invalid_request'],
      ['a request object', { request: 'a.b.c' }, 'request_not_supported'],
      ['a request_uri', { request_uri: 'https://evil.example' }, 'request_uri_not_supported'],
      ['a registration', { registration: '{}' }, 'registration_not_supported'],
      ['no code_challenge', { code_challenge: undefined }, 'invalid_request'],
      ['no code_challenge_method', { code_challenge_method: undefined }, 'invalid_request'],
      ['code_challenge_method plain', { code_challenge_method: 'plain' }, 'invalid_request'],
      ['a short code_challenge', { code_challenge: 'abc' }, 'invalid_request'],
      ['a padded code_challenge', { code_challenge: `${'a'.repeat(43)}=` }, 'invalid_request'],
      ['no aud', { aud: undefined }, 'invalid_request'],
      ['another aud', { aud: 'https://evil.example/fhir' }, 'invalid_request'],
      ['an aud that begins like ours', { aud: 'http://localhost:8080/fhir.evil' }, 'invalid_request'],
      ['an aud below ours', { aud: 'http://localhost:8080/fhir/Patient' }, 'invalid_request'],
      ['another resource beside our aud', { resource: 'https://evil.example' }, 'invalid_request'],
      ['scopes that nobody knows', { scope: 'frob patient/Nonsense.rs patient/Patient.sr' }, 'invalid_scope'],
      ['scopes that the client may not have', { scope: 'user/*.cruds system/*.rs' }, 'invalid_scope'],
      ['patient scopes without a patient', { scope: 'patient/Patient.rs' }, 'invalid_scope'],
      ['unknown scopes with a launch', { scope: 'bogus', launch: unknownToken }, 'invalid_scope'],
      ['s without r', { scope: 'launch/patient?x patient/Patient.s' }, 'invalid_scope'],
      ['an unknown prompt', { prompt: 'frob' }, 'invalid_request'],
      ['prompt none with another', { prompt: 'none login' }, 'invalid_request'],
      ['a max_age that is no number', { max_age: '-1' }, 'invalid_request'],
      ['an id_token_hint that is none', { id_token_hint: 'a.b.c' }, 'invalid_request'],
      ['an unknown launch', { launch: unknownToken }, 'invalid_request'],
    ]
    for (const [name, different, error] of cases) {
      it(`sends ${error} for ${name}`, async () => {
        const response = await auth.authorize(mainBrowser, different)
        assert.equal(response.statusCode, 302)
        assert.ok(response.headers.location?.startsWith('http://localhost:8081/callback?'))
        const answer = readRedirect(response)
        assert.equal(answer.error, error)
        assert.equal(answer.state, 'state-1')
        assert.equal(answer.iss, 'http://localhost:9000')
        assert.equal(answer.code, undefined)
        // RFC 6749, 4.1.2.1.
        assert.match(answer.error_description ?? '', /^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/)
      })
    }

    // RFC 9700, 4.11.2: otherwise anybody can register a URL, and our address leads there.
    it('shows a page for an unverified app whose user has not decided yet', async () => {
      for (const [name, different] of cases) {
        const response = await auth.authorize(mainBrowser, { ...SELFMADE, ...different })
        assert.deepEqual([response.statusCode, response.headers.location], [400, undefined], name)
        assert.match(response.body, /The app could not be opened/, name)
      }
      const twice = `${new URLSearchParams(auth.makeParameters(SELFMADE))}&aud=x`
      assert.equal((await mainBrowser.get(`/oauth2/authorize?${twice}`)).headers.location, undefined)
      const post = auth.makeParameters({ ...SELFMADE, aud: 'https://evil.example' })
      assert.equal((await mainBrowser.post('/oauth2/authorize', post)).headers.location, undefined)
    })

    it('sends invalid_request for any repeated parameter', async () => {
      const query = new URLSearchParams(auth.makeParameters())
      for (const name of ['scope', 'state', 'aud', 'code_challenge', 'nonce', 'response_type', 'launch']) {
        const response = await mainBrowser.get(`/oauth2/authorize?${query}&${name}=1&${name}=2`)
        assert.equal(readRedirect(response).error, 'invalid_request', name)
      }
    })
  })

  it('accepts the FHIR base URL with a trailing slash, and resource instead of aud', async () => {
    for (const different of [
      { aud: 'http://localhost:8080/fhir/' },
      { aud: undefined, resource: 'http://localhost:8080/fhir' },
    ]) {
      const launch = await auth.launch(mainBrowser)
      assert.ok(readRedirect(await auth.authorize(mainBrowser, { launch, ...different })).code)
    }
  })

  it('grants at most the scopes of the client, and returns them', async () => {
    const launch = await auth.launch(mainBrowser)
    const scope = 'launch openid patient/*.cruds user/Patient.rs offline_access frob'
    const { code = '' } = readRedirect(await auth.authorize(mainBrowser, { launch, scope }))
    assert.equal(
      (await auth.exchange(code)).json().scope,
      'launch openid patient/Patient.rs patient/Condition.rs patient/MedicationRequest.rs patient/Observation.rs',
    )
  })

  it('does not grant launch and patient scopes without a launch', async () => {
    const { code = '' } = readRedirect(await auth.authorize(mainBrowser))
    const body = (await auth.exchange(code)).json()
    assert.equal(body.scope, 'openid fhirUser online_access')
    for (const name of ['patient', 'encounter', 'need_patient_banner'])
      assert.equal(name in body, false, name)
  })

  describe('with prompt, max_age and id_token_hint', () => {
    it('requires a new login if prompt is login or select_account', async () => {
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

    it('requires a new login if the login is older than max_age', async () => {
      auth.time.now += 60_000
      assert.ok(readRedirect(await auth.authorize(mainBrowser, { max_age: '60' })).code)
      auth.time.now += 1
      assert.match(
        (await auth.authorize(mainBrowser, { max_age: '60' })).headers.location ?? '',
        /^\/login\?/,
      )
    })

    it('responds to prompt=none with login_required without a login', async () => {
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
      await auth.addClinician('another')
      const another = await auth.logIn('another')
      const hinted = { ...SELFMADE, id_token_hint: own.id_token }
      const theirs = { ...SELFMADE, launch: await auth.launch(mainBrowser, { clientId: 'selfmade' }) }
      for (const [response, error] of [
        [await auth.authorize(auth.openBrowser(), silent), 'login_required'],
        [await auth.authorize(mainBrowser, silent), 'consent_required'],
        [await auth.authorize(mainBrowser, picking), 'interaction_required'],
        [await auth.authorize(another, hinted), 'login_required'],
        [await auth.authorize(another, theirs), 'invalid_request'],
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
      await auth.addClinician('third-person')
      const browser = auth.openBrowser()
      const response = await auth.authorize(browser, { ...SELFMADE, id_token_hint: own.id_token })
      const { interaction = '' } = readRedirect(response)
      const login = await browser.get(response.headers.location ?? '')
      assert.match(login.body, /selfmade sent you here\.[\s\S]*Unverified app/)
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
      await auth.addClinician('hinted')
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
    it('continues the request unchanged after the login page', async () => {
      const launch = await auth.launch(mainBrowser)
      const fresh = auth.openBrowser()
      const response = await auth.authorize(fresh, { launch })
      assert.match(response.headers.location ?? '', /^\/login\?interaction=[\w-]{43}$/)
      const form = await fresh.get(response.headers.location ?? '')
      assert.match(form.body, /Demo app sent you here\./)
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

    it('keeps a launch that expires during the login for 10 minutes', async () => {
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
      assert.match(late.body, /This sign-in has ended/)
    })
  })

  describe('by POST', () => {
    it('responds as to GET', async () => {
      const launch = await auth.launch(mainBrowser)
      const response = await mainBrowser.post('/oauth2/authorize', auth.makeParameters({ launch }))
      assert.ok(readRedirect(response).code)
    })

    it('accepts a form of another site, and finds the login although the browser omits its cookie', async () => {
      const launch = await auth.launch(mainBrowser)
      const response = await auth
        .openBrowser()
        .post('/oauth2/authorize', auth.makeParameters({ launch }), { 'sec-fetch-site': 'cross-site' })
      assert.equal(response.statusCode, 303)
      // The browser sends its cookie with the GET that follows.
      assert.ok(readRedirect(await mainBrowser.get(response.headers.location ?? '')).code)
    })

    it('refuses a body that is not a form', async () => {
      const response = await auth.app.inject({
        method: 'POST',
        url: '/oauth2/authorize',
        payload: '<x/>',
        headers: { 'content-type': 'text/xml' },
      })
      assert.equal(response.statusCode, 415)
    })
  })
})

describe('GET /oauth2/authorize of older and native apps', () => {
  const open = openTestStore()
  let auth: TestAuthServer
  let mainBrowser: TestBrowser
  before(async () => {
    auth = await TestAuthServer.open(await open())
    await auth.addClient({ client_id: 'old', pkce_required: false })
    mainBrowser = await auth.logIn()
  })
  const OLD = { client_id: 'old', redirect_uri: 'https://old.example/callback' }
  const WITHOUT_PKCE = { ...OLD, code_challenge: undefined, code_challenge_method: undefined }
  const codeOf = async (different: Record<string, string | undefined>) =>
    readRedirect(await auth.authorize(mainBrowser, { scope: 'openid', ...different })).code ?? ''

  describe('with optional PKCE', () => {
    it('accepts a request without a challenge, and its code without a verifier', async () => {
      const form = { grant_type: 'authorization_code', ...OLD, code: await codeOf(WITHOUT_PKCE) }
      // RFC 9700, 4.8.2: a verifier without a challenge is a downgrade.
      const downgraded = await auth.requestToken({ ...form, code_verifier: VERIFIER })
      assert.equal(downgraded.json().error, 'invalid_grant')
      assert.equal((await auth.requestToken(form)).statusCode, 200)
    })

    it('verifies a challenge that is present', async () => {
      const form = { grant_type: 'authorization_code', ...OLD, code: await codeOf(OLD) }
      const forgotten = await auth.requestToken(form)
      assert.equal(forgotten.json().error, 'invalid_grant')
      const wrong = await auth.requestToken({ ...form, code_verifier: 'x'.repeat(43) })
      assert.equal(wrong.json().error, 'invalid_grant')
      assert.equal((await auth.requestToken({ ...form, code_verifier: VERIFIER })).statusCode, 200)
      for (const different of [
        { code_challenge_method: 'plain' },
        { code_challenge_method: undefined },
        { code_challenge: undefined },
        { code_challenge: 'short' },
      ])
        assert.equal(
          readRedirect(await auth.authorize(mainBrowser, { ...OLD, ...different })).error,
          'invalid_request',
        )
    })

    it('refuses a code without a challenge after the registration requires PKCE', async () => {
      const code = await codeOf(WITHOUT_PKCE)
      const require = (pkce_required: boolean) =>
        auth.store.db.updateTable('client').set({ pkce_required }).where('client_id', '=', 'old').execute()
      await require(true)
      const refused = await auth.requestToken({ grant_type: 'authorization_code', ...OLD, code })
      assert.equal(refused.json().error, 'invalid_request')
      await require(false)
    })
  })

  it('grants the registered scopes if scope is omitted, in a launch too', async () => {
    const scopeOf = async (different: Record<string, string | undefined>) => {
      const { code = '' } = readRedirect(
        await auth.authorize(mainBrowser, { ...OLD, scope: undefined, ...different }),
      )
      return (await auth.exchange(code, OLD)).json().scope
    }
    assert.equal(await scopeOf({}), 'openid fhirUser offline_access')
    const launch = await auth.launch(mainBrowser, { clientId: 'old' })
    assert.equal(await scopeOf({ launch }), 'launch openid fhirUser offline_access patient/*.rs')
    await auth.addClient({ client_id: 'plain', scope: 'openid patient/Patient.rs' })
    const plain = { client_id: 'plain', redirect_uri: 'https://plain.example/callback' }
    const launched = await auth.launch(mainBrowser, { clientId: 'plain' })
    const different = { ...plain, launch: launched, scope: undefined }
    const { code = '' } = readRedirect(await auth.authorize(mainBrowser, different))
    assert.equal((await auth.exchange(code, plain)).json().scope, 'openid patient/Patient.rs launch')
  })

  it('omits iss if the client opted out, in errors too', async () => {
    await auth.addClient({ client_id: 'new-tab', iss_parameter: false })
    const client = { client_id: 'new-tab', redirect_uri: 'https://new-tab.example/callback' }
    const [done, failed] = [
      readRedirect(await auth.authorize(mainBrowser, { ...client, scope: 'openid' })),
      readRedirect(await auth.authorize(mainBrowser, { ...client, aud: 'https://other.example' })),
    ]
    assert.ok(done.code)
    assert.equal(failed.error, 'invalid_request')
    assert.deepEqual([done.iss, failed.iss], [undefined, undefined])
    const silent = readRedirect(
      await auth.authorize(auth.openBrowser(), { ...client, scope: 'openid', prompt: 'none' }),
    )
    assert.deepEqual([silent.error, silent.iss], ['login_required', undefined])
    assert.equal(
      readRedirect(await auth.authorize(mainBrowser, { ...OLD, scope: 'openid' })).iss,
      'http://localhost:9000',
    )
  })

  // RFC 8252, 7.3.
  describe('with a loopback redirect URI', () => {
    const registered = ['http://127.0.0.1/cb?x=1', 'http://[::1]:7000/cb', 'http://localhost:7000/cb']
    before(async () => {
      for (const [client_id, more] of [
        ['native', {}],
        ['native-old', { pkce_required: false }],
        ['web', { auth_method: 'client_secret', secret_hash: 'x' }],
      ] as const)
        await auth.addClient({ client_id, redirect_uris: JSON.stringify(registered), ...more })
    })
    const ask = async (redirect_uri: string, client_id = 'native') =>
      auth.authorize(mainBrowser, { client_id, redirect_uri, scope: 'openid' })

    it('accepts every port at an IP literal, and redirects there', async () => {
      for (const redirect_uri of [
        'http://127.0.0.1/cb?x=1',
        'http://127.0.0.1:51004/cb?x=1',
        'http://[::1]/cb',
        'http://[::1]:61023/cb',
        'http://localhost:7000/cb',
      ]) {
        const response = await ask(redirect_uri)
        assert.ok(response.headers.location?.startsWith(redirect_uri), redirect_uri)
        const { code = '' } = readRedirect(response)
        const exchanged = await auth.exchange(code, { client_id: 'native', redirect_uri })
        assert.equal(exchanged.statusCode, 200, redirect_uri)
      }
      const { code = '' } = readRedirect(await ask('http://127.0.0.1:51004/cb?x=1'))
      const other = { client_id: 'native', redirect_uri: 'http://127.0.0.1:51005/cb?x=1' }
      assert.equal((await auth.exchange(code, other)).json().error, 'invalid_grant')
    })

    it('keeps a port that differs from the registered one across the login page', async () => {
      const browser = auth.openBrowser()
      const redirect_uri = 'http://127.0.0.1:51004/cb?x=1'
      const different = { client_id: 'native', redirect_uri, scope: 'openid' }
      const { interaction = '' } = readRedirect(await auth.authorize(browser, different))
      const done = await browser.post('/login', { username: 'clinician', password: 'sallyport', interaction })
      const answer = await browser.follow(done, auth.settings.issuerUrl)
      assert.ok(answer.headers.location?.startsWith(`${redirect_uri}&code=`))
    })

    it('accepts no other difference from the registered URI', async () => {
      for (const [redirect_uri, client] of [
        ['http://localhost:7001/cb', 'native'],
        ['http://127.0.0.1:51004/cb', 'native'],
        ['http://127.0.0.1:51004/cb?x=1#y', 'native'],
        ['http://127.0.0.1:51004/other?x=1', 'native'],
        ['http://127.0.0.1:51004@evil.example/cb?x=1', 'native'],
        ['http://u@127.0.0.1:51004/cb?x=1', 'native'],
        ['http://127.0.0.1:99999/cb?x=1', 'native'],
        ['http://127.0.0.1:0x50/cb?x=1', 'native'],
        ['http://127.0.0.2:51004/cb?x=1', 'native'],
        ['http://2130706433:51004/cb?x=1', 'native'],
        ['https://127.0.0.1:51004/cb?x=1', 'native'],
        ['http://127.0.0.1:51004/cb?x=1', 'native-old'],
        ['http://127.0.0.1:51004/cb?x=1', 'web'],
      ] as const) {
        const response = await ask(redirect_uri, client)
        assert.deepEqual([response.statusCode, response.headers.location], [400, undefined], redirect_uri)
      }
    })
  })
})
