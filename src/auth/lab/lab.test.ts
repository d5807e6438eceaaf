import assert from 'node:assert/strict'
import { before, describe, it, mock } from 'node:test'
import { createAuditor, findRecords } from '../../audit/index.ts'
import { computeRevocationKey } from '../oauth/revocation/list.ts'
import { decodeClaims, readRedirect, TestAuthServer } from '../testing/test-auth-server.ts'
import { openTestStore } from '../testing/test-store.ts'
import { SIMULATIONS } from './settings.ts'

type Query = Readonly<Record<string, string>>

const LAB = { settings: { lab: true } }
const WITHOUT_PAGES = { skip_login: '1', skip_consent: '1' }

describe('GET /lab/launch', () => {
  const open = openTestStore()
  let auth: TestAuthServer
  before(async () => {
    auth = await TestAuthServer.open(await open(), LAB)
    await auth.addClient({ client_id: 'helio', first_party: false })
    await auth.addUser('ada')
    await auth.addUser('gone')
    await auth.store.db
      .updateTable('clinician')
      .set({ disabled: true })
      .where('username', '=', 'gone')
      .execute()
  })

  const get = (query: Query, headers: Query = {}) =>
    auth.openBrowser().get(`/lab/launch?${new URLSearchParams(query)}`, headers)

  /** Gets a link for `helio` and returns its launch token. */
  async function link(query: Query = {}): Promise<string> {
    const response = await get({ client: 'helio', patient: 'juniper', redirect: '0', ...query })
    assert.equal(response.statusCode, 200, response.body)
    return new URL(response.json().launch_url).searchParams.get('launch') ?? assert.fail()
  }

  const HELIO = { client_id: 'helio', redirect_uri: 'https://helio.example/callback' }

  /** Authorizes `helio` in a new browser. */
  async function authorize(query: Query, different: Readonly<Record<string, string | undefined>> = {}) {
    const launch = await link(query)
    const scope = 'launch openid fhirUser offline_access patient/Patient.rs patient/Condition.rs'
    return auth.authorize(auth.openBrowser(), { ...HELIO, scope, launch, ...different })
  }

  async function exchange(query: Query, different = {}) {
    const { code } = readRedirect(await authorize({ ...WITHOUT_PAGES, ...query }, different))
    return auth.exchange(code ?? assert.fail(), HELIO)
  }

  it('redirects to the launch URL, or returns it as JSON (LAB-1)', async () => {
    const response = await get({ client: 'helio', patient: 'juniper' })
    assert.equal(response.statusCode, 302)
    const pattern =
      /^https:\/\/helio\.example\/launch\?iss=http%3A%2F%2Flocalhost%3A8080%2Ffhir&launch=[\w-]{43}$/
    assert.match(response.headers.location ?? '', pattern)
    const json = await get({ client: 'helio', patient: 'juniper', redirect: '0' })
    assert.deepEqual([json.statusCode, Object.keys(json.json())], [200, ['launch_url']])
    assert.match(json.json().launch_url, pattern)
    assert.equal(json.headers['cache-control'], 'no-store')
  })

  it('requires the sign-in of its user and consent, unless the link skips them (LAB-3)', async () => {
    assert.match((await authorize({ user: 'ada' })).headers.location ?? '', /^\/login\?/)
    assert.match(
      (await authorize({ user: 'ada', skip_login: '1' })).headers.location ?? '',
      /^\/oauth2\/consent\?/,
    )
    const token = (await exchange({ user: 'ada' })).json()
    assert.match(String(decodeClaims(token.id_token).fhirUser), /\/practitioner-of-ada$/)
    const { id: subject } = await auth.store.db
      .selectFrom('clinician')
      .select('id')
      .where('username', '=', 'ada')
      .executeTakeFirstOrThrow()
    assert.equal(decodeClaims(token.access_token).sub, subject)
  })

  it('reads nothing of a patient before one is chosen, and chooses any on request (LAB-7)', async () => {
    const browser = await auth.logIn()
    const chosen = /name="patient"[^>]* value="[^"]+"/
    auth.fhir.requests.length = 0
    for (const query of ['', '?client=helio', '?client=helio&patient=', '?client=helio&kind=standalone'])
      assert.doesNotMatch((await browser.get(`/lab${query}`)).body, chosen)
    assert.deepEqual(auth.fhir.requests, [])
    const { body } = await browser.get('/lab?client=helio&pkce=optional')
    const [, href = ''] = /href="([^"]*)#result">Choose any patient</.exec(body) ?? []
    const any = (await browser.get(href.replaceAll('&amp;', '&'))).body
    assert.match(any, chosen)
    assert.match(any, /name="pkce" value="optional"[^>]* checked/)
    assert.match(any, /\/lab\/launch\?client=helio&amp;patient=/)
  })

  it('is offered on the consent page, with the same context and without consent (LAB-3)', async () => {
    const browser = await auth.logIn()
    const { headers } = await auth.authorize(browser, { ...HELIO, launch: await link({ user: 'clinician' }) })
    const { body } = await browser.get(headers.location ?? '')
    const [, href = ''] = /href="([^"]*)">Launch the app in the lab without it</.exec(body) ?? []
    assert.equal(href, '/lab?client=helio&amp;patient=juniper&amp;skip_consent=1')
    const lab = (await browser.get(href.replaceAll('&amp;', '&'))).body
    assert.match(lab, /name="skip_consent" value="1"[^>]* checked/)
    assert.match(lab, /name="client" value="helio"/)
  })

  it('asks for no sign-in even if the app requires a new one, and sets no cookie (LAB-3)', async () => {
    const response = await authorize(WITHOUT_PAGES, { prompt: 'login', max_age: '0' })
    assert.ok(readRedirect(response).code)
    assert.deepEqual(response.cookies, [])
  })

  it('works once (LAB-3)', async () => {
    const launch = await link(WITHOUT_PAGES)
    const first = readRedirect(await auth.authorize(auth.openBrowser(), { ...HELIO, launch }))
    const second = readRedirect(await auth.authorize(auth.openBrowser(), { ...HELIO, launch }))
    assert.ok(first.code)
    assert.equal(second.error, 'invalid_request')
  })

  it('sets the launch context, the scopes that are granted at most and the lifetime of access tokens (LAB-1)', async () => {
    const response = await exchange({
      encounter: 'enc-1',
      intent: 'reconcile',
      tenant: 'north',
      need_patient_banner: 'false',
      fhir_context: '[{"reference":"DiagnosticReport/1"}]',
      scope: 'openid patient/Patient.rs patient/Observation.rs',
      token_ttl: '7',
    })
    const { patient, encounter, intent, tenant, need_patient_banner, fhirContext, ...token } = response.json()
    assert.deepEqual(
      [patient, encounter, intent, tenant, need_patient_banner, fhirContext],
      ['juniper', 'enc-1', 'reconcile', 'north', false, [{ reference: 'DiagnosticReport/1' }]],
    )
    assert.deepEqual([token.scope, token.expires_in], ['openid patient/Patient.rs', 7])
    const { iat, exp } = decodeClaims(token.access_token)
    assert.equal(Number(exp) - Number(iat), 7)
  })

  it('sets or omits smart_style_url (LAB-3)', async () => {
    const find = async (query: Query) => (await exchange(query)).json().smart_style_url
    assert.match(await find({}), /^http:\/\/localhost:9000\/smart-style\//)
    assert.equal(await find({ style: 'https://ehr.example/style.json' }), 'https://ehr.example/style.json')
    assert.equal(await find({ style: 'none' }), undefined)
  })

  it('makes PKCE optional for its launch only (LAB-3)', async () => {
    const without = { code_challenge: undefined, code_challenge_method: undefined }
    assert.equal(readRedirect(await authorize(WITHOUT_PAGES, without)).error, 'invalid_request')
    const { code = '' } = readRedirect(await authorize({ ...WITHOUT_PAGES, pkce: 'optional' }, without))
    const { redirect_uri, client_id } = HELIO
    const form = { grant_type: 'authorization_code', code, redirect_uri, client_id }
    assert.equal((await auth.requestToken(form)).statusCode, 200)
    // A request with a challenge still needs the verifier.
    const secured = readRedirect(await authorize({ ...WITHOUT_PAGES, pkce: 'optional' }))
    const refused = await auth.requestToken({ ...form, code: secured.code ?? '' })
    assert.equal(refused.json().error, 'invalid_grant')
  })

  it('registers a public client for any launch URL, with redirect URIs of its origin, for a day (LAB-4)', async () => {
    const query = { client: 'mine', launch_url: 'http://localhost:3000/launch.html?x=1' }
    const launch = await link({ ...query, ...WITHOUT_PAGES })
    const mine = { client_id: 'mine', scope: 'launch patient/Patient.rs', launch }
    const elsewhere = { ...mine, redirect_uri: 'http://localhost:3001/callback' }
    assert.equal((await auth.authorize(auth.openBrowser(), elsewhere)).statusCode, 400)
    const redirect_uri = 'http://localhost:3000/any/callback'
    const response = await auth.authorize(auth.openBrowser(), { ...mine, redirect_uri })
    const { code = '' } = readRedirect(response)
    const token = await auth.exchange(code, { client_id: 'mine', redirect_uri })
    assert.equal(token.json().patient, 'juniper')
    auth.time.now += 86_400_000
    const later = await auth.authorize(auth.openBrowser(), { ...mine, redirect_uri, launch: undefined })
    assert.deepEqual([later.statusCode, later.headers.location], [400, undefined])
  })

  it('keeps the registration of an app that it launches at another URL (LAB-4)', async () => {
    const launch_url = 'http://localhost:3000/dev'
    const response = await get({ client: 'helio', patient: 'juniper', launch_url })
    assert.ok(response.headers.location?.startsWith(`${launch_url}?iss=`))
    const redirect_uri = 'http://localhost:3000/callback'
    assert.equal((await authorize({ launch_url }, { redirect_uri })).statusCode, 400)
  })

  it('opens an app without a launch for a standalone launch, and for the own record of a patient (LAB-1)', async () => {
    const alone = await get({ kind: 'standalone', client: 'helio' })
    const iss = encodeURIComponent('http://localhost:8080/fhir')
    assert.equal(alone.headers.location, `https://helio.example/launch?iss=${iss}`)
    await auth.addUser('alba', { fhir_user_id: 'Patient/juniper' })
    const launch = { ...WITHOUT_PAGES, kind: 'patient', user: 'alba', patient: '' }
    const token = (await exchange(launch)).json()
    assert.equal(token.patient, 'juniper')
    assert.match(String(decodeClaims(token.id_token).fhirUser), /\/Patient\/juniper$/)
  })

  it('refuses faults with a text that names the parameter (LAB-1)', async () => {
    const cases: readonly (readonly [Query, number, RegExp])[] = [
      [{ simulate: 'token:teapot' }, 400, new RegExp(`simulate: expected one of ${SIMULATIONS.join(', ')}`)],
      [{ patient: '' }, 400, /patient/],
      [{ patient: 'nobody' }, 404, /^The patient .* may not see it: nobody\. Use, for example, \w/],
      [{ encounter: 'enc-9' }, 404, /encounter .*: enc-9\.$/],
      [{ client: 'nobody' }, 400, /client_id .*: nobody\.$/],
      [{ user: 'nobody' }, 400, /username .*: nobody\.$/],
      [{ user: 'gone' }, 400, /username/],
      [{ skip_login: 'yes' }, 400, /skip_login: expected 1 or 0/],
      [{ token_ttl: '0' }, 400, /token_ttl/],
      [{ token_ttl: '3601' }, 400, /token_ttl/],
      [{ pkce: 'no' }, 400, /pkce/],
      [{ style: 'dark' }, 400, /style: expected an absolute URL, or none/],
      [{ fhir_context: '{' }, 400, /fhir_context/],
      [{ need_patient_banner: '2' }, 400, /need_patient_banner/],
      [{ launch_url: 'javascript:alert(1)' }, 400, /launch_url/],
      [{ client: '', launch_url: 'http://localhost:3000/' }, 400, /client/],
      [{ simulated: 'fhir:401' }, 400, /simulated: expected one of .*, check\. Did you mean simulate\?/],
      [{ elephants: '1' }, 400, /elephants: expected one of .*, check\.$/],
      [{ kind: 'other' }, 400, /kind: expected one of ehr, patient, standalone, backend/],
      [{ kind: 'standalone' }, 400, /patient: only an EHR launch can have it/],
      [{ kind: 'backend', patient: '' }, 400, /kind: a backend service is not launched/],
      [{ kind: 'patient', user: 'ada' }, 400, /user: expected a patient/],
    ]
    for (const [query, status, text] of cases) {
      const response = await get({ client: 'helio', patient: 'juniper', ...query })
      assert.deepEqual([response.statusCode, response.headers.location], [status, undefined], String(text))
      assert.match(response.json().error_description, text)
    }
    const page = await get({ simulate: 'x' }, { accept: 'text/html' })
    assert.match(page.body, /The app was not launched/)
  })

  it('checks a link without a launch (LAB-1)', async () => {
    const count = () => auth.store.db.selectFrom('launch_token').select('launch_id').execute()
    const before = await count()
    const checked = await get({ client: 'helio', patient: 'juniper', ...WITHOUT_PAGES, check: '1' })
    assert.deepEqual([checked.statusCode, checked.body], [204, ''])
    assert.deepEqual(await count(), before)
    assert.equal((await get({ client: 'helio', patient: 'nobody', check: '1' })).statusCode, 404)
    assert.equal((await get({ kind: 'standalone', client: 'helio', check: '1' })).statusCode, 204)
  })

  it('refuses a link that a page of another site opens (LAB-1)', async () => {
    const headers = { 'sec-fetch-site': 'cross-site' }
    assert.equal((await get({ client: 'helio', patient: 'juniper' }, headers)).statusCode, 403)
    for (const site of ['none', 'same-origin', 'same-site'])
      assert.equal(
        (await get({ client: 'helio', patient: 'juniper' }, { 'sec-fetch-site': site })).statusCode,
        302,
      )
  })

  it('refuses a link if the browser does not say which site opened it, unless a page of ours did (LAB-1)', async () => {
    const accept = 'text/html,application/xhtml+xml,*/*;q=0.8'
    const open = async (headers: Record<string, string>) =>
      (await get({ client: 'helio', patient: 'juniper' }, { accept, ...headers })).statusCode
    for (const referer of ['', 'https://evil.example/', 'http://localhost:9000.evil.example/lab', 'x'])
      assert.equal(await open({ referer }), 403, referer)
    assert.equal(await open({}), 403)
    assert.equal(await open({ referer: 'http://localhost:9000/lab?client=helio' }), 302)
    assert.equal(await open({ referer: 'https://evil.example/', accept: '*/*' }), 302, 'a program')
  })

  it('simulates each OAuth error at the authorization endpoint, and uses up the launch (LAB-5)', async () => {
    const names = SIMULATIONS.filter(name => name.startsWith('authorize:'))
    assert.equal(names.length, 10)
    for (const simulate of names) {
      const { error, error_description, state } = readRedirect(await authorize({ simulate }))
      assert.deepEqual([`authorize:${error}`, state], [simulate, 'state-1'])
      assert.equal(error_description, `Simulated by the lab: ${simulate}.`)
    }
    const launch = await link({ simulate: 'authorize:access_denied' })
    const errors = [1, 2].map(
      async () => readRedirect(await auth.authorize(auth.openBrowser(), { ...HELIO, launch })).error,
    )
    assert.deepEqual((await Promise.all(errors)).toSorted(), ['access_denied', 'invalid_request'])
  })

  it('simulates errors of the token endpoint for the code, after all its checks (LAB-5)', async () => {
    for (const simulate of SIMULATIONS.filter(name => /^token:(?!slow)/.test(name))) {
      const { statusCode, json } = await exchange({ simulate })
      const [, name] = simulate.split(':')
      const expected = name === '500' ? [500, 'server_error'] : [name === 'invalid_client' ? 401 : 400, name]
      assert.deepEqual([statusCode, json().error], expected)
    }
    const { code = '' } = readRedirect(await authorize({ ...WITHOUT_PAGES, simulate: 'token:500' }))
    const wrong = await auth.exchange(code, { ...HELIO, code_verifier: 'x'.repeat(43) })
    assert.equal(wrong.json().error, 'invalid_grant')
  })

  it('delays the response to a code by five seconds (LAB-5)', async () => {
    const { code = '' } = readRedirect(await authorize({ ...WITHOUT_PAGES, simulate: 'token:slow' }))
    const delays: unknown[] = []
    const timeout = mock.method(globalThis, 'setTimeout', (resolve: () => void, ms?: number) => {
      delays.push(ms)
      return setImmediate(resolve)
    })
    const { statusCode } = await auth.exchange(code, HELIO)
    timeout.mock.restore()
    assert.equal(statusCode, 200)
    assert.deepEqual(
      delays.filter(ms => ms === 5_000),
      [5_000],
    )
  })

  it('simulates errors of a refresh, and leaves the code alone (LAB-5)', async () => {
    for (const simulate of SIMULATIONS.filter(name => name.startsWith('refresh:'))) {
      const { refresh_token } = (await exchange({ simulate })).json()
      const { error } = (await auth.refresh(refresh_token, HELIO)).json()
      assert.equal(`refresh:${error}`, simulate)
    }
  })

  it('issues access tokens that have expired, have a wrong signature, or name the failure of the FHIR server (LAB-5)', async () => {
    const userinfo = async (token: string) =>
      (await auth.openBrowser().get('/oauth2/userinfo', { authorization: `Bearer ${token}` })).statusCode
    const issue = async (query: Query) => (await exchange(query)).json()
    const expired = await issue({ simulate: 'access-token:expired' })
    assert.ok(Number(decodeClaims(expired.access_token).exp) * 1000 < auth.time.now)
    assert.equal(expired.expires_in, 300)
    const unsigned = await issue({ simulate: 'access-token:bad-signature' })
    const plain = await issue({})
    const slow = await issue({ simulate: 'fhir:slow' })
    const statuses = [expired, unsigned, plain, slow].map(token => userinfo(token.access_token))
    assert.deepEqual(await Promise.all(statuses), [401, 401, 200, 200])
    assert.equal(decodeClaims(slow.access_token).simulate, 'fhir:slow')
    assert.equal('simulate' in decodeClaims(plain.access_token), false)
  })
})

