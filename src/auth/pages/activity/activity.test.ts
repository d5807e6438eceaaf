import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type { LightMyRequestResponse } from 'fastify'
import { type AuditRecord, createAuditor, type KeptRecord } from '../../../audit/index.ts'
import { getFhirWords } from '../../../fhir/index.ts'
import { explain } from '../../../interceptor/index.ts'
import { sha256 } from '../../../store/index.ts'
import { limitComparisons } from '../../base/audit.ts'
import { clearScopes, readForm } from '../../testing/read-form.ts'
import { testSettings } from '../../testing/settings.ts'
import { TestAuthServer, unknownToken, VERIFIER } from '../../testing/test-auth-server.ts'
import type { TestBrowser } from '../../testing/test-browser.ts'
import { openTestStore } from '../../testing/test-store.ts'
import { mayViewActivity } from '../../users/login-rights.ts'
import { describeApp, describeDecision, type KnownNames } from '../parts/explain/describe.ts'
import { adviseOn } from '../parts/explain/explain.ts'

const { sentence: OUTSIDE } = getFhirWords('outside-access')

describe('GET /activity', () => {
  const open = openTestStore()
  let auth: TestAuthServer
  let browser: TestBrowser
  const record = (more: Partial<AuditRecord>): AuditRecord => ({
    at: auth.time.now,
    server: 'fhir',
    kind: 'fhir',
    interaction: 'read',
    allowed: true,
    status: 200,
    method: 'GET',
    by: 'patient/Patient.rs',
    ...more,
  })
  before(async () => {
    auth = await TestAuthServer.open(await open())
    browser = auth.openBrowser()
    await browser.login()
    const many = Array.from({ length: 150 }, (_, at) =>
      record({ at: auth.time.now - at, request: `Patient/n${at}.` }),
    )
    await createAuditor({ store: auth.store }).record(
      ...many,
      record({ request: 'Patient/of-app', client: 'sallyport-app', patient: 'juniper', launch: 'launch-1' }),
      record({
        request: 'Condition?code=x',
        launch: 'launch-of-agent',
        details: { tool: 'search' },
      }),
      record({ request: 'Patient/refused', allowed: false, status: 403, reason: '<script>No</script>' }),
      record({ kind: 'api', request: 'api/summary' }),
      record({ request: 'Patient/of-portal', client: 'sallyport-portal' }),
      record({ server: 'auth', kind: 'register', status: 201, client: 'new-app' }),
      record({ allowed: false, status: 401, reason: 'Missing token', repeats: 57 }),
      record({ at: auth.time.now - 7_200_000, request: 'Patient/two-hours-ago' }),
    )
  })

  it('redirects to the login page without a login', async () => {
    const response = await auth.openBrowser().get('/activity')
    assert.equal(response.statusCode, 302)
    assert.equal(response.headers.location, '/login')
  })

  it('shows the newest events and counts those of the last hour (AUDIT-14)', async () => {
    const { body, statusCode } = await browser.get('/activity')
    assert.equal(statusCode, 200)
    assert.equal(countEvents(body), 100)
    assert.match(body, /57 more like it, within a minute.*Missing token/s)
    assert.match(body, /All <span class="count">211</)
    assert.match(body, /Refused <span class="count">58</)
    assert.doesNotMatch(body, />api\/|<script>No/)
    assert.match(body, /&lt;script&gt;No/)
  })

  it('names the tool of an assistant, and marks its launch (ACTIVITY-1)', async () => {
    const { body } = await browser.get('/activity?launch=launch-of-agent')
    assert.match(body, /<span class="badge[^>]*>Assistant</)
    assert.match(body, /<span class="badge[^>]*>Tool search</)
    assert.match(body, /<dt>Tool<\/dt>\s*<dd><code>search</)
    assert.doesNotMatch((await browser.get('/activity?launch=launch-1')).body, /Assistant|Tool /)
  })

  it('links to older events until the first one', async () => {
    let address = '/activity'
    let body = ''
    for (let pages = 0; pages < 3 && address !== ''; pages++) {
      body = (await browser.get(address)).body
      address = /href="(\/activity\?before=[^"]+)"/.exec(body)?.[1] ?? ''
    }
    assert.match(body, /two-hours-ago/)
    assert.match(body, /data-live="off"/)
  })

  it('filters by app, patient, launch, kind, time and outcome (ACTIVITY-2)', async () => {
    for (const query of [
      'app=sallyport-app',
      'patient=juniper',
      'launch=launch-1',
      'app=sallyport-app&result=allowed',
      'app=sallyport-app&kind=fhir&time=1h',
    ]) {
      const { body } = await browser.get(`/activity?${query}`)
      assert.equal(countEvents(body), 1, query)
      assert.match(body, /of-app/)
    }
    assert.equal(countEvents((await browser.get('/activity?result=refused')).body), 2)
    assert.equal(countEvents((await browser.get('/activity?kind=register')).body), 1)
    assert.match((await browser.get('/activity?app=nobody')).body, /No matching events/)
    assert.match((await browser.get('/activity?app=sallyport-app&kind=token')).body, /No matching events/)
    const malformed = await browser.get('/activity?before=x&result=y&kind=toString&time=__proto__')
    assert.equal(countEvents(malformed.body), 100)
  })

  it('shows distinct problems, newest first, each once with how often it occurred (ACTIVITY-9)', async () => {
    const refused = { allowed: false, status: 403, reason: 'No.', client: 'app-of-problems' } as const
    await createAuditor({ store: auth.store }).record(
      record({ ...refused, at: auth.time.now - 5, request: 'Condition/first', launch: 'p-1' }),
      record({ ...refused, at: auth.time.now - 4, request: 'Condition/twice', launch: 'p-1' }),
      record({ client: 'app-of-problems', request: 'Condition/fine', launch: 'p-1' }),
      record({ ...refused, at: auth.time.now - 2, request: 'Condition/twice', launch: 'p-2' }),
      record({ ...refused, request: '<b>', status: 400, allowed: true, launch: 'p-2' }),
    )
    const { body } = await browser.get('/activity?app=app-of-problems&result=problems')
    assert.match(body, /result=problems[^"]*" aria-current="page">Problems <span class="count">3</)
    assert.equal(countEvents(body), 3)
    assert.match(body, /&lt;b&gt;.*Condition.*twice.*2 times.*Condition.*first/s)
    assert.match(body, /<a href="\/activity\?app=app-of-problems&amp;launch=p-2">Show its launch</)
    assert.doesNotMatch(body, /fine|1 times/)
    const other = (await browser.get('/activity?app=app-of-problems')).body
    assert.match(
      other,
      /href="\/activity\?result=problems&amp;app=app-of-problems">Problems <span class="count">3</,
    )
    for (const query of ['app=nobody', 'app=app-of-problems&kind=token', 'launch=launch-1'])
      assert.match(
        (await browser.get(`/activity?${query}&result=problems`)).body,
        /No problems.*No request that/s,
      )
    await (await auth.store.trail.read())
      .deleteFrom('audit_event')
      .where('client_id', '=', 'app-of-problems')
      .execute()
  })

  it('offers the apps and patients of the newest events as choices, and the chosen one (ACTIVITY-2)', async () => {
    const { body } = await browser.get('/activity?app=nobody')
    assert.match(body, /<option value="sallyport-app">Demo app</)
    assert.match(body, /<option value="juniper">/)
    assert.match(body, /<option value="nobody" selected>nobody</)
  })

  it('names a user who is a patient by the Patient resource', async () => {
    await auth.addUser('alba', { fhir_user_id: 'Patient/juniper' })
    const { id } = await auth.store.db
      .selectFrom('clinician')
      .select('id')
      .where('username', '=', 'alba')
      .executeTakeFirstOrThrow()
    await createAuditor({ store: auth.store }).record(record({ launch: 'of-alba', subject: id }))
    const { body } = await browser.get('/activity?launch=of-alba')
    assert.match(body, /<span>User: <bdi>Patient\/juniper<\/bdi><\/span>/)
    assert.doesNotMatch(body, /Dr\. alba/)
    await (await auth.store.trail.read())
      .deleteFrom('audit_event')
      .where('launch_id', '=', 'of-alba')
      .execute()
  })

  it('shows the requests of the portal itself only on request (ACTIVITY-2)', async () => {
    const isShown = async (query: string) => /of-portal/.test((await browser.get(query)).body)
    assert.equal(await isShown('/activity'), false)
    assert.equal(await isShown('/activity?portal=1'), true)
    assert.equal(await isShown('/activity?app=sallyport-portal'), true)
  })

  it('is linked in the top bar of the portal', async () => {
    assert.match((await browser.get('/portal')).body, /href="\/activity"/)
  })
})

function countEvents(body: string): number {
  return body.match(/<li class="event/g)?.length ?? 0
}

const FHIR_BASE = 'http://localhost:8080/fhir'

describe('GET /activity after OAuth requests', () => {
  const open = openTestStore()
  let auth: TestAuthServer
  let browser: TestBrowser
  before(async () => {
    const store = await open()
    auth = await TestAuthServer.open(store, {
      audit: createAuditor({ store }),
      settings: { developerTools: true },
      explainRequest: question =>
        explain({ ...question, searchPermission: 'r', contexts: ['patient', 'user', 'system'] }, FHIR_BASE),
    })
    await auth.addClient({ client_id: 'secretive', auth_method: 'client_secret', secret_hash: sha256('top') })
    browser = await auth.logIn()
  })

  const show = async (query = '') => (await browser.get(`/activity${query}`)).body
  const explainRefusal = async ({ headers }: { headers: Record<string, unknown> }) => {
    const body = await show(`?reference=${headers['x-request-id']}`)
    return /Explain this<\/summary>\s*<div class="event__advice">(.*?)<\/div>/s.exec(body)?.[1] ?? body
  }

  it('shows a launch as one group: launch, authorize, token, refresh and FHIR requests (ACTIVITY-1)', async () => {
    const code = await auth.getCode(browser)
    const tokens = (await auth.exchange(code)).json()
    const launch: string = tokens.launch_id
    const again = (await auth.refresh(tokens.refresh_token)).json()
    await createAuditor({ store: auth.store }).record({
      at: auth.time.now + 1,
      server: 'fhir',
      kind: 'fhir',
      interaction: 'read',
      method: 'GET',
      allowed: true,
      status: 200,
      by: 'patient/Patient.rs',
      request: 'Patient/in-launch',
      launch,
    })
    const body = await show()
    const [, group = ''] = /data-key="(.*?)<\/section>/s.exec(body) ?? []
    assert.ok(group.startsWith(launch))
    const lines = [...group.matchAll(/<span class="event__what">(.*?)<\/span>\n/gs)].map(([, line = '']) =>
      line.replace(/<[^>]*>/g, ''),
    )
    assert.deepEqual(lines, ['Launch', 'Authorize', 'Token', 'Refresh', 'GET Patient/in-launch'])
    assert.match(group, /EHR launch<.*Patient: <code>juniper<.*User: <bdi>Dr\. Robin Ahmadi</s)
    assert.match(group, /Claims of the access token.*<dt>aud<\/dt><dd><code>http:\/\/localhost:8080\/fhir</s)
    assert.match(group, /Claims of the ID token.*<dt>exp<\/dt><dd><code>\d+ \(2026-11-13T14:05:00Z\)/s)
    const secrets = [code, tokens.access_token, tokens.refresh_token, tokens.id_token, again.access_token]
    for (const secret of [...secrets, VERIFIER, 'nonce-1']) assert.equal(body.includes(secret), false)
  })

  it('advises a backend service to request system/ scopes (ACTIVITY-4)', async () => {
    const launch = 'client-1'
    const event = { launch, client: 'secretive', server: 'auth', allowed: true, status: 200 } as const
    const audit = createAuditor({ store: auth.store })
    await audit.record({ ...event, at: auth.time.now, kind: 'token', by: 'system/Patient.rs' })
    await audit.record({
      ...event,
      at: auth.time.now + 1,
      server: 'fhir',
      kind: 'fhir',
      allowed: false,
      status: 403,
      method: 'GET',
      request: 'Condition',
      reason: 'Insufficient scope for GET on Condition. Required: patient/Condition.r or patient/*.rs',
      requestId: 'of-backend',
    })
    const advice = await explainRefusal({ headers: { 'x-request-id': 'of-backend' } })
    assert.match(advice, /Any one of these scopes would permit it: system\/Condition\.r, system\/\*\.rs/)
    assert.doesNotMatch(advice, /patient\/Condition|launch the app/)
  })

  it('names the app of an event without a launch (ACTIVITY-1)', async () => {
    await auth.store.db
      .updateTable('client')
      .set({ name: 'Growth chart' })
      .where('client_id', '=', 'secretive')
      .execute()
    const refused = await auth
      .openBrowser()
      .get('/oauth2/authorize?client_id=secretive&redirect_uri=https://x.example')
    const body = await show(`?reference=${refused.headers['x-request-id']}`)
    assert.match(body, /<b>Authorize<\/b> <span class="muted">Growth chart<\/span>/)
    assert.match(body, /<dt>App<\/dt><dd>Growth chart <code>secretive<\/code>/)
  })

  it('shows that the app got fewer scopes than it requested (ACTIVITY-3)', async () => {
    await auth.getCode(browser, { scope: 'launch patient/Patient.rs patient/Immunization.rs' })
    assert.match(
      await show('?kind=authorize'),
      /but not all requested scopes.*patient\/Immunization\.rs<\/code>.*Granted<\/span> <code>launch patient\/Patient\.rs</s,
    )
  })

  it('repeats the beginning of a launch on the page of its later requests (ACTIVITY-1)', async () => {
    const launch = (await auth.exchange(await auth.getCode(browser))).json().launch_id
    const many = Array.from({ length: 120 }, (_, at) => ({
      server: 'fhir' as const,
      kind: 'fhir' as const,
      allowed: true,
      status: 200,
      interaction: 'read' as const,
      at: auth.time.now + 10 + at,
      launch,
      request: `Patient/n${at}`,
    }))
    await createAuditor({ store: auth.store }).record(...many)
    assert.equal(countEvents(await show(`?launch=${launch}`)), 103)
    assert.equal(countEvents(await show(`?launch=${launch}&kind=fhir`)), 100)
    await (await auth.store.trail.read()).deleteFrom('audit_event').where('launch_id', '=', launch).execute()
  })

  it('shows at most 30 launches on a page, and links to the next ones', async () => {
    const many = Array.from({ length: 35 }, (_, at) => ({
      server: 'fhir' as const,
      kind: 'fhir' as const,
      allowed: true,
      status: 200,
      interaction: 'read' as const,
      at: auth.time.now + 100 - at,
      launch: `many-${at}`,
      client: 'many',
      request: `Patient/n${at}`,
    }))
    await createAuditor({ store: auth.store }).record(...many)
    const body = await show('?app=many')
    assert.equal(countEvents(body), 30)
    const older = /href="(\/activity\?[^"]*before=[^"]+)"/.exec(body)?.[1]?.replaceAll('&amp;', '&') ?? ''
    assert.equal(countEvents((await browser.get(older)).body), 5)
    await (await auth.store.trail.read()).deleteFrom('audit_event').where('client_id', '=', 'many').execute()
  })

  it('finds a refusal by the reference of its error page, with the sent and the registered redirect_uri (ACTIVITY-5)', async () => {
    const redirect_uri = 'https://evil:pw@other.example/callback?patient=Smith&x=#token'
    const response = await auth.authorize(browser, { redirect_uri })
    const [, link = '', reference = ''] =
      /<a href="(\/activity\?reference=[^"]*)" target="_blank"><code>([^<]*)</.exec(response.body) ?? []
    assert.equal(reference, response.headers['x-request-id'])
    const { body } = await browser.get(link)
    assert.equal(countEvents(body), 1)
    assert.match(body, /event--found.*<details class="event__line" open>/s)
    assert.match(
      body.replace(/<\/?mark>/g, ''),
      /<code>https:\/\/…@other\.example\/callback\?patient=…&amp;x=#…</,
    )
    assert.match(body, /Registered<\/span> <code><mark>http:\/\/.*\/callback</)
    assert.match(
      await explainRefusal(response),
      /Registered is http:\/\/localhost:8081\/callback\. The difference: the scheme \(https instead of http\); .*What to do.*Register the URL/s,
    )
  })

  it('explains a valid id_token_hint of another user, and an account that opens no records, as what they are (ACTIVITY-4)', async () => {
    await auth.addUser('other-user')
    await auth.addUser('without-records', { fhir_user_id: '' })
    const { id_token: hint } = (await auth.exchange(await auth.getCode(browser))).json()
    const other = await auth.logIn('other-user')
    assert.match(
      await explainRefusal(await auth.authorize(other, { id_token_hint: hint })),
      /is valid, but another user is signed in than the one whom it names\..*prompt=login/s,
    )
    const administrator = await auth.logIn('without-records')
    assert.match(
      await explainRefusal(await auth.authorize(administrator)),
      /an account that opens no patient records.*Sign in with the account of a clinician/s,
    )
  })

  it('says what the user did not allow, and what the app is not registered for (ACTIVITY-4)', async () => {
    const scope = 'launch patient/Observation.rs patient/Condition.crus'
    await auth.addClient({ client_id: 'asking', scope, first_party: false })
    const consent = async (asked: string, ...cleared: readonly string[]) => {
      const parameters = {
        client_id: 'asking',
        redirect_uri: 'https://asking.example/callback',
        scope: asked,
      }
      const launch = await auth.launch(browser, { clientId: 'asking' })
      const response = await auth.authorize(browser, { ...parameters, launch })
      const form = readForm((await browser.get(response.headers.location ?? '')).body)
      const chosen = clearScopes(form, ...cleared)
      await browser.post('/oauth2/consent', `${chosen}&decision=allow`)
      const body = await show('?app=asking&kind=authorize')
      return /class="event__advice">(.*?)<\/div>/s.exec(body)?.[1] ?? ''
    }
    const laboratory =
      'patient/Observation.rs?category=http://terminology.hl7.org/CodeSystem/observation-category|laboratory'
    const declined = await consent('launch patient/Observation.rs', laboratory)
    assert.match(declined, /<p>The user did not allow laboratory results\.<\/p>/)
    assert.doesNotMatch(declined, /[Rr]egister/)
    auth.time.now += 1
    assert.match(
      await consent('launch patient/Observation.rs patient/Condition.crus', 'patient/Condition.cu'),
      /The user did not allow adding and changing conditions\./,
    )
    auth.time.now += 1
    const unregistered = await consent('launch patient/Observation.rs patient/Immunization.rs')
    assert.match(
      unregistered,
      /Not granted, or only in part: patient\/Immunization\.rs\. The app is not registered/,
    )
    assert.doesNotMatch(unregistered, /user did not allow/)
  })

  it('explains records of earlier releases by their text (ACTIVITY-4)', () => {
    const group = { key: 'none', title: '', launch: undefined, events: [], first: [] }
    const explainOld = (reason: string, details: object | null = null) => {
      const stored = details === null ? null : JSON.stringify(details)
      const record = { kind: 'token', allowed: false, repeats: null, details: stored, reason } as KeptRecord
      return adviseOn(record, group, { explainRequest: undefined, hooks: undefined })
    }
    assert.match(
      explainOld('invalid_grant: The code is not valid for this request.', { detail: 'it has expired' })
        ?.cause ?? '',
      /The code has expired/,
    )
    assert.match(
      explainOld('invalid_request: The redirect_uri is not registered for the app.', {
        compared: [
          { name: 'redirect_uri', sent: 'https://a/', expected: ['https://b/'], origin: 'registered' },
        ],
      })?.cause ?? '',
      /Registered is https:\/\/b\//,
    )
    assert.match(explainOld('login_required: The user must log in.')?.action ?? '', /without prompt=none/)
  })

  it('says that no encounter was chosen, where the page knew it (ACTIVITY-4)', async () => {
    const form = { patientId: 'juniper', step: 'encounter' }
    const refused = await browser.post('/portal/launch', form)
    assert.equal(refused.statusCode, 400)
    assert.match(
      await explainRefusal(refused),
      /No encounter was chosen.*What to do:<\/b> Choose an encounter/s,
    )
    await auth.getCode(browser, { scope: 'launch launch/encounter patient/Patient.rs' })
    assert.match(
      await show('?kind=authorize'),
      /No encounter was chosen, so the app does not get launch\/encounter\..*What to do:<\/b> Choose an encounter/s,
    )
  })

  it('shows mistakes without a launch, and all refused events, newest first (ACTIVITY-8)', async () => {
    const ids: string[] = []
    for (const client_id of ['first', 'second', 'third'])
      ids.push(String((await auth.authorize(browser, { client_id })).headers['x-request-id']))
    for (const query of ['', '?result=refused']) {
      const body = await show(query)
      const [first, second, third] = ids.map(id => body.indexOf(id))
      assert(first && second && third && third > 0 && third < second && second < first, query)
    }
  })

  it('says so if no event has the reference (ACTIVITY-5)', async () => {
    assert.match(await show('?reference=0000-0000-0000'), /No event has this reference/)
  })

  it('explains refused authorization requests (ACTIVITY-4)', async () => {
    const cases: readonly (readonly [Record<string, string | undefined>, RegExp])[] = [
      [{ client_id: 'nobody' }, /No app is registered with the client_id nobody,/],
      [
        { aud: 'http://localhost:8080/fhir/r4' },
        /The app sends the aud http:\/\/localhost:8080\/fhir\/r4\. This server requires http:\/\/localhost:8080\/fhir\. The difference: the path \(\/fhir\/r4 instead of \/fhir\)\./,
      ],
      [{ aud: undefined }, /The request has no aud\..*Send “aud” with .*\(http:\/\/localhost:8080\/fhir\)/s],
      [
        { redirect_uri: 'http://localhost:8081/callback/' },
        /The difference: the slash at the end, which it should not have\./,
      ],
      [{ redirect_uri: undefined }, /Send “redirect_uri” with .*\(http:\/\/localhost:8081\/callback\)/],
      [
        { code_challenge_method: 'plain' },
        /sends the code_challenge_method plain\. This server requires S256/,
      ],
      [{ response_mode: 'fragment' }, /sends the response_mode fragment\. This server requires query/],
      [{ scope: 'patient/Nothing.rs' }, /None of the requested scopes/],
      [{ launch: unknownToken }, /not from this server/],
      [{ response_type: 'token' }, /sends the response_type token\. .*only with a code in the query/],
    ]
    for (const [different, expected] of cases)
      assert.match(await explainRefusal(await auth.authorize(browser, different)), expected)
  })

  it('explains refused token requests, with the sent and the expected values (ACTIVITY-3)', async () => {
    const code = () => auth.getCode(browser)
    const wrong = 'another-verifier-of-43-characters-or-even-more'
    const form = { grant_type: 'authorization_code' }
    const client_id = 'sallyport-app'
    const redirect_uri = 'http://localhost:8081/callback'
    const cases: readonly (readonly [Promise<LightMyRequestResponse>, RegExp, RegExp])[] = [
      [auth.exchange(await code(), { code_verifier: wrong }), /does not belong to the code_chall/, /46 char/],
      [
        auth.exchange(await code(), { redirect_uri: 'http://localhost:8081/other' }),
        /The authorization request had http:\/\/localhost:8081\/callback\. The difference: the path/,
        /8081\/<mark>other<.*In the authorization request<.*8081\/<mark>callback</s,
      ],
      [auth.exchange(await code(), { client_secret: 'Top' }), /public client/, /client_secret_post.*none</s],
      [
        auth.exchange(await code(), { client_id: 'secretive' }),
        /registered with a secret/,
        /<code>none<.*client_secret_basic/s,
      ],
      [
        auth.requestToken({ grant_type: 'x', client_id: 'sallyport-app' }),
        /kind of request/,
        /refresh_token/,
      ],
      [
        auth.requestToken({ ...form, code: await code(), client_id, redirect_uri }),
        /The request has no code_verifier/,
        /is missing/,
      ],
      [
        auth.requestToken({ ...form, code: await code(), client_id, code_verifier: VERIFIER }),
        /same one again in the token request/,
        /is missing/,
      ],
      [
        auth.requestToken({ ...form, code: await code(), redirect_uri, code_verifier: VERIFIER }),
        /does not say which app it is from.*Send “client_id”/s,
        /names no client/,
      ],
      [auth.exchange(unknownToken), /code is unknown/, /unknown, or belongs to another client/],
      [auth.refresh(unknownToken), /refresh token is unknown/, /Exact reason/],
    ]
    for (const [response, expected, details] of cases) {
      const { headers } = await response
      assert.match(await explainRefusal({ headers }), expected)
      const body = await show(`?reference=${headers['x-request-id']}`)
      assert.match(body, details)
      for (const secret of [wrong, 'Top', unknownToken]) assert.equal(body.includes(`>${secret}<`), false)
    }
  })

  it('explains refused FHIR requests by the scopes of the token (ACTIVITY-4)', async () => {
    const launch = (await auth.exchange(await auth.getCode(browser))).json().launch_id
    const cases: readonly (readonly [AuditRecord['status'], string, string, RegExp])[] = [
      [
        403,
        'Immunization',
        'Insufficient scope',
        /Any one of these scopes.* patient\/Immunization\.r.*Scopes of/s,
      ],
      [403, 'Condition/1', OUTSIDE, /the resource itself is outside the grant/],
      [
        403,
        'Condition',
        'Not within the granted patient, user or filter. This server cannot limit the request to the grant: the search must name the patient',
        /the search must name the patient(?!.*the resource itself is outside).*Name the patient of the token in the search/s,
      ],
      [401, 'Condition/1', 'The access token has expired.', /Refresh it at the token endpoint/],
      [401, 'Condition/1', 'The token is not accepted: it was revoked', /The access has ended/],
      [401, 'Condition/1', 'The token is not accepted: it is not a JWT', /“undefined” or “null”/],
      [401, 'Condition/1', 'The token is not accepted: typ is not at+jwt', /probably the ID token/],
      [
        404,
        'Conditions',
        'Cannot find this resource type in FHIR R4',
        /FHIR R4 has no resource type.*in the singular/s,
      ],
      [
        400,
        '/Condition',
        'Cannot read path: it has an empty segment',
        /two slashes in a row.*with one slash/s,
      ],
      [
        405,
        'Condition',
        'Cannot process this method at this URL',
        /does not understand the request: Cannot process this method at this URL\.<.*Compare the method and the URL/s,
      ],
      [400, 'Condition/1', 'Unknown parameter', /Unknown parameter.*parameter that the reason names/s],
    ]
    for (const [at, [status, request, reason, expected]] of cases.entries()) {
      await createAuditor({ store: auth.store }).record({
        at: auth.time.now + 1,
        server: 'fhir',
        kind: 'fhir',
        method: 'GET',
        allowed: false,
        status,
        request,
        reason,
        launch,
        patient: 'juniper',
        requestId: `fhir-${at}`,
      })
      assert.match(await explainRefusal({ headers: { 'x-request-id': `fhir-${at}` } }), expected)
    }
  })

  it('explains what a token of one patient does not reach (ACTIVITY-4)', async () => {
    const scope = 'launch patient/Patient.rs patient/Condition.crus user/Observation.rs'
    const uri = 'https://writer.example/callback'
    await auth.addClient({ client_id: 'writer', scope })
    const code = await auth.getCode(browser, { client_id: 'writer', redirect_uri: uri, scope })
    const exchanged = await auth.exchange(code, { client_id: 'writer', redirect_uri: uri })
    const launch = exchanged.json().launch_id
    const insufficient = 'Insufficient scope for GET on Observation. Required: patient/Observation.r'
    const read = { method: 'GET', allowed: false, status: 403 } as const
    const cases: readonly (readonly [Partial<AuditRecord>, RegExp])[] = [
      [
        { ...read, request: 'Patient/other-2', by: 'patient/Patient.rs', reason: OUTSIDE },
        /token is for Patient\/juniper, but the request asks for Patient\/other-2\..*Use the id in “patient” of the token/s,
      ],
      [
        { ...read, request: 'Patient/other-2/Condition', by: 'patient/Condition.crus', reason: OUTSIDE },
        /asks for Patient\/other-2\./,
      ],
      [
        { ...read, request: 'Condition', type: 'Condition', interaction: 'search-type', reason: OUTSIDE },
        /Name the patient of the token in the search: Condition\?patient=juniper,/,
      ],
      [
        {
          ...read,
          request: 'Condition?code.x=1',
          interaction: 'search-type',
          reason: `${OUTSIDE} This server cannot limit the request to the grant: a chain searches data outside the grant`,
        },
        /Change the request as the reason says/,
      ],
      [
        { ...read, method: 'POST', request: 'Condition', interaction: 'create', reason: OUTSIDE },
        /Outside the grant.*the content or the stored resource.*Refer only to Patient\/juniper,/s,
      ],
      [
        {
          ...read,
          request: 'Observation/1',
          interaction: 'read',
          fhirUser: 'Practitioner/robin',
          reason: `${insufficient}. This server accepts no user/ scopes. Any one of these scopes would permit it`,
        },
        /This server accepts no user\/ scopes\..*request scopes of another context/s,
      ],
      [
        {
          ...read,
          allowed: true,
          status: 200,
          request: 'Condition?patient=other-2',
          interaction: 'search-type',
          by: 'patient/Condition.crus',
        },
        /The search names Patient\/other-2, but finds only data in the record of Patient\/juniper\.<\/span>/,
      ],
    ]
    for (const [at, [more, expected]] of cases.entries()) {
      const record = { server: 'fhir', kind: 'fhir', allowed: false, status: 403, launch, ...more } as const
      await createAuditor({ store: auth.store }).record({
        at: auth.time.now + 1,
        requestId: `other-${at}`,
        patient: 'juniper',
        ...record,
      })
      // Allowed requests have no reference.
      const body = await show(record.allowed ? `?launch=${launch}` : `?reference=other-${at}`)
      assert.match(body, expected)
      assert.doesNotMatch(body, /Make the app request a scope that permits this/)
      if (record.interaction !== 'read') assert.doesNotMatch(body, /Check the id, and/)
    }
  })

  it('warns about a request without a state (ACTIVITY-4)', async () => {
    const code = await auth.getCode(browser, { state: undefined })
    const launch = (await auth.exchange(code)).json().launch_id
    const body = await show(`?launch=${launch}`)
    assert.match(body, /The app got a code, but sent no state/)
    assert.match(body, /The request has no state, which SMART requires.*Send a new random “state”/s)
    const complete = (await auth.exchange(await auth.getCode(browser))).json().launch_id
    assert.doesNotMatch(await show(`?launch=${complete}`), /no state/)
  })

  it('shows a request that was permitted but is not valid as failed, with the reason (ACTIVITY-4)', async () => {
    const failed = { server: 'fhir', kind: 'fhir', allowed: true, method: 'GET', at: auth.time.now } as const
    const launch = 'of-failed'
    await createAuditor({ store: auth.store }).record(
      {
        ...failed,
        launch,
        status: 400,
        by: 'patient/*.rs',
        reason: 'Unknown search parameter x of Condition',
      },
      { ...failed, launch, status: 404, by: 'patient/*.rs' },
      { ...failed, launch, status: 406, by: 'patient/*.rs' },
      { ...failed, launch, status: 415, by: 'patient/*.rs' },
      { ...failed, launch, status: 422, by: 'patient/*.rs' },
    )
    const body = await show(`?launch=${launch}`)
    assert.match(body, /Failed<\/span> <span class="event__status">400/)
    assert.match(body, /Allowed<\/span> <span class="event__status">404/)
    assert.match(body, /The server sends only JSON.*Send “Accept: application\/fhir\+json”/s)
    assert.match(body, /does not read the content type.*Send “Content-Type: application\/fhir\+json”/s)
    assert.match(body, /not valid FHIR R4.*Correct each element/s)
    assert.match(
      body,
      /<p>Unknown search parameter x of Condition\.<\/p>.*Correct what the OperationOutcome/s,
    )
  })

  it('hides tokens and secrets that an app sends in the wrong parameter (ACTIVITY-3)', async () => {
    for (const client_id of [unknownToken, `x${unknownToken}`]) {
      await auth.authorize(browser, { client_id })
      await auth.exchange(unknownToken, { client_id })
    }
    const rows = JSON.stringify(
      await (await auth.store.trail.read()).selectFrom('audit_event').selectAll().execute(),
    )
    for (const hidden of [unknownToken, VERIFIER, 'Robin Ahmadi', 'Smith'])
      assert.equal(rows.includes(hidden), false, hidden)
  })

  it('compares a long value of many question marks without delay (ACTIVITY-3)', () => {
    const started = process.cpuUsage()
    limitComparisons([
      { name: 'client_id', sent: `x:${'?'.repeat(60_000)}`, expected: [], origin: 'registered' },
    ])
    const { user } = process.cpuUsage(started)
    assert.ok(user < 1_000_000, `${user} µs`)
  })

  it('shows introspections with the response, but not the token (ACTIVITY-7)', async () => {
    const secret = { client_id: 'secretive', client_secret: 'top' }
    const code = await auth.getCode(browser, {
      client_id: 'secretive',
      redirect_uri: 'https://secretive.example/callback',
      scope: 'launch patient/Patient.rs',
    })
    const form = { ...secret, redirect_uri: 'https://secretive.example/callback' }
    const { access_token: token } = (await auth.exchange(code, form)).json()
    for (const sent of [token, unknownToken])
      await auth.openBrowser().post('/oauth2/introspect', { ...secret, token: sent })
    const body = await show('?kind=introspect')
    assert.equal(countEvents(body), 2)
    assert.match(body, /Active.*Introspection response.*<dt>active<\/dt><dd><code>true</s)
    assert.match(body, /Inactive: it is not an access token that this server signed/)
    assert.equal(body.includes(token), false)
  })

  it('shows refused revocations and introspections (ACTIVITY-7)', async () => {
    const form = { token: unknownToken, client_id: 'secretive', client_secret: 'wrong' }
    for (const path of ['/oauth2/revoke', '/oauth2/introspect']) {
      const response = await auth.openBrowser().post(path, form)
      assert.equal(response.statusCode, 401)
      assert.match(await explainRefusal(response), /registered with a secret/)
    }
  })
})

