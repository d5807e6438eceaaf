import assert from 'node:assert/strict'
import { before, beforeEach, describe, it } from 'node:test'
import { readForm } from '../testing/read-form.ts'
import {
  decodeClaims,
  readAnswer,
  strangerToken,
  TestAuthServer,
  VERIFIER,
} from '../testing/test-auth-server.ts'
import type { TestBrowser } from '../testing/test-browser.ts'
import { openTestStore } from '../testing/test-store.ts'

const SELFMADE = { client_id: 'selfmade', redirect_uri: 'https://selfmade.example/callback' }
const SELFMADE_SCOPE = 'launch openid fhirUser patient/Patient.rs'

describe('GET /oauth2/authorize', () => {
  const open = openTestStore()
  let house: TestAuthServer
  let visitor: TestBrowser
  before(async () => {
    house = await TestAuthServer.open(await open())
    await house.addClient({ client_id: 'query', redirect_uris: '["https://query.example/cb?tenant=a%20b"]' })
    await house.addClient({ client_id: 'third', first_party: false })
    await house.addClient({
      client_id: 'selfmade',
      first_party: false,
      approved: false,
      scope: SELFMADE_SCOPE,
    })
  })
  beforeEach(async () => {
    visitor = await house.loggedIn()
  })

  it('answers a right request with a code, the exact state, and iss', async () => {
    const state = 'a b&c=d/é?#%20'.repeat(40)
    const response = await house.authorize(visitor, { launch: await house.launch(visitor), state })
    assert.equal(response.statusCode, 302)
    const address = new URL(response.headers.location ?? '')
    assert.equal(address.origin + address.pathname, 'http://localhost:8081/callback')
    assert.equal(address.searchParams.get('state'), state)
    assert.equal(address.searchParams.get('iss'), 'http://localhost:9000')
    assert.match(address.searchParams.get('code') ?? '', /^[\w-]{43}$/)
  })

  it('does nothing on HEAD: a link scanner uses no launch up', async () => {
    const launch = await house.launch(visitor)
    const url = `/oauth2/authorize?${new URLSearchParams(house.parameters({ launch }))}`
    const cookie = `sallyport-login=${visitor.cookies.get('sallyport-login')}`
    assert.equal((await house.app.inject({ method: 'HEAD', url, headers: { cookie } })).statusCode, 405)
    assert.ok(readAnswer(await house.authorize(visitor, { launch })).code)
  })

  it('keeps the query of a registered redirect address', async () => {
    const launch = await house.launch(visitor, { clientId: 'query' })
    const redirect_uri = 'https://query.example/cb?tenant=a%20b'
    const response = await house.authorize(visitor, { client_id: 'query', redirect_uri, launch })
    assert.ok(response.headers.location?.startsWith(`${redirect_uri}&code=`))
  })

  describe('never redirects to an address that was not verified', () => {
    const cases: readonly (readonly [string, Record<string, string | undefined>])[] = [
      ['no client', { client_id: undefined }],
      ['an unknown client', { client_id: 'nobody' }],
      ['no redirect_uri', { redirect_uri: undefined }],
      ['a longer redirect_uri', { redirect_uri: 'http://localhost:8081/callback/more' }],
      ['a redirect_uri with a query', { redirect_uri: 'http://localhost:8081/callback?x=1' }],
      ['a redirect_uri with a fragment', { redirect_uri: 'http://localhost:8081/callback#x' }],
      ['another host', { redirect_uri: 'http://localhost:8081.evil.example/callback' }],
      ['another case', { redirect_uri: 'http://LOCALHOST:8081/callback' }],
      ['another client’s address', { redirect_uri: 'https://third.example/callback' }],
      ['markup', { redirect_uri: '"><script>alert(1)</script>' }],
      ['a NUL', { client_id: 'sallyport-app\0' }],
    ]
    for (const [name, different] of cases) {
      it(name, async () => {
        const response = await house.authorize(visitor, different)
        assert.equal(response.statusCode, 400)
        assert.equal(response.headers.location, undefined)
        assert.match(String(response.headers['content-type']), /^text\/html/)
        assert.match(response.body, /The app could not be opened/)
        assert.doesNotMatch(response.body, /<script>alert/)
      })
    }

    it('a client_id or redirect_uri that comes twice', async () => {
      const query = new URLSearchParams(house.parameters())
      for (const name of ['client_id', 'redirect_uri']) {
        const response = await visitor.get(`/oauth2/authorize?${query}&${name}=${query.get(name)}`)
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
      ['unknown scopes with a launch', { scope: 'bogus', launch: strangerToken }, 'invalid_scope'],
      ['s without r', { scope: 'launch/patient?x patient/Patient.s' }, 'invalid_scope'],
      ['an unknown prompt', { prompt: 'frob' }, 'invalid_request'],
      ['prompt none with another', { prompt: 'none login' }, 'invalid_request'],
      ['a max_age that is no number', { max_age: '-1' }, 'invalid_request'],
      ['an id_token_hint that is none', { id_token_hint: 'a.b.c' }, 'invalid_request'],
      ['an unknown launch', { launch: strangerToken }, 'invalid_request'],
    ]
    for (const [name, different, error] of cases) {
      it(`${error} for ${name}`, async () => {
        const response = await house.authorize(visitor, different)
        assert.equal(response.statusCode, 302)
        assert.ok(response.headers.location?.startsWith('http://localhost:8081/callback?'))
        const answer = readAnswer(response)
        assert.equal(answer.error, error)
        assert.equal(answer.state, 'state-1')
        assert.equal(answer.iss, 'http://localhost:9000')
        assert.equal(answer.code, undefined)
        // RFC 6749, 4.1.2.1.
        assert.match(answer.error_description ?? '', /^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/)
      })
    }

    // RFC 9700, 4.11.2: otherwise anybody can register a URL, and our address leads there.
    it('on a page instead, where nobody vouches for the app and its user has not decided anything', async () => {
      for (const [name, different] of cases) {
        const response = await house.authorize(visitor, { ...SELFMADE, ...different })
        assert.deepEqual([response.statusCode, response.headers.location], [400, undefined], name)
        assert.match(response.body, /The app could not be opened/, name)
      }
      const twice = `${new URLSearchParams(house.parameters(SELFMADE))}&aud=x`
      assert.equal((await visitor.get(`/oauth2/authorize?${twice}`)).headers.location, undefined)
      const post = house.parameters({ ...SELFMADE, aud: 'https://evil.example' })
      assert.equal((await visitor.post('/oauth2/authorize', post)).headers.location, undefined)
    })

    it('invalid_request for any parameter that comes twice', async () => {
      const query = new URLSearchParams(house.parameters())
      for (const name of ['scope', 'state', 'aud', 'code_challenge', 'nonce', 'response_type', 'launch']) {
        const response = await visitor.get(`/oauth2/authorize?${query}&${name}=1&${name}=2`)
        assert.equal(readAnswer(response).error, 'invalid_request', name)
      }
    })
  })

  it('accepts the FHIR base with a trailing slash, and resource in place of aud', async () => {
    for (const different of [
      { aud: 'http://localhost:8080/fhir/' },
      { aud: undefined, resource: 'http://localhost:8080/fhir' },
    ]) {
      const launch = await house.launch(visitor)
      assert.ok(readAnswer(await house.authorize(visitor, { launch, ...different })).code)
    }
  })

  it('grants no more than the client may have, and says so', async () => {
    const launch = await house.launch(visitor)
    const scope = 'launch openid patient/*.cruds user/Patient.rs offline_access frob'
    const { code = '' } = readAnswer(await house.authorize(visitor, { launch, scope }))
    assert.equal(
      (await house.exchange(code)).json().scope,
      'launch openid patient/Patient.rs patient/Condition.rs patient/MedicationRequest.rs patient/Observation.rs',
    )
  })

  it('leaves launch and patient scopes out where nothing was launched', async () => {
    const { code = '' } = readAnswer(await house.authorize(visitor))
    const body = (await house.exchange(code)).json()
    assert.equal(body.scope, 'openid fhirUser online_access')
    for (const name of ['patient', 'encounter', 'need_patient_banner'])
      assert.equal(name in body, false, name)
  })

  describe('with prompt, max_age and id_token_hint', () => {
    it('asks for the login once more when prompt is login or select_account', async () => {
      for (const prompt of ['login', 'select_account']) {
        house.time.now += 1000
        const response = await house.authorize(visitor, { prompt })
        const form = await visitor.get(response.headers.location ?? '')
        assert.match(form.body, /Sign in/)
        const { interaction = '' } = readAnswer(response)
        const done = await visitor.post('/login', {
          username: 'clinician',
          password: 'sallyport',
          interaction,
        })
        assert.ok(readAnswer(await visitor.follow(done, house.settings.issuerUrl)).code, prompt)
      }
    })

    it('asks for the login once more when it is older than max_age', async () => {
      house.time.now += 60_000
      assert.ok(readAnswer(await house.authorize(visitor, { max_age: '60' })).code)
      house.time.now += 1
      assert.match((await house.authorize(visitor, { max_age: '60' })).headers.location ?? '', /^\/login\?/)
    })

    it('answers prompt none with login_required when nobody is logged in', async () => {
      assert.equal(
        readAnswer(await house.authorize(house.visitor(), { prompt: 'none' })).error,
        'login_required',
      )
      assert.ok(readAnswer(await house.authorize(visitor, { prompt: 'none' })).code)
    })

    it('answers what an unverified app asks silently on a page, and redirects once its user has decided', async () => {
      const silent = { ...SELFMADE, prompt: 'none', scope: SELFMADE_SCOPE }
      const picking = { ...silent, scope: 'launch/patient patient/Patient.rs' }
      const own = (await house.exchange(await house.code(visitor))).json()
      await house.addClinician('another')
      const another = await house.loggedIn('another')
      const hinted = { ...SELFMADE, id_token_hint: own.id_token }
      const theirs = { ...SELFMADE, launch: await house.launch(visitor, { clientId: 'selfmade' }) }
      for (const [response, error] of [
        [await house.authorize(house.visitor(), silent), 'login_required'],
        [await house.authorize(visitor, silent), 'consent_required'],
        [await house.authorize(visitor, picking), 'interaction_required'],
        [await house.authorize(another, hinted), 'login_required'],
        [await house.authorize(another, theirs), 'invalid_request'],
      ] as const) {
        assert.deepEqual([response.statusCode, response.headers.location], [400, undefined], error)
        assert.match(response.body, new RegExp(error))
      }
      for (const [decision, answer] of [
        ['deny', /^https:\/\/selfmade\.example\/callback\?error=access_denied/],
        ['allow', /^https:\/\/selfmade\.example\/callback\?code=/],
      ] as const) {
        const launch = await house.launch(visitor, { clientId: 'selfmade' })
        const asked = await house.authorize(visitor, { ...SELFMADE, launch })
        const page = await visitor.follow(asked, house.settings.issuerUrl)
        const done = await visitor.post('/oauth2/consent', `${readForm(page.body)}&decision=${decision}`)
        assert.match(done.headers.location ?? '', answer)
      }
    })

    it('logs in for an unverified app without a redirect to it, where the login does not fit', async () => {
      const own = (await house.exchange(await house.code(visitor))).json()
      await house.addClinician('third-person')
      const browser = house.visitor()
      const response = await house.authorize(browser, { ...SELFMADE, id_token_hint: own.id_token })
      const { interaction = '' } = readAnswer(response)
      const login = await browser.get(response.headers.location ?? '')
      assert.match(login.body, /selfmade sent you here\.[\s\S]*Unverified app/)
      const done = await browser.post('/login', {
        username: 'third-person',
        password: 'sallyport',
        interaction,
      })
      const ended = await browser.follow(done, house.settings.issuerUrl)
      assert.deepEqual([ended.statusCode, ended.headers.location], [400, undefined])
    })

    it('answers prompt none with consent_required when the clinician was not asked', async () => {
      const redirect_uri = 'https://third.example/callback'
      const response = await house.authorize(visitor, { client_id: 'third', redirect_uri, prompt: 'none' })
      assert.equal(readAnswer(response).error, 'consent_required')
    })

    it('takes an id_token of the same user, even an old one, and refuses that of another', async () => {
      const { id_token: hint } = (await house.exchange(await house.code(visitor))).json()
      assert.ok(readAnswer(await house.authorize(visitor, { id_token_hint: hint })).code)
      await house.addClinician('hinted')
      const other = await house.loggedIn('hinted')
      assert.equal(readAnswer(await house.authorize(other, { id_token_hint: hint })).error, 'login_required')
    })

    it('refuses an access token as id_token_hint', async () => {
      const { access_token: hint } = (await house.exchange(await house.code(visitor))).json()
      assert.equal(
        readAnswer(await house.authorize(visitor, { id_token_hint: hint })).error,
        'invalid_request',
      )
    })

    it('shows the login_hint in the login form, escaped', async () => {
      const fresh = house.visitor()
      const response = await house.authorize(fresh, { login_hint: '"><script>' })
      const page = await fresh.get(response.headers.location ?? '')
      assert.match(page.body, /value="&quot;&gt;&lt;script&gt;"/)
    })
  })

  describe('when nobody is logged in', () => {
    it('goes over the login page back to the request, with nothing lost', async () => {
      const launch = await house.launch(visitor)
      const fresh = house.visitor()
      const response = await house.authorize(fresh, { launch })
      assert.match(response.headers.location ?? '', /^\/login\?interaction=[\w-]{43}$/)
      const form = await fresh.get(response.headers.location ?? '')
      assert.match(form.body, /Demo app sent you here\./)
      // The policy of the page lets the form's redirects through to the app.
      assert.match(
        String(form.headers['content-security-policy']),
        /form-action 'self' http:\/\/localhost:8081;/,
      )
      const { interaction = '' } = readAnswer(response)
      const wrong = await fresh.post('/login', { username: 'clinician', password: 'no', interaction })
      assert.ok(wrong.body.includes(`name="interaction" value="${interaction}"`))
      const done = await fresh.post('/login', { username: 'clinician', password: 'sallyport', interaction })
      const answer = readAnswer(await fresh.follow(done, house.settings.issuerUrl))
      const body = (await house.exchange(answer.code ?? '')).json()
      assert.equal(answer.state, 'state-1')
      assert.equal(body.patient, 'juniper')
      assert.equal(decodeClaims(body.id_token).nonce, 'nonce-1')
    })

    it('holds a launch that expires meanwhile for 10 minutes, and no longer', async () => {
      for (const [minutes, status] of [
        [9, 302],
        [11, 400],
      ] as const) {
        const launch = await house.launch(await house.loggedIn())
        house.time.now += 4 * 60_000
        const fresh = house.visitor()
        const { interaction = '' } = readAnswer(await house.authorize(fresh, { launch }))
        house.time.now += minutes * 60_000
        const login = await fresh.post('/login', {
          username: 'clinician',
          password: 'sallyport',
          interaction,
        })
        if (status === 302) assert.ok(readAnswer(await fresh.follow(login, house.settings.issuerUrl)).code)
        else assert.equal((await fresh.get(`/oauth2/resume?interaction=${interaction}`)).statusCode, status)
      }
    })

    it('answers once, however often it is resumed', async () => {
      const fresh = house.visitor()
      const { interaction = '' } = readAnswer(await house.authorize(fresh))
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
    it('answers like GET', async () => {
      const launch = await house.launch(visitor)
      const response = await visitor.post('/oauth2/authorize', house.parameters({ launch }))
      assert.ok(readAnswer(response).code)
    })

    it('accepts a form of another site, and finds the login that its cookie is left out of', async () => {
      const launch = await house.launch(visitor)
      const response = await house
        .visitor()
        .post('/oauth2/authorize', house.parameters({ launch }), { 'sec-fetch-site': 'cross-site' })
      assert.equal(response.statusCode, 303)
      // The browser sends its cookie with the GET that follows.
      assert.ok(readAnswer(await visitor.get(response.headers.location ?? '')).code)
    })

    it('refuses what is not a form', async () => {
      const response = await house.app.inject({
        method: 'POST',
        url: '/oauth2/authorize',
        payload: '<x/>',
        headers: { 'content-type': 'text/xml' },
      })
      assert.equal(response.statusCode, 415)
    })
  })
})

describe('GET /oauth2/authorize of apps that are older than the rules, or native', () => {
  const open = openTestStore()
  let house: TestAuthServer
  let visitor: TestBrowser
  before(async () => {
    house = await TestAuthServer.open(await open())
    await house.addClient({ client_id: 'old', pkce_required: false })
    visitor = await house.loggedIn()
  })
  const OLD = { client_id: 'old', redirect_uri: 'https://old.example/callback' }
  const WITHOUT_PKCE = { ...OLD, code_challenge: undefined, code_challenge_method: undefined }
  const codeOf = async (different: Record<string, string | undefined>) =>
    readAnswer(await house.authorize(visitor, { scope: 'openid', ...different })).code ?? ''

  describe('where PKCE is optional', () => {
    it('takes a request without a challenge, and its code without a verifier', async () => {
      const form = { grant_type: 'authorization_code', ...OLD, code: await codeOf(WITHOUT_PKCE) }
      // RFC 9700, 4.8.2: a verifier without a challenge is a downgrade.
      const downgraded = await house.token({ ...form, code_verifier: VERIFIER })
      assert.equal(downgraded.json().error, 'invalid_grant')
      assert.equal((await house.token(form)).statusCode, 200)
    })

    it('checks a challenge that is there', async () => {
      const form = { grant_type: 'authorization_code', ...OLD, code: await codeOf(OLD) }
      const forgotten = await house.token(form)
      assert.equal(forgotten.json().error, 'invalid_grant')
      const wrong = await house.token({ ...form, code_verifier: 'x'.repeat(43) })
      assert.equal(wrong.json().error, 'invalid_grant')
      assert.equal((await house.token({ ...form, code_verifier: VERIFIER })).statusCode, 200)
      for (const different of [
        { code_challenge_method: 'plain' },
        { code_challenge_method: undefined },
        { code_challenge: undefined },
        { code_challenge: 'short' },
      ])
        assert.equal(
          readAnswer(await house.authorize(visitor, { ...OLD, ...different })).error,
          'invalid_request',
        )
    })

    it('ends with the registration: a code without challenge is refused once PKCE is required', async () => {
      const code = await codeOf(WITHOUT_PKCE)
      const require = (pkce_required: boolean) =>
        house.store.db.updateTable('client').set({ pkce_required }).where('client_id', '=', 'old').execute()
      await require(true)
      const refused = await house.token({ grant_type: 'authorization_code', ...OLD, code })
      assert.equal(refused.json().error, 'invalid_request')
      await require(false)
    })
  })

  it('gives the registered scopes where scope is left out, in a launch too', async () => {
    const scopeOf = async (different: Record<string, string | undefined>) => {
      const { code = '' } = readAnswer(
        await house.authorize(visitor, { ...OLD, scope: undefined, ...different }),
      )
      return (await house.exchange(code, OLD)).json().scope
    }
    assert.equal(await scopeOf({}), 'openid fhirUser offline_access')
    const launch = await house.launch(visitor, { clientId: 'old' })
    assert.equal(await scopeOf({ launch }), 'launch openid fhirUser offline_access patient/*.rs')
    await house.addClient({ client_id: 'plain', scope: 'openid patient/Patient.rs' })
    const plain = { client_id: 'plain', redirect_uri: 'https://plain.example/callback' }
    const launched = await house.launch(visitor, { clientId: 'plain' })
    const different = { ...plain, launch: launched, scope: undefined }
    const { code = '' } = readAnswer(await house.authorize(visitor, different))
    assert.equal((await house.exchange(code, plain)).json().scope, 'openid patient/Patient.rs launch')
  })

  it('leaves iss out where the client opted out, in errors too', async () => {
    await house.addClient({ client_id: 'new-tab', iss_parameter: false })
    const client = { client_id: 'new-tab', redirect_uri: 'https://new-tab.example/callback' }
    const [done, failed] = [
      readAnswer(await house.authorize(visitor, { ...client, scope: 'openid' })),
      readAnswer(await house.authorize(visitor, { ...client, aud: 'https://other.example' })),
    ]
    assert.ok(done.code)
    assert.equal(failed.error, 'invalid_request')
    assert.deepEqual([done.iss, failed.iss], [undefined, undefined])
    const silent = readAnswer(
      await house.authorize(house.visitor(), { ...client, scope: 'openid', prompt: 'none' }),
    )
    assert.deepEqual([silent.error, silent.iss], ['login_required', undefined])
    assert.equal(
      readAnswer(await house.authorize(visitor, { ...OLD, scope: 'openid' })).iss,
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
        await house.addClient({ client_id, redirect_uris: JSON.stringify(registered), ...more })
    })
    const ask = async (redirect_uri: string, client_id = 'native') =>
      house.authorize(visitor, { client_id, redirect_uri, scope: 'openid' })

    it('accepts every port at an IP literal, and sends the code there', async () => {
      for (const redirect_uri of [
        'http://127.0.0.1/cb?x=1',
        'http://127.0.0.1:51004/cb?x=1',
        'http://[::1]/cb',
        'http://[::1]:61023/cb',
        'http://localhost:7000/cb',
      ]) {
        const response = await ask(redirect_uri)
        assert.ok(response.headers.location?.startsWith(redirect_uri), redirect_uri)
        const { code = '' } = readAnswer(response)
        const exchanged = await house.exchange(code, { client_id: 'native', redirect_uri })
        assert.equal(exchanged.statusCode, 200, redirect_uri)
      }
      const { code = '' } = readAnswer(await ask('http://127.0.0.1:51004/cb?x=1'))
      const other = { client_id: 'native', redirect_uri: 'http://127.0.0.1:51005/cb?x=1' }
      assert.equal((await house.exchange(code, other)).json().error, 'invalid_grant')
    })

    it('survives the login page on another port than the registered one', async () => {
      const browser = house.visitor()
      const redirect_uri = 'http://127.0.0.1:51004/cb?x=1'
      const different = { client_id: 'native', redirect_uri, scope: 'openid' }
      const { interaction = '' } = readAnswer(await house.authorize(browser, different))
      const done = await browser.post('/login', { username: 'clinician', password: 'sallyport', interaction })
      const answer = await browser.follow(done, house.settings.issuerUrl)
      assert.ok(answer.headers.location?.startsWith(`${redirect_uri}&code=`))
    })

    it('leaves nothing else open', async () => {
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
