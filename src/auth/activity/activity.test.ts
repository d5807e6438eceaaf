import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { type AuditRecord, createAuditor, type KeptRecord } from '../../audit/index.ts'
import { formatDate } from '../../web/index.ts'
import { mayViewActivity } from '../login/login.ts'
import { TestAuthServer } from '../testing/test-auth-server.ts'
import type { TestBrowser } from '../testing/test-browser.ts'
import { openTestStore } from '../testing/test-store.ts'
import { describeApp, describeDecision, type Names } from './describe.ts'

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
      record({ request: 'Patient/refused', allowed: false, status: 403, reason: '<script>No</script>' }),
      record({ kind: 'api', request: 'api/summary' }),
      record({ allowed: false, status: 401, reason: 'Missing token', repeats: 57 }),
      record({ at: auth.time.now - 7_200_000, request: 'Patient/two-hours-ago' }),
    )
  })

  it('redirects to the login page without a login', async () => {
    const response = await auth.openBrowser().get('/activity')
    assert.equal(response.statusCode, 302)
    assert.equal(response.headers.location, '/login')
  })

  it('shows the newest requests and counts those of the last hour', async () => {
    const { body, statusCode } = await browser.get('/activity')
    assert.equal(statusCode, 200)
    assert.equal(body.match(/<tr role="row" data-record/g)?.length, 100)
    assert.match(body, /57 more like it, within a minute.*Missing token/s)
    assert.match(body, /All <span class="count">209</)
    assert.match(body, /Refused <span class="count">58</)
    assert.doesNotMatch(body, />api\/|<script>No/)
    assert.match(body, /&lt;script&gt;No/)
  })

  it("shows the date of every request, even of today's", async () => {
    const { body } = await browser.get('/activity')
    const times = [...body.matchAll(/<time datetime="([^"T]*)T([^"]*)Z">\2 <span class="sub">([^<]*)</g)]
    assert.equal(times.length, 100)
    for (const [, day = '', , shown] of times) assert.equal(shown, formatDate(day))
    assert.match(body, /<details class="more narrow"><summary>Filter by app, patient or launch</)
  })

  it('links to older requests until the first one', async () => {
    let address = '/activity'
    let body = ''
    for (let pages = 0; pages < 3 && address !== ''; pages++) {
      body = (await browser.get(address)).body
      address = /href="(\/activity\?before=[^"]+)"/.exec(body)?.[1] ?? ''
    }
    assert.match(body, /two-hours-ago/)
    assert.match(body, /data-live="off"/)
  })

  it('filters by app, patient, launch or result', async () => {
    for (const query of [
      'app=sallyport-app',
      'patient=juniper',
      'launch=launch-1',
      'app=sallyport-app&result=allowed',
    ]) {
      const { body } = await browser.get(`/activity?${query}`)
      assert.equal(body.match(/data-record/g)?.length, 1, query)
      assert.match(body, /of-app/)
    }
    const { body } = await browser.get('/activity?result=refused')
    assert.equal(body.match(/data-record/g)?.length, 2)
    assert.match((await browser.get('/activity?app=nobody')).body, /No matching requests/)
    assert.equal((await browser.get('/activity?before=x&result=y')).statusCode, 200)
  })

  it('is linked in the top bar of the portal', async () => {
    assert.match((await browser.get('/portal')).body, /href="\/activity"/)
  })
})

describe('GET /activity off loopback', () => {
  const open = openTestStore()

  it('allows only the clinicians that the setting names', async () => {
    const audit = { kept: true, failure: 'refuse', days: 365, activityClinicians: ['someone'] } as const
    const auth = await TestAuthServer.open(await open(), { settings: { onLoopback: false, audit } })
    const browser = auth.openBrowser()
    await browser.login()
    const { statusCode, body } = await browser.get('/activity')
    assert.equal(statusCode, 403)
    assert.match(body, /You do not have access to the activity/)
    assert.doesNotMatch((await browser.get('/portal')).body, /href="\/activity"/)
  })
})

describe('mayViewActivity', () => {
  const settings = (onLoopback: boolean, activityClinicians?: readonly string[]) =>
    ({ onLoopback, audit: { activityClinicians } }) as unknown as Parameters<typeof mayViewActivity>[0]
  it('allows every clinician on loopback by default', () => {
    assert.equal(mayViewActivity(settings(true), { username: 'ada', fhirUserId: 'p' }), true)
    assert.equal(mayViewActivity(settings(true, ['bea']), { username: 'ada', fhirUserId: 'p' }), false)
  })
  it('allows only the named clinicians off loopback', () => {
    assert.equal(mayViewActivity(settings(false), { username: 'ada', fhirUserId: 'p' }), false)
    assert.equal(mayViewActivity(settings(false, ['ada']), { username: 'ada', fhirUserId: 'p' }), true)
  })
})

describe('describeDecision', () => {
  const names: Names = {
    clinician: () => 'Dr. Robin Ahmadi',
    app: id => (id === 'x' ? 'Helio Trends' : undefined),
  }
  const words = (more: Partial<KeptRecord>) =>
    describeDecision(
      { allowed: true, status: 200, decided_by: null, reason: null, ...more } as KeptRecord,
      names,
    )

  const cases: readonly (readonly [more: Partial<KeptRecord>, words: object])[] = [
    [
      { decided_by: 'patient/Condition.rs', interaction: 'search-type', resource_type: 'Condition' },
      { scope: 'patient/Condition.rs', why: 'Search inside this patient’s record' },
    ],
    [
      {
        ...{ decided_by: 'patient/Patient.rs', interaction: 'read', resource_type: 'Patient' },
        ...{ resource_id: 'juniper', patient_id: 'juniper' },
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
      { allowed: false, status: 403, reason: 'Why' },
      { title: 'No granted scope', why: 'Why' },
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

  it('shows the app, the portal, or no app', () => {
    const app = (client_id: string | null) => describeApp({ client_id } as KeptRecord, names)
    assert.deepEqual(
      [app('x'), app('y'), app('sallyport-portal'), app(null)],
      ['Helio Trends', 'y', 'Patient list', 'No app'],
    )
  })
})
