import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import { createLocalJWKSet, jwtVerify } from 'jose'
import { createAuditor, findRecords } from '../../../audit/index.ts'
import { isRecord } from '../../../core/index.ts'
import { computeRevocationKey } from '../../oauth/revocation/list.ts'
import { decodeClaims, readRedirect, TestAuthServer } from '../../testing/test-auth-server.ts'
import type { TestBrowser } from '../../testing/test-browser.ts'
import { startCdsService, type TestCdsService } from '../../testing/test-cds-service.ts'
import { openTestStore } from '../../testing/test-store.ts'

const CARD = {
  summary: 'Blood pressure is high',
  indicator: 'warning',
  source: { label: 'Guideline <2026>', url: 'https://guideline.example/' },
}

const SCOPE = 'launch openid offline_access patient/Patient.rs patient/Observation.rs user/*.rs system/*.rs'

describe('decision support in the portal', () => {
  const open = openTestStore()
  let auth: TestAuthServer
  let service: TestCdsService
  let browser: TestBrowser
  before(async () => {
    service = await startCdsService()
    const down = { id: 'down', name: 'Old service', url: 'http://127.0.0.1:1', clientId: 'advice' }
    const services = [
      { id: 'bp', name: 'Heart advice', url: service.url, clientId: 'advice' },
      { id: 'lost', name: 'Lost service', url: service.url, clientId: 'nobody' },
      down,
    ]
    const store = await open()
    const audit = createAuditor({ store })
    auth = await TestAuthServer.open(store, {
      audit,
      settings: { cds: { services }, accessTokenTtlSeconds: 900 },
    })
    await auth.addClient({ client_id: 'advice', scope: SCOPE, launch_url: null })
    await auth.addClient({ client_id: 'chart', scope: 'launch patient/Patient.rs' })
    await auth.addClient({ client_id: 'unknown', launch_url: 'https://self.example/launch', approved: false })
    browser = await auth.logIn()
  })
  after(() => service.close())
  beforeEach(() => {
    service.received.length = 0
    service.respond(() => ({ cards: [CARD] }))
  })

  const show = (patient = 'juniper', headers = {}) => browser.get(`/portal/cards?patient=${patient}`, headers)
  const authorization = () => {
    const { fhirAuthorization } = service.received[0]?.hook ?? {}
    return isRecord(fhirAuthorization) ? fhirAuthorization : assert.fail()
  }

  it('names a service once that is its own source, and counts several cards in the heading', async () => {
    service.respond(() => ({
      cards: [
        { summary: 'One', indicator: 'info', source: { label: 'heart advice ' } },
        { summary: 'Two', indicator: 'critical', source: { label: 'Guideline' } },
        { summary: 'Three', indicator: 'critical', source: { label: 'Guideline' } },
      ],
    }))
    const { body } = await show()
    assert.match(body, /Source: heart advice ?<\/p>/)
    assert.match(body, /Source: Guideline, from Heart advice<\/p>/)
    assert.match(body, />Decision support: 2 critical, 1 information</)
    service.respond(() => ({ cards: [CARD] }))
    assert.match((await show()).body, />Decision support</)
  })

  it('does not delay the portal page, where a script and a link lead to the cards (CDS-1)', async () => {
    const page = await browser.get('/portal?patient=juniper')
    assert.match(
      page.body,
      /data-cards="\/portal\/cards\?patient=juniper"[\s\S]*<a href="\/portal\/cards\?patient=juniper">Show decision/,
    )
    assert.match(page.body, /assets\/cards\.\w+\.js/)
    assert.deepEqual(service.received, [])
    const without = await TestAuthServer.open(await open())
    assert.equal((await (await without.logIn()).get('/portal/cards?patient=juniper')).statusCode, 404)
    assert.doesNotMatch(
      (await (await without.logIn()).get('/portal?patient=juniper')).body,
      /data-cards|cards/,
    )
  })

  it('sends the hook patient-view, signed with a key of the server, and shows the cards (CDS-2)', async () => {
    const page = await show()
    assert.equal(page.statusCode, 200)
    assert.equal(page.headers['cache-control'], 'no-store')
    assert.match(page.body, /Warning<\/span> Blood pressure is high/)
    assert.match(
      page.body,
      /href="https:\/\/guideline\.example\/"[^>]*>Guideline &lt;2026&gt;<\/a>, from Heart advice/,
    )
    assert.match(page.body, /Old service is not available at the moment/)
    const [{ path, jwt, hook } = assert.fail()] = service.received
    assert.equal(path, 'POST /cds-services/bp')
    assert.deepEqual([hook.hook, hook.fhirServer], ['patient-view', 'http://localhost:8080/fhir'])
    assert.match(String(hook.hookInstance), /^[\w-]{36}$/)
    assert.deepEqual(hook.context, {
      userId: 'Practitioner/practitioner-1',
      patientId: 'juniper',
      encounterId: 'enc-1',
    })
    const keys = createLocalJWKSet((await browser.get('/oauth2/jwks')).json())
    const { payload, protectedHeader } = await jwtVerify(jwt, keys, {
      issuer: 'http://localhost:9000',
      audience: `${service.url}/cds-services/bp`,
      currentDate: new Date(auth.time.now),
    })
    assert.equal(protectedHeader.jku, 'http://localhost:9000/oauth2/jwks')
    assert.ok(payload.jti && Number(payload.exp) - Number(payload.iat) <= 300)
  })

  it('gives the service the registered patient/ scopes for this patient, until it responds (CDS-3)', async () => {
    await (await auth.store.trail.read()).deleteFrom('audit_event').execute()
    const listed: string[] = []
    const list = async () => listed.push((await browser.get('/manage')).body)
    service.respond(async () => {
      await list()
      return { cards: [CARD] }
    })
    await show()
    await list()
    // Nobody allowed it, and it ends by itself.
    for (const page of listed) assert.doesNotMatch(page, /client=advice/)
    assert.equal(listed.length, 2)
    const { access_token, ...rest } = authorization()
    const scope = 'patient/Patient.rs patient/Observation.rs'
    assert.deepEqual(rest, {
      token_type: 'Bearer',
      expires_in: 60,
      scope,
      subject: 'advice',
      patient: 'juniper',
    })
    const claims = decodeClaims(access_token)
    assert.deepEqual([claims.scope, claims.patient, claims.client_id], [scope, 'juniper', 'advice'])
    assert.equal(Number(claims.exp) - Number(claims.iat), 60)
    const grantId = String(claims.jti).split('.')[0] ?? ''
    const { revoked } = (await browser.get('/oauth2/revocations')).json()
    assert.ok(revoked.includes(computeRevocationKey(grantId)))
    const [record] = await findRecords(auth.store, { limit: 10, order: 'oldest' })
    assert.deepEqual(
      [record?.kind, record?.client_id, record?.patient_id, record?.reason, record?.launch_id],
      ['token', 'advice', 'juniper', 'For the CDS service bp: patient-view', grantId],
    )
  })

  it('calls no service if the clinician may not see the patient, if a patient is signed in, or if another site sent the request (CDS-4)', async () => {
    assert.equal((await show('nobody')).statusCode, 404)
    assert.equal((await show('../Patient')).statusCode, 404)
    assert.equal((await show('')).statusCode, 404)
    for (const headers of [{ 'sec-fetch-site': 'cross-site' }, { accept: 'text/html' }])
      assert.equal((await show('juniper', headers)).statusCode, 403)
    assert.equal((await auth.openBrowser().get('/portal/cards?patient=juniper')).headers.location, '/login')
    await auth.addUser('alba', { fhir_user_id: 'Patient/juniper' })
    const alba = await auth.logIn('alba')
    assert.equal((await alba.get('/portal/cards?patient=juniper')).headers.location, '/home')
    assert.deepEqual(service.received, [])
  })

  it('shows one line for a service that fails, and revokes its access (CDS-5)', async () => {
    const deep = `{"cards":${'['.repeat(2000)}${']'.repeat(2000)}}`
    const long = JSON.stringify({ cards: [{ ...CARD, detail: 'x'.repeat(300_000) }] })
    for (const response of [500, 302, 'not JSON', {}, { cards: 'none' }, deep, long]) {
      service.respond(() => response)
      const page = await show()
      assert.equal(page.statusCode, 200)
      assert.match(
        page.body,
        /Heart advice is not available at the moment\.<\/b> Its advice is missing here\./,
      )
    }
    auth.fhir.fail(500)
    assert.equal((await show()).statusCode, 503)
    auth.fhir.fail(undefined)
    const live = auth.store.db.selectFrom('grant').select('id').where('revoked_at', 'is', null)
    assert.deepEqual(await live.where('client_id', '=', 'advice').execute(), [])
    service.respond(() => ({ cards: [] }))
    assert.match((await show()).body, /Heart advice has nothing to show for this patient/)
  })

  it('calls no service whose client is unknown or has no patient/ scopes (CDS-3)', async () => {
    const change = (scope: string) =>
      auth.store.db.updateTable('client').set({ scope }).where('client_id', '=', 'advice').execute()
    await change('openid user/*.rs')
    const { body } = await show()
    await change(SCOPE)
    assert.match(body, /Heart advice is not available/)
    assert.match(body, /Lost service is not available/)
    assert.deepEqual(service.received, [])
  })

  it('escapes text, and shows only web links and complete cards, the most urgent first (CDS-6)', async () => {
    const links = [
      { label: 'Read <more>', url: 'https://guideline.example/?a=1&b=2', type: 'absolute' },
      { label: 'Script', url: 'javascript:alert(1)', type: 'absolute' },
      { label: 'Data', url: 'data:text/html,x', type: 'absolute' },
      { label: 'No type', url: 'https://guideline.example/' },
    ]
    const detail =
      'See **this** & <img src=x onerror=alert(1)>:\n\n- one\n- [two](https://two.example/)\n- [three](javascript:alert(2))'
    const cards = [
      { ...CARD, summary: '<script>alert(1)</script>', indicator: 'info', detail, links },
      { summary: 'No source', indicator: 'info' },
      { ...CARD, summary: 'Wrong indicator', indicator: 'urgent' },
      { ...CARD, summary: 'x'.repeat(201) },
      ...Array.from({ length: 6 }, (_, at) => ({ ...CARD, summary: `Card ${at}.` })),
      // However many others there are.
      ...Array.from({ length: 20 }, () => ({ ...CARD, summary: 'Last', indicator: 'info' })),
      { ...CARD, summary: 'Stop', indicator: 'critical', suggestions: [{ label: 'Do it' }] },
    ]
    service.respond(() => ({ cards }))
    const { body, headers } = await show()
    assert.doesNotMatch(
      body,
      /<script>|<img|javascript:alert\(1\)|href="javascript|data:text|No type|No source|Wrong indicator/,
    )
    assert.match(body, /&lt;script&gt;alert\(1\)&lt;\/script&gt;/)
    assert.match(body, /See <b>this<\/b> &amp; &lt;img src=x/)
    assert.match(
      body,
      /<ul>\s<li>one<\/li>\s<li><a href="https:\/\/two\.example\/"[^>]*rel="noopener noreferrer">two<\/a>/,
    )
    assert.match(body, /<li>\[three\]\(javascript:alert\(2\)\)<\/li>/)
    assert.match(
      body,
      /href="https:\/\/guideline\.example\/\?a=1&amp;b=2" target="_blank" rel="noopener noreferrer">Read &lt;more&gt;/,
    )
    assert.equal(body.match(/<article/g)?.length, 10)
    assert.ok(
      body.indexOf('> Stop<') < body.indexOf('> Card 0.<') &&
        body.indexOf('> Card 0.<') < body.indexOf('&lt;script'),
    )
    assert.match(String(headers['content-security-policy']), /script-src 'self'/)
  })

  it('launches the registered app of a smart link, and its token response has the appContext (CDS-7)', async () => {
    const appContext = '{"note":"Alba’s plan"}'
    const smart = { label: 'Open chart', url: 'https://chart.example/launch', type: 'smart', appContext }
    const others = ['https://self.example/launch', 'https://nobody.example/launch']
    const links = [
      smart,
      ...others.map(url => ({ ...smart, label: 'Other', url })),
      { ...smart, appContext: 7 },
    ]
    service.respond(() => ({ cards: [{ ...CARD, links }] }))
    const { body } = await show()
    assert.equal(body.match(/Other: the app is not registered here/g)?.length, 2)
    const [href = assert.fail()] = [...body.matchAll(/href="(\/portal\/cards\/launch\?link=[^"]+)"/g)].map(
      match => match[1],
    )
    assert.doesNotMatch(href, /plan|juniper/)
    const launched = await browser.get(href)
    assert.match(launched.headers.location ?? '', /^https:\/\/chart\.example\/launch\?iss=/)
    const launch = new URL(launched.headers.location ?? '').searchParams.get('launch') ?? ''
    const client = { client_id: 'chart', redirect_uri: 'https://chart.example/callback' }
    const { code = '' } = readRedirect(
      await auth.authorize(browser, { ...client, launch, scope: 'launch patient/Patient.rs' }),
    )
    const token = (await auth.exchange(code, client)).json()
    assert.deepEqual([token.appContext, token.patient, token.encounter], [appContext, 'juniper', 'enc-1'])
    const records = await findRecords(auth.store, { limit: 20, order: 'newest' })
    const record = records.find(({ kind }) => kind === 'launch')
    assert.equal(record?.reason, 'Launched by a card of the CDS service bp')
    assert.equal((await browser.get(href, { 'sec-fetch-site': 'cross-site' })).statusCode, 403)
    await auth.addUser('colleague')
    assert.equal((await (await auth.logIn('colleague')).get(href)).statusCode, 400)
    assert.equal((await browser.get(`${href}x`)).statusCode, 400)
    assert.equal((await browser.get('/portal/cards/launch')).statusCode, 400)
    auth.time.now += 300_001
    assert.equal((await browser.get(href)).statusCode, 400)
    await browser.post('/logout', {})
    await browser.get(href)
    assert.equal((await browser.login()).headers.location, '/portal?patient=juniper')
  })
})
