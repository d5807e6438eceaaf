import assert from 'node:assert/strict'
import { before, beforeEach, describe, it } from 'node:test'
import { readRedirect, TestAuthServer, unknownToken } from '../../testing/test-auth-server.ts'
import type { TestBrowser } from '../../testing/test-browser.ts'
import { openTestStore } from '../../testing/test-store.ts'

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

  it('responds to a valid request with a code, the exact state, and iss (AUTHORIZE-1)', async () => {
    const state = 'a b&c=d/é?#%20'.repeat(40)
    const response = await auth.authorize(mainBrowser, { launch: await auth.launch(mainBrowser), state })
    assert.equal(response.statusCode, 302)
    const address = new URL(response.headers.location ?? '')
    assert.equal(address.origin + address.pathname, 'http://localhost:8081/callback')
    assert.equal(address.searchParams.get('state'), state)
    assert.equal(address.searchParams.get('iss'), 'http://localhost:9000')
    assert.match(address.searchParams.get('code') ?? '', /^[\w-]{43}$/)
  })

  it('does nothing on HEAD, so that a link scanner consumes no launch token (AUTHORIZE-12)', async () => {
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

  describe('never redirects to an unverified URI (AUTHORIZE-2)', () => {
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

    it('does not disclose what is registered (LAB-10)', async () => {
      for (const different of [{ redirect_uri: 'https://x.example' }, { client_id: 'sallyport-ap' }]) {
        const { body } = await auth.authorize(mainBrowser, different)
        assert.doesNotMatch(body, /Registered<|sallyport-app|localhost:8081/)
      }
    })

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
      ['code_challenge_method plain (AUTHORIZE-4)', { code_challenge_method: 'plain' }, 'invalid_request'],
      ['a short code_challenge', { code_challenge: 'abc' }, 'invalid_request'],
      ['a padded code_challenge', { code_challenge: `${'a'.repeat(43)}=` }, 'invalid_request'],
      ['no aud', { aud: undefined }, 'invalid_request'],
      ['another aud', { aud: 'https://evil.example/fhir' }, 'invalid_request'],
      [
        'an aud that begins with the FHIR base URL (AUTHORIZE-3)',
        { aud: 'http://localhost:8080/fhir.evil' },
        'invalid_request',
      ],
      ['an aud below the FHIR base URL', { aud: 'http://localhost:8080/fhir/Patient' }, 'invalid_request'],
      ['another resource beside our aud', { resource: 'https://evil.example' }, 'invalid_target'],
      ['unknown scopes', { scope: 'frob patient/Nonsense.rs patient/Patient.sr' }, 'invalid_scope'],
      ['scopes that the client may not have', { scope: 'user/*.cruds system/*.rs' }, 'invalid_scope'],
      ['patient scopes without a patient (AUTHORIZE-6)', { scope: 'patient/Patient.rs' }, 'invalid_scope'],
      [
        'unknown scopes with a launch (AUTHORIZE-5)',
        { scope: 'bogus', launch: unknownToken },
        'invalid_scope',
      ],
      ['s without r (AUTHORIZE-7)', { scope: 'launch/patient?x patient/Patient.s' }, 'invalid_scope'],
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

    // RFC 9700, 4.11.2: otherwise this server is an open redirector to any URL that an attacker registers.
    it('shows a page for an unverified app whose user has not decided yet (CLIENT-3)', async () => {
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

    it('sends invalid_request for any repeated parameter (AUTHORIZE-10)', async () => {
      const query = new URLSearchParams(auth.makeParameters())
      for (const name of ['scope', 'state', 'aud', 'code_challenge', 'nonce', 'response_type', 'launch']) {
        const response = await mainBrowser.get(`/oauth2/authorize?${query}&${name}=1&${name}=2`)
        assert.equal(readRedirect(response).error, 'invalid_request', name)
      }
    })
  })

  it('accepts the FHIR base URL with a trailing slash, and resource instead of aud (AUTHORIZE-3)', async () => {
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

  it('does not grant launch and patient scopes without a launch (AUTHORIZE-6)', async () => {
    const { code = '' } = readRedirect(await auth.authorize(mainBrowser))
    const body = (await auth.exchange(code)).json()
    assert.equal(body.scope, 'openid fhirUser online_access')
    for (const name of ['patient', 'encounter', 'need_patient_banner'])
      assert.equal(name in body, false, name)
  })

  describe('by POST', () => {
    it('responds as to GET', async () => {
      const launch = await auth.launch(mainBrowser)
      const response = await mainBrowser.post('/oauth2/authorize', auth.makeParameters({ launch }))
      assert.ok(readRedirect(response).code)
    })

    it('accepts a form of another site, and finds the login although the browser omits its cookie (AUTHORIZE-1)', async () => {
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