describe('GET /activity off loopback', () => {
  const open = openTestStore()

  it('allows only the clinicians that the setting names (AUDIT-14)', async () => {
    const audit = { ...testSettings.audit, activityClinicians: ['someone'] }
    const auth = await TestAuthServer.open(await open(), { settings: { onLoopback: false, audit } })
    const browser = auth.openBrowser()
    await browser.login()
    const { statusCode, body } = await browser.get('/activity')
    assert.equal(statusCode, 403)
    assert.match(body, /You do not have access to the activity[\s\S]*Go to the start page/)
    assert.doesNotMatch((await browser.get('/portal')).body, /href="\/activity"/)
    const { body: refused } = await auth.authorize(browser, { redirect_uri: 'https://other.example/' })
    assert.match(refused, /<dt>Reference<\/dt><dd><code>/)
  })
})

describe('mayViewActivity', () => {
  const settings = (onLoopback: boolean, activityClinicians?: readonly string[]) =>
    ({ onLoopback, developerTools: false, audit: { activityClinicians } }) as unknown as Parameters<
      typeof mayViewActivity
    >[0]
  const login = (username: string, { fhirUserId = 'p', admin = false } = {}) =>
    ({ user: { username, fhirUserId }, admin }) as const
  it('allows every clinician on loopback by default', () => {
    assert.equal(mayViewActivity(settings(true), login('ada')), true)
    assert.equal(mayViewActivity(settings(true, ['bea']), login('ada')), false)
  })
  it('allows only the named clinicians off loopback', () => {
    assert.equal(mayViewActivity(settings(false), login('ada', { admin: true })), false)
    assert.equal(mayViewActivity(settings(false, ['ada']), login('ada')), true)
  })
  it('allows only administrators by default while developer tools are on off loopback, and never a patient (AUDIT-14)', () => {
    const tools = { ...settings(false), developerTools: true }
    assert.equal(mayViewActivity(tools, login('ada')), false)
    assert.equal(mayViewActivity(tools, login('ada', { admin: true })), true)
    const alba = login('alba', { fhirUserId: 'Patient/1', admin: true })
    assert.equal(mayViewActivity({ ...tools, onLoopback: true }, alba), false)
  })
})

