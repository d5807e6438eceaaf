import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { AppBrowser } from '../../../test/support/app-browser.ts'
import { APP_SCOPE, launchBrowser, sessionApp, useSessionApp } from '../../../test/support/session-app.ts'

describe('an EHR that returns invalid responses', () => {
  const setup = useSessionApp()
  const ENDPOINT = /^smart-configuration an endpoint or jwks_uri: Expected an http or https URL$/

  function checkLogged(): string {
    const [line, ...more] = setup.log().filter(({ msg }) => msg === 'Launch refused')
    assert.deepEqual(more, [])
    const text = JSON.stringify(setup.log())
    for (const token of setup.ehr.issued) assert.ok(!text.includes(token))
    assert.doesNotMatch(text, /eyJ[\w-]+\.|code-/)
    return String(line?.check)
  }

  describe('GET /launch', () => {
    for (const [what, configuration, check] of [
      [
        'no token endpoint',
        { token_endpoint: undefined },
        /^smart-configuration token_endpoint: Expected required property$/,
      ],
      ['an authorization endpoint that is no address', { authorization_endpoint: 'http://' }, ENDPOINT],
      [
        'an authorization endpoint that is a script',
        { authorization_endpoint: 'javascript:alert(1)' },
        ENDPOINT,
      ],
      [
        'endpoints of another type',
        { authorization_endpoint: 7 },
        /authorization_endpoint: Expected string$/,
      ],
    ] as const) {
      it(`refuses a configuration with ${what}`, async () => {
        setup.ehr.script.configuration = configuration
        const response = await new AppBrowser(setup.app).begin(setup.ehr.fhirBaseUrl)
        assert.equal(response.statusCode, 502)
        assert.match(response.body, /Patient records cannot be reached/)
        assert.match(checkLogged(), check)
      })
    }
  })

  describe('GET /callback', () => {
    for (const [what, check, change] of [
      [
        'the iss parameter of another issuer (RFC 9207)',
        /^unexpected "iss".*expected http/,
        q => q.set('iss', 'https://evil.example'),
      ],
      [
        'no iss parameter where it was promised (RFC 9207)',
        /"iss" \(issuer\) missing$/,
        q => q.delete('iss'),
      ],
      [
        'two iss parameters',
        /"iss" parameter must be provided only once$/,
        q => q.append('iss', 'https://evil.example'),
      ],
      ['two codes', /"code" parameter must be provided only once$/, q => q.append('code', 'another')],
      ['no code', /no authorization code/, q => q.delete('code')],
      ['an id_token', /implicit and hybrid flows are not supported$/, q => q.set('id_token', 'eyJ')],
      ['a token', /implicit and hybrid flows are not supported$/, q => q.set('token', 'x')],
      ['a response of another mode', /contains a JARM response/, q => q.set('response', 'x')],
    ] as readonly (readonly [string, RegExp, (query: URLSearchParams) => void])[]) {
      it(`refuses a callback URL with ${what} as bad input and requests no token`, async () => {
        const browser = new AppBrowser(setup.app)
        const address = await browser.visitAuthServer(await browser.begin(setup.ehr.fhirBaseUrl))
        const url = new URL(address, 'http://localhost:8081')
        change(url.searchParams)
        const before = setup.ehr.tokenForms.length
        const response = await browser.get(`${url.pathname}${url.search}`)
        assert.equal(response.statusCode, 400)
        assert.match(response.body, /The sign-in could not be verified/)
        assert.equal(setup.ehr.tokenForms.length, before)
        assert.match(checkLogged(), check)
        assert.equal((await browser.get('/api/session')).statusCode, 401)
      })
    }

    for (const [what, script, check] of [
      [
        'an id_token with another nonce',
        { claims: { nonce: 'other' } },
        /"nonce" claim value, expected the nonce of the launch$/,
      ],
      ['an id_token without a nonce', { claims: { nonce: undefined } }, /"nonce".*missing/],
      ['an id_token for another client', { claims: { aud: 'other-app' } }, /"aud".*expected sallyport-app$/],
      ['an id_token of another issuer', { claims: { iss: 'https://evil.example' } }, /"iss".*expected http/],
      ['an id_token that has expired', { claims: { exp: 1_000_000 } }, /"exp".*past/],
      ['an id_token signed with another key', { signature: 'other' }, /signature verification failed/],
      ['an unsigned id_token', { signature: 'none' }, /"alg"/],
      ['no id_token although openid was granted', { token: { id_token: undefined } }, /id_token/],
      ['a token of another type', { token: { token_type: 'mac' } }, /token_type/],
      ['no access token', { token: { access_token: undefined } }, /access_token/],
      [
        'a patient that is no FHIR id',
        { token: { patient: '../Patient/other' } },
        /^token response patient: Expected string to match/,
      ],
      [
        'a patient that is a dot segment',
        { token: { patient: '..' } },
        /^token response patient: Expected string to match/,
      ],
      [
        'a patient that is a reference',
        { token: { patient: 'Patient/juniper' } },
        /^token response patient: /,
      ],
      ['a patient that is a number', { token: { patient: 7 } }, /^token response patient: Expected string$/],
      [
        'an encounter that is null',
        { token: { encounter: null } },
        /^token response encounter: Expected string$/,
      ],
    ] as const) {
      it(`refuses a response with ${what} (APP-5)`, async () => {
        Object.assign(setup.ehr.script, script)
        const browser = new AppBrowser(setup.app)
        const response = await browser.launch(setup.ehr.fhirBaseUrl)
        assert.equal(response.statusCode, 502)
        assert.match(response.body, /The sign-in could not be verified/)
        for (const token of setup.ehr.issued) assert.ok(!response.body.includes(token))
        assert.match(checkLogged(), check)
        assert.equal((await browser.get('/api/session')).statusCode, 401)
      })
    }
  })
})