describe('the audit trail of a lab launch', () => {
  const open = openTestStore()

  it('marks the launch and every event that is simulated (LAB-5)', async () => {
    const store = await open()
    const auth = await TestAuthServer.open(store, { ...LAB, audit: createAuditor({ store }) })
    for (const simulate of ['authorize:access_denied', 'token:invalid_grant', 'access-token:expired']) {
      await (await store.trail.read()).deleteFrom('audit_event').execute()
      const query = new URLSearchParams({ patient: 'juniper', redirect: '0', simulate, ...WITHOUT_PAGES })
      const { launch_url } = (await auth.openBrowser().get(`/lab/launch?${query}`)).json()
      const launch = new URL(launch_url).searchParams.get('launch') ?? assert.fail()
      const { code } = readRedirect(await auth.authorize(auth.openBrowser(), { launch }))
      if (code !== undefined) await auth.exchange(code)
      const records = await findRecords(store, { limit: 10, order: 'oldest' })
      assert.equal(new Set(records.map(it => it.launch_id)).size, 1)
      assert.deepEqual(
        records.filter(it => it.reason?.includes(`Simulated by the lab: ${simulate}`)).map(it => it.kind),
        ['launch', simulate.startsWith('authorize:') ? 'authorize' : 'token'],
      )
    }
  })
})