describe('describeDecision', () => {
  const names: KnownNames = {
    user: () => 'Dr. Robin Ahmadi',
    app: id => (id === 'x' ? 'Helio Trends' : undefined),
  }
  const words = (more: Partial<KeptRecord>) =>
    describeDecision(
      {
        kind: 'fhir',
        allowed: true,
        status: 200,
        decided_by: null,
        reason: null,
        details: null,
        ...more,
      } as KeptRecord,
      names,
    )

  const cases: readonly (readonly [more: Partial<KeptRecord>, words: object])[] = [
    [
      { decided_by: 'patient/Condition.rs', interaction: 'search-type', resource_type: 'Condition' },
      { scope: 'patient/Condition.rs', why: 'Search inside this patient’s record' },
    ],
    [
      {
        decided_by: 'patient/Patient.rs',
        interaction: 'read',
        resource_type: 'Patient',
        resource_id: 'juniper',
        patient_id: 'juniper',
      },
      { scope: 'patient/Patient.rs', why: 'Read of the patient in the token' },
    ],
    [
      { decided_by: 'user/Patient.rs', interaction: 'search-type', subject: 'c' },
      { scope: 'user/Patient.rs', why: 'Search by Dr. Robin Ahmadi' },
    ],
    [
      { decided_by: 'system/*.rs', interaction: 'history-type' },
      { scope: 'system/*.rs', why: 'Earlier versions by the app itself' },
    ],
    [{ decided_by: 'fhirUser' }, { scope: 'fhirUser', why: 'A token may read its own user' }],
    [{ decided_by: 'public' }, { title: 'No scope needed', why: 'Public: needs no token' }],
    [{ decided_by: 'entries' }, { title: 'Each entry separately', why: 'A batch or transaction' }],
    [
      { allowed: false, status: 401, reason: 'Why' },
      { title: 'Token not accepted', why: 'Why' },
    ],
    [
      { allowed: false, status: 403, reason: 'Insufficient scope for GET on Condition.' },
      { title: 'No granted scope', why: 'Insufficient scope for GET on Condition.' },
    ],
    [
      { allowed: false, status: 403, reason: 'Any text', details: '{"reason":"insufficient-scope"}' },
      { title: 'No granted scope', why: 'Any text' },
    ],
    [
      { allowed: false, status: 403, reason: 'The content of the write is not within the grant' },
      { title: 'Outside the grant', why: 'The content of the write is not within the grant' },
    ],
    [
      { allowed: false, status: 403, reason: 'Why', decided_by: 'patient/Condition.rs' },
      { scope: 'patient/Condition.rs', why: 'Why' },
    ],
    [
      { allowed: false, status: 400, reason: 'Why' },
      { title: 'Invalid request', why: 'Why' },
    ],
  ]
  for (const [more, expected] of cases) {
    it(`returns ${Object.values(expected).join(': ')}`, () => assert.deepEqual(words(more), expected))
  }

  it('shows the app, the page of this server, or no app', () => {
    const app = (client_id: string | null, reason: string | null = null, fhir_user: string | null = null) =>
      describeApp({ client_id, reason, fhir_user }, names)
    assert.deepEqual([app('x'), app('y'), app(null)], ['Helio Trends', 'y', 'No app'])
    const page = (reason: string | null, user?: string) => app('sallyport-portal', reason, user)
    assert.equal(page('Consent page', 'Practitioner/1'), 'Consent page')
    assert.equal(page('Names on a page of a patient or relative'), 'Pages of patients and relatives')
    assert.equal(page('Whose records a user may open'), 'This server')
    assert.equal(page('Check of an account', 'Practitioner/1'), 'Administration')
    // Of earlier versions.
    assert.equal(page(null, 'Practitioner/1'), 'Patient list')
    assert.equal(page(null, 'Patient/1'), 'Pages of patients and relatives')
  })
})