describe("the auth server's response to a launch", () => {
  const setup = useSessionApp()

  it('explains an OAuth error and requests no token', async () => {
    for (const [error, status, title] of [
      ['access_denied', 403, /Access was not allowed/],
      ['invalid_request', 400, /This launch was refused/],
      ['invalid_scope', 403, /This app may not access this data/],
      ['temporarily_unavailable', 502, /The sign-in server is busy/],
      ['something_new', 400, /This launch was refused/],
      ['constructor', 400, /This launch was refused/],
    ] as const) {
      setup.ehr.script.callback = {
        error,
        code: undefined,
        error_description: 'Launch token used <b>before</b>',
      }
      const browser = new AppBrowser(setup.app)
      const callback = await browser.visitAuthServer(await browser.begin(setup.ehr.fhirBaseUrl))
      const response = await browser.get(callback)
      assert.equal(response.statusCode, status)
      assert.match(response.body, title)
      assert.match(response.body, new RegExp(`<code>${error}</code>`))
      assert.match(response.body, /Launch token used &lt;b&gt;before&lt;\/b&gt;/)
    }
    assert.deepEqual(setup.ehr.tokenForms, [])
  })

  it('shows nothing of an OAuth error with an unknown state', async () => {
    const response = await new AppBrowser(setup.app).get(
      '/callback?error=access_denied&error_description=Call+555&state=x',
    )
    assert.equal(response.statusCode, 400)
    assert.ok(!response.body.includes('Call 555'))
  })

  it('refuses a launch without a patient and revokes the tokens (APP-4)', async () => {
    setup.ehr.script.token = { patient: undefined }
    const response = await new AppBrowser(setup.app).launch(setup.ehr.fhirBaseUrl)
    assert.equal(response.statusCode, 400)
    assert.match(response.body, /This launch has no patient/)
    assert.deepEqual(setup.ehr.revoked.toSorted(), setup.ehr.issued.toSorted())
  })

  it('takes the patient from the token response, not from the id_token (APP-4)', async () => {
    setup.ehr.script.claims = { patient: 'someone-else' }
    const browser = await launchBrowser(setup.app, setup.ehr.fhirBaseUrl)
    assert.equal((await browser.get('/api/session')).json().patientId, 'juniper')
  })

  it('leaves the banner to the EHR only for the literal false', async () => {
    for (const [sent, need] of [
      [false, false],
      [true, true],
      [undefined, true],
      ['false', true],
    ]) {
      setup.ehr.script.token = { need_patient_banner: sent }
      const browser = await launchBrowser(setup.app, setup.ehr.fhirBaseUrl)
      assert.equal((await browser.get('/api/session')).json().needPatientBanner, need)
    }
  })

  it('assumes the requested scope if the response has none (RFC 6749, 5.1)', async () => {
    setup.ehr.script.token = { scope: undefined }
    const browser = await launchBrowser(setup.app, setup.ehr.fhirBaseUrl)
    assert.deepEqual((await browser.get('/api/session')).json().scopes, APP_SCOPE.split(' '))
  })

  it('opens a session without identity if openid was not granted, with one token request', async () => {
    setup.ehr.script.token = { id_token: undefined, scope: 'launch patient/Patient.rs' }
    const browser = await launchBrowser(setup.app, setup.ehr.fhirBaseUrl)
    assert.equal(setup.ehr.tokenForms.length, 1)
    const me = await browser.get('/api/me')
    assert.equal(me.statusCode, 403)
    assert.match(me.json().issue[0].details.text, /openid fhirUser/)
  })

  it('opens a session without identity if openid is not requested', async () => {
    const plain = await sessionApp(setup.store, [setup.ehr.fhirBaseUrl], {
      app: { scope: 'launch patient/Patient.rs' },
    })
    setup.ehr.script.token = { id_token: undefined }
    const browser = await launchBrowser(plain, setup.ehr.fhirBaseUrl)
    assert.equal((await browser.get('/api/session')).statusCode, 200)
  })

  it('says that the code is refused', async () => {
    setup.ehr.script.tokenEndpoint = (_form, reply) => reply.code(400).send({ error: 'invalid_grant' })
    const response = await new AppBrowser(setup.app).launch(setup.ehr.fhirBaseUrl)
    assert.equal(response.statusCode, 400)
    assert.match(response.body, /<code>invalid_grant<\/code>/)
  })

  it('says that the sign-in server failed', async () => {
    setup.ehr.script.tokenEndpoint = (_form, reply) => reply.code(503).type('text/html').send('<h1>Busy</h1>')
    const response = await new AppBrowser(setup.app).launch(setup.ehr.fhirBaseUrl)
    assert.equal(response.statusCode, 502)
    assert.match(response.body, /The sign-in server is unreachable/)
  })

  it('says that the sign-in server did not respond in time', async () => {
    setup.ehr.script.tokenEndpoint = () => new Promise(() => {})
    const impatient = await sessionApp(setup.store, [setup.ehr.fhirBaseUrl], { app: { timeoutSeconds: 0.1 } })
    const response = await new AppBrowser(impatient).launch(setup.ehr.fhirBaseUrl)
    assert.equal(response.statusCode, 504)
    assert.match(response.body, /The sign-in server is unreachable/)
  })
})