describe('GET /lab', () => {
  const open = openTestStore()

  it('makes the link and its command line from the settings, and keeps them with a fault (LAB-7)', async () => {
    const auth = await TestAuthServer.open(await open(), LAB)
    assert.equal((await auth.openBrowser().get('/lab')).headers.location, '/login')
    const browser = await auth.logIn()
    const show = async (query: Query) => (await browser.get(`/lab?${new URLSearchParams(query)}`)).body
    assert.doesNotMatch(await show({}), /No link|curl/)
    const page = await show({ client: 'sallyport-app', patient: 'juniper', intent: '', simulate: 'fhir:429' })
    const link =
      'http://localhost:9000/lab/launch?client=sallyport-app&amp;patient=juniper&amp;simulate=fhir%3A429'
    assert.ok(page.includes(`>${link}</span>`))
    assert.match(page, /curl -s &#39;[^ ]+&amp;redirect=0&#39;/)
    const wrong = await show({ patient: 'juniper', token_ttl: 'long', tenant: 'north' })
    assert.match(wrong, /No link\.<\/b> token_ttl: expected 1 to 3600 seconds/)
    assert.match(wrong, /name="tenant" value="north"/)
  })
})

describe('a lab that is off', () => {
  const open = openTestStore()

  it('has no routes, and ends links, clients and access of the time when it was on (LAB-2)', async () => {
    const store = await open()
    const on = await TestAuthServer.open(store, LAB)
    const getLaunch = async (query: Query) => {
      const all = { patient: 'juniper', redirect: '0', ...WITHOUT_PAGES, ...query }
      const response = await on.openBrowser().get(`/lab/launch?${new URLSearchParams(all)}`)
      return new URL(response.json().launch_url).searchParams.get('launch') ?? assert.fail()
    }
    const before = await getLaunch({})
    const launch = await getLaunch({ token_ttl: '3600' })
    const { code = '' } = readRedirect(await on.authorize(on.openBrowser(), { launch }))
    const token = (await on.exchange(code)).json()
    assert.equal(token.expires_in, 3600)
    await getLaunch({ client: 'mine', launch_url: 'http://localhost:3000/' })

    const off = await TestAuthServer.open(store)
    for (const path of ['/lab', '/lab/launch?client=sallyport-app&patient=juniper'])
      assert.equal((await off.openBrowser().get(path)).statusCode, 404)
    const refused = readRedirect(await off.authorize(off.openBrowser(), { launch: before }))
    assert.equal(refused.error, 'invalid_request')
    assert.equal((await off.refresh(token.refresh_token)).json().error, 'invalid_grant')
    off.time.now += 3_500_000
    const { revoked, lifetime } = (await off.openBrowser().get('/oauth2/revocations')).json()
    assert.ok(revoked.includes(computeRevocationKey(token.launch_id)))
    assert.ok(lifetime >= 100)
    const query = { client_id: 'mine', redirect_uri: 'http://localhost:3000' }
    const { statusCode, body } = await off.authorize(off.openBrowser(), query)
    assert.equal(statusCode, 400)
    assert.match(body, /The app is not registered/)
  })

  it('refuses a link that another process, whose lab is on, created (LAB-2)', async () => {
    const store = await open()
    const off = await TestAuthServer.open(store)
    const on = await TestAuthServer.open(store, LAB)
    const query = new URLSearchParams({ patient: 'juniper', redirect: '0', ...WITHOUT_PAGES })
    const { launch_url } = (await on.openBrowser().get(`/lab/launch?${query}`)).json()
    const launch = new URL(launch_url).searchParams.get('launch') ?? assert.fail()
    assert.equal(readRedirect(await off.authorize(off.openBrowser(), { launch })).error, 'invalid_request')
    assert.ok(readRedirect(await on.authorize(on.openBrowser(), { launch })).code)
  })
})
