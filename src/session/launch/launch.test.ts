import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import type { FastifyInstance } from 'fastify'
import { AppBrowser } from '../../../test/support/app-browser.ts'
import { eachDatabase } from '../../../test/support/databases.ts'
import { type ScriptedEhr, startScriptedEhr } from '../../../test/support/scripted-ehr.ts'
import { APP_SCOPE, launched, sessionApp, testClock } from '../../../test/support/session-app.ts'
import type { Store } from '../../store/index.ts'

eachDatabase((_name, open) => {
  let ehr: ScriptedEhr
  let store: Store
  let app: FastifyInstance
  let clock = testClock()

  before(async () => {
    store = await open()
    ehr = await startScriptedEhr()
  })
  beforeEach(async () => {
    ehr.reset()
    clock = testClock()
    app = await sessionApp(store, [ehr.fhirBaseUrl], { clock })
  })
  after(() => ehr.close())

  describe('GET /launch', () => {
    it('asks the auth server with PKCE, state, nonce, aud and launch', async () => {
      const response = await new AppBrowser(app).begin(ehr.fhirBaseUrl, 'xyz')
      assert.equal(response.statusCode, 302)
      const url = new URL(String(response.headers.location))
      assert.equal(`${url.origin}${url.pathname}`, `${ehr.issuer}/authorize`)
      const { state, nonce, code_challenge, ...rest } = Object.fromEntries(url.searchParams)
      assert.deepEqual(rest, {
        response_type: 'code',
        client_id: 'sallyport-app',
        redirect_uri: 'http://localhost:8081/callback',
        scope: APP_SCOPE,
        aud: ehr.fhirBaseUrl,
        launch: 'xyz',
        code_challenge_method: 'S256',
      })
      for (const random of [state, nonce, code_challenge]) assert.match(random ?? '', /^[\w-]{43}$/)
    })

    it('keeps neither state nor code verifier readable in the database', async () => {
      const response = await new AppBrowser(app).begin(ehr.fhirBaseUrl)
      const state = new URL(String(response.headers.location)).searchParams.get('state') ?? ''
      const rows = JSON.stringify(await store.db.selectFrom('app_launch').selectAll().execute())
      const [cookie] = response.cookies
      assert.ok(!rows.includes(state))
      assert.ok(cookie && !rows.includes(cookie.value))
      assert.match(rows, /"code_verifier_sealed":"v1\./)
    })

    it('accepts the iss with a trailing slash, and sends it back as it came', async () => {
      const response = await new AppBrowser(app).begin(`${ehr.fhirBaseUrl}/`)
      const url = new URL(String(response.headers.location))
      assert.equal(url.searchParams.get('aud'), `${ehr.fhirBaseUrl}/`)
    })

    it('refuses an iss that is not configured, and makes no request to it', async () => {
      const other = await startScriptedEhr()
      try {
        for (const iss of [
          other.fhirBaseUrl,
          `${ehr.fhirBaseUrl}/../fhir`,
          `${ehr.fhirBaseUrl}//`,
          `${ehr.fhirBaseUrl}?x`,
          `${ehr.fhirBaseUrl}#x`,
          ehr.fhirBaseUrl.toUpperCase(),
          'javascript:alert(1)',
          'x',
        ]) {
          const response = await new AppBrowser(app).begin(iss)
          assert.equal(response.statusCode, 403, iss)
          assert.match(response.body, /This app does not know that record server/)
        }
        assert.deepEqual(other.seen, [])
        assert.deepEqual(ehr.seen, [])
      } finally {
        await other.close()
      }
    })

    it('shows a foreign iss only as text', async () => {
      const response = await new AppBrowser(app).begin(
        'https://evil.example/<script>alert(1)</script>?token=abc',
      )
      assert.ok(!response.body.includes('<script>alert'))
      assert.ok(!response.body.includes('token=abc'))
    })

    it('says what a link lacks', async () => {
      const browser = new AppBrowser(app)
      const iss = encodeURIComponent(ehr.fhirBaseUrl)
      for (const [query, name] of [
        [`iss=${iss}`, 'launch'],
        [`iss=${iss}&launch=`, 'launch'],
        [`iss=${iss}&launch=a&launch=b`, 'launch'],
        ['launch=a', 'iss'],
        [`iss=${iss}&iss=${iss}&launch=a`, 'iss'],
      ] as const) {
        const response = await browser.get(`/launch?${query}`)
        assert.equal(response.statusCode, 400, query)
        assert.match(response.body, new RegExp(`Expected one value for ${name}`))
      }
      assert.deepEqual(ehr.seen, [])
    })

    it('without iss and launch is a standalone launch against the issuer that is set', async () => {
      const browser = new AppBrowser(app)
      const response = await browser.get('/launch')
      assert.equal(response.statusCode, 302)
      const { origin, pathname, searchParams } = new URL(String(response.headers.location))
      assert.equal(`${origin}${pathname}`, `${ehr.issuer}/authorize`)
      assert.equal(searchParams.get('aud'), ehr.fhirBaseUrl)
      assert.equal(searchParams.get('launch'), null)
      assert.equal(searchParams.get('scope'), APP_SCOPE.replace(/^launch /, 'launch/patient '))
      assert.equal((await browser.get(await browser.visitAuthServer(response))).headers.location, '/')
      assert.equal((await browser.get('/api/session')).statusCode, 200)
    })

    it('with one of the two is no launch', async () => {
      for (const query of [`iss=${encodeURIComponent(ehr.fhirBaseUrl)}`, 'launch=x', 'iss=&launch='])
        assert.equal((await new AppBrowser(app).get(`/launch?${query}`)).statusCode, 400)
    })

    it('does not answer HEAD, which would begin a launch', async () => {
      const response = await app.inject({ method: 'HEAD', url: `/launch?iss=${ehr.fhirBaseUrl}&launch=a` })
      assert.ok(response.statusCode >= 400)
      assert.deepEqual(ehr.seen, [])
    })

    it('reads the configuration once for launches within 5 minutes', async () => {
      const reads = () => ehr.seen.filter(({ path }) => path.endsWith('smart-configuration')).length
      const browser = new AppBrowser(app)
      await Promise.all([1, 2, 3].map(() => browser.begin(ehr.fhirBaseUrl)))
      await browser.begin(ehr.fhirBaseUrl)
      assert.equal(reads(), 1)
      clock.advance(301)
      await browser.begin(ehr.fhirBaseUrl)
      assert.equal(reads(), 2)
    })

    it('resolves relative endpoints against the FHIR base', async () => {
      ehr.script.configuration = { authorization_endpoint: '../authorize', token_endpoint: '../token' }
      const browser = await launched(app, ehr.fhirBaseUrl)
      assert.equal((await browser.get('/api/session')).statusCode, 200)
    })

    it('says that records cannot be reached when the FHIR server is away', async () => {
      const gone = await startScriptedEhr()
      await gone.close()
      const lonely = await sessionApp(store, [gone.fhirBaseUrl])
      const response = await new AppBrowser(lonely).begin(gone.fhirBaseUrl)
      assert.equal(response.statusCode, 502)
      assert.match(response.body, /Patient records cannot be reached/)
    })

    it('says so when the FHIR server does not answer in time', async () => {
      const fetch: typeof globalThis.fetch = async () => {
        throw new DOMException('The operation was aborted due to timeout', 'TimeoutError')
      }
      const waiting = await sessionApp(store, [ehr.fhirBaseUrl], { fetch })
      const response = await new AppBrowser(waiting).begin(ehr.fhirBaseUrl)
      assert.equal(response.statusCode, 504)
    })
  })

  describe('GET /callback', () => {
    it('opens a session for the patient, encounter and banner of the token response', async () => {
      const browser = new AppBrowser(app)
      const response = await browser.launch(ehr.fhirBaseUrl)
      assert.equal(response.statusCode, 302)
      assert.equal(response.headers.location, '/')
      const { patientId, encounterId, needPatientBanner, fhirBaseUrl } = (
        await browser.get('/api/session')
      ).json()
      assert.deepEqual(
        { patientId, encounterId, needPatientBanner, fhirBaseUrl },
        {
          patientId: 'juniper',
          encounterId: 'visit-1',
          needPatientBanner: true,
          fhirBaseUrl: ehr.fhirBaseUrl,
        },
      )
    })

    it('gives the browser one opaque HttpOnly cookie, and takes the cookie of the launch back', async () => {
      const browser = new AppBrowser(app)
      const response = await browser.launch(ehr.fhirBaseUrl)
      const cookie = response.cookies.find(({ name }) => name === 'sallyport-app')
      assert.match(cookie?.value ?? '', /^[\w-]{43}$/)
      assert.equal(cookie?.httpOnly, true)
      assert.equal(cookie?.sameSite, 'Lax')
      assert.deepEqual([...browser.cookies.keys()], ['sallyport-app'])
    })

    it('binds cookies to the host and to https where the app has an https address', async () => {
      const secure = await sessionApp(store, [ehr.fhirBaseUrl], { appUrl: 'https://app.example' })
      const response = await new AppBrowser(secure).launch(ehr.fhirBaseUrl)
      const cookie = response.cookies.find(({ name }) => name === '__Host-sallyport-app')
      assert.equal(cookie?.secure, true)
      assert.equal(cookie?.path, '/')
    })

    it('keeps no token and no cookie readable in the database', async () => {
      const browser = await launched(app, ehr.fhirBaseUrl)
      const rows = JSON.stringify(await store.db.selectFrom('app_session').selectAll().execute())
      assert.equal(ehr.issued.length, 2)
      for (const secret of [...ehr.issued, ...browser.cookies.values()]) assert.ok(!rows.includes(secret))
    })

    it('sends code, verifier and client id, and no secret', async () => {
      await launched(app, ehr.fhirBaseUrl)
      const [form] = ehr.tokenForms
      const { code, code_verifier, ...rest } = form ?? {}
      assert.deepEqual(
        { ...rest },
        {
          grant_type: 'authorization_code',
          redirect_uri: 'http://localhost:8081/callback',
          client_id: 'sallyport-app',
        },
      )
      assert.ok(code && code_verifier)
    })

    async function refused(browser: AppBrowser, url: string, title: RegExp, status: number): Promise<void> {
      const before = ehr.tokenForms.length
      const response = await browser.get(url)
      assert.equal(response.statusCode, status)
      assert.match(response.body, title)
      assert.equal(ehr.tokenForms.length, before)
      assert.equal(browser.cookies.has('sallyport-app'), false)
    }

    it('refuses a state that it did not give', async () => {
      const browser = new AppBrowser(app)
      const callback = await browser.visitAuthServer(await browser.begin(ehr.fhirBaseUrl))
      await refused(browser, callback.replace(/state=[^&]+/, 'state=other'), /cannot be continued/, 400)
      await refused(browser, callback.replace(/state=[^&]+&?/, ''), /cannot be continued/, 400)
      await refused(browser, `${callback}&state=twice`, /cannot be continued/, 400)
      await refused(browser, '/callback', /cannot be continued/, 400)
    })

    it('refuses the state of another browser, and still lets the right one finish', async () => {
      const [victim, attacker] = [new AppBrowser(app), new AppBrowser(app)]
      const callback = await attacker.visitAuthServer(await attacker.begin(ehr.fhirBaseUrl))
      await victim.begin(ehr.fhirBaseUrl)
      await refused(victim, callback, /cannot be continued/, 400)
      assert.equal((await attacker.get(callback)).statusCode, 302)
    })

    it('refuses a replayed callback and leaves the session alone', async () => {
      const browser = new AppBrowser(app)
      const callback = await browser.visitAuthServer(await browser.begin(ehr.fhirBaseUrl))
      const launchCookies = new Map(browser.cookies)
      await browser.get(callback)
      for (const [name, value] of launchCookies) browser.cookies.set(name, value)
      const again = await browser.get(callback)
      assert.equal(again.statusCode, 400)
      assert.equal(ehr.tokenForms.length, 1)
      assert.equal((await browser.get('/api/session')).statusCode, 200)
    })

    it('lets exactly one of many parallel callbacks through', async () => {
      const browser = new AppBrowser(app)
      const callback = await browser.visitAuthServer(await browser.begin(ehr.fhirBaseUrl))
      const cookies = Object.fromEntries(browser.cookies)
      const responses = await Promise.all(
        Array.from({ length: 20 }, () => app.inject({ method: 'GET', url: callback, cookies })),
      )
      assert.equal(responses.filter(({ statusCode }) => statusCode === 302).length, 1)
      assert.equal(ehr.tokenForms.length, 1)
    })

    it('lets two tabs launch at the same time', async () => {
      const browser = new AppBrowser(app)
      const [first, second] = await Promise.all([
        browser.begin(ehr.fhirBaseUrl),
        browser.begin(ehr.fhirBaseUrl),
      ])
      const one = await browser.visitAuthServer(first)
      const two = await browser.visitAuthServer(second)
      assert.equal((await browser.get(two)).statusCode, 302)
      assert.equal((await browser.get(one)).statusCode, 302)
    })

    it('refuses a launch that took more than 10 minutes', async () => {
      const browser = new AppBrowser(app)
      const callback = await browser.visitAuthServer(await browser.begin(ehr.fhirBaseUrl))
      clock.advance(601)
      await refused(browser, callback, /cannot be continued/, 400)
    })

    it('shows an OAuth error in plain words and asks for no token', async () => {
      for (const [error, status, title] of [
        ['access_denied', 403, /Access was not allowed/],
        ['invalid_request', 400, /This launch was refused/],
        ['invalid_scope', 403, /This app may not see what it asks for/],
        ['temporarily_unavailable', 502, /The sign-in server is busy/],
        ['something_new', 400, /This launch was refused/],
        ['constructor', 400, /This launch was refused/],
      ] as const) {
        ehr.script.callback = { error, code: undefined, error_description: 'Launch token used <b>before</b>' }
        const browser = new AppBrowser(app)
        const callback = await browser.visitAuthServer(await browser.begin(ehr.fhirBaseUrl))
        const response = await browser.get(callback)
        assert.equal(response.statusCode, status)
        assert.match(response.body, title)
        assert.match(response.body, new RegExp(`<code>${error}</code>`))
        assert.match(response.body, /Launch token used &lt;b&gt;before&lt;\/b&gt;/)
      }
      assert.deepEqual(ehr.tokenForms, [])
    })

    it('shows nothing of an OAuth error whose state is not known', async () => {
      const response = await new AppBrowser(app).get(
        '/callback?error=access_denied&error_description=Call+555&state=x',
      )
      assert.equal(response.statusCode, 400)
      assert.ok(!response.body.includes('Call 555'))
    })

    it('refuses a launch without a patient, and gives the tokens back', async () => {
      ehr.script.token = { patient: undefined }
      const response = await new AppBrowser(app).launch(ehr.fhirBaseUrl)
      assert.equal(response.statusCode, 400)
      assert.match(response.body, /This launch names no patient/)
      assert.deepEqual(ehr.revoked.toSorted(), ehr.issued.toSorted())
    })

    it('takes the patient from the token response, not from the id_token', async () => {
      ehr.script.claims = { patient: 'someone-else' }
      const browser = await launched(app, ehr.fhirBaseUrl)
      assert.equal((await browser.get('/api/session')).json().patientId, 'juniper')
    })

    it('leaves the banner to the EHR only for a plain false', async () => {
      for (const [sent, need] of [
        [false, false],
        [true, true],
        [undefined, true],
        ['false', true],
      ]) {
        ehr.script.token = { need_patient_banner: sent }
        const browser = await launched(app, ehr.fhirBaseUrl)
        assert.equal((await browser.get('/api/session')).json().needPatientBanner, need)
      }
    })

    it('takes the requested scope where the answer names none (RFC 6749, 5.1)', async () => {
      ehr.script.token = { scope: undefined }
      const browser = await launched(app, ehr.fhirBaseUrl)
      assert.deepEqual((await browser.get('/api/session')).json().scopes, APP_SCOPE.split(' '))
    })

    it('opens a session without identity where openid was not granted, with one token request', async () => {
      ehr.script.token = { id_token: undefined, scope: 'launch patient/Patient.rs' }
      const browser = await launched(app, ehr.fhirBaseUrl)
      assert.equal(ehr.tokenForms.length, 1)
      const me = await browser.get('/api/me')
      assert.equal(me.statusCode, 403)
      assert.match(me.json().issue[0].details.text, /openid fhirUser/)
    })

    it('opens a session without identity where openid is not asked for', async () => {
      const plain = await sessionApp(store, [ehr.fhirBaseUrl], {
        app: { scope: 'launch patient/Patient.rs' },
      })
      ehr.script.token = { id_token: undefined }
      const browser = await launched(plain, ehr.fhirBaseUrl)
      assert.equal((await browser.get('/api/session')).statusCode, 200)
    })

    it('says when the code is refused', async () => {
      ehr.script.tokenEndpoint = (_form, reply) => reply.code(400).send({ error: 'invalid_grant' })
      const response = await new AppBrowser(app).launch(ehr.fhirBaseUrl)
      assert.equal(response.statusCode, 400)
      assert.match(response.body, /<code>invalid_grant<\/code>/)
    })

    it('says when the sign-in server fails', async () => {
      ehr.script.tokenEndpoint = (_form, reply) => reply.code(503).type('text/html').send('<h1>Busy</h1>')
      const response = await new AppBrowser(app).launch(ehr.fhirBaseUrl)
      assert.equal(response.statusCode, 502)
      assert.match(response.body, /The sign-in server cannot be reached/)
    })

    it('says when the sign-in server does not answer in time', async () => {
      ehr.script.tokenEndpoint = () => new Promise(() => {})
      const impatient = await sessionApp(store, [ehr.fhirBaseUrl], { app: { timeoutSeconds: 1 } })
      const response = await new AppBrowser(impatient).launch(ehr.fhirBaseUrl)
      assert.equal(response.statusCode, 504)
      assert.match(response.body, /The sign-in server cannot be reached/)
    })

    it('sends the code to no other auth server than the one that was asked', async () => {
      const browser = new AppBrowser(app)
      const callback = await browser.visitAuthServer(await browser.begin(ehr.fhirBaseUrl))
      ehr.script.configuration = {
        issuer: 'https://evil.example',
        token_endpoint: 'https://evil.example/token',
      }
      clock.advance(301)
      const response = await browser.get(callback)
      assert.equal(response.statusCode, 502)
      assert.match(response.body, /ISSUER_CHANGED/)
    })

    it('replaces the session that the browser had, and gives its tokens back', async () => {
      const browser = await launched(app, ehr.fhirBaseUrl)
      const [before, tokens] = [(await browser.get('/api/session')).json(), [...ehr.issued]]
      const oldCookies = { ...Object.fromEntries(browser.cookies) }
      ehr.script.token = { patient: 'fennel' }
      await browser.launch(ehr.fhirBaseUrl)
      const session = (await browser.get('/api/session')).json()
      assert.equal(session.patientId, 'fennel')
      assert.notEqual(session.sessionId, before.sessionId)
      assert.deepEqual(ehr.revoked.toSorted(), tokens.toSorted())
      const old = await app.inject({ method: 'GET', url: '/api/session', cookies: oldCookies })
      assert.equal(old.statusCode, 401)
    })

    it('does not take over a session id that the browser brought along', async () => {
      const browser = new AppBrowser(app)
      browser.cookies.set('sallyport-app', 'fixed-by-an-attacker')
      await browser.launch(ehr.fhirBaseUrl)
      assert.notEqual(browser.cookies.get('sallyport-app'), 'fixed-by-an-attacker')
      assert.equal((await browser.get('/api/session')).statusCode, 200)
    })
  })
})
