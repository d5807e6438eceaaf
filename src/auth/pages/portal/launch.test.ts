import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { before, describe, it } from 'node:test'
import { buildLaunchUrl } from '../../oauth/launch/prepare.ts'
import { getStyle } from '../../oauth/style.ts'
import { testSettings } from '../../testing/settings.ts'
import { readRedirect, TestAuthServer } from '../../testing/test-auth-server.ts'
import type { TestBrowser } from '../../testing/test-browser.ts'
import { patient } from '../../testing/test-fhir-server.ts'
import { openTestStore } from '../../testing/test-store.ts'

describe('POST /portal/launch', () => {
  const open = openTestStore()
  let auth: TestAuthServer
  let browser: TestBrowser
  before(async () => {
    auth = await TestAuthServer.open(await open())
    browser = await auth.logIn()
    await auth.addClient({ client_id: 'helio', launch_url: 'https://helio.example/launch?tenant=a%20b' })
    await auth.addClient({ client_id: 'backend', launch_url: null })
  })

  const tokens = async () =>
    (await auth.store.db.selectFrom('launch_token').select('token_hash').execute()).length

  it('redirects to the launch URL with iss and launch, in that order (LAUNCH-1)', async () => {
    const response = await browser.post('/portal/launch', { patientId: 'juniper', encounterId: 'enc-1' })
    assert.equal(response.statusCode, 302)
    assert.match(
      response.headers.location ?? '',
      /^http:\/\/localhost:8081\/launch\?iss=http%3A%2F%2Flocalhost%3A8080%2Ffhir&launch=[\w-]{43}$/,
    )
  })

  it('launches without an encounter (LAUNCH-1)', async () => {
    for (const form of [{ patientId: 'juniper' }, { patientId: 'juniper', encounterId: '' }])
      assert.equal((await browser.post('/portal/launch', form)).statusCode, 302)
  })

  it('launches another app and keeps the query of its launch URL (LAUNCH-3)', async () => {
    const response = await browser.post('/portal/launch', { patientId: 'juniper', clientId: 'helio' })
    assert.ok(response.headers.location?.startsWith('https://helio.example/launch?tenant=a%20b&iss='))
    const row = await auth.store.db
      .selectFrom('launch_token')
      .select('client_id')
      .where('client_id', '=', 'helio')
      .executeTakeFirst()
    assert.ok(row)
  })

  it('tells a first-party app, and no other, that another patient has a similar name (DEMO-5)', async () => {
    const names = [
      ['juniper', 'Juniper', 'Alba'],
      ['alban', 'Juniper', 'Alban'],
      ['ashlar', 'Ashlar', 'Tobias'],
    ] as const
    const resources = names.map(([id, family, given]) => patient(id, family, given))
    const other = await TestAuthServer.open(await open(), { resources })
    const clinician = await other.logIn()
    const helio = { client_id: 'helio', launch_url: 'https://helio.example/launch', first_party: false }
    await other.addClient(helio)
    for (const form of [
      { patientId: 'juniper' },
      { patientId: 'juniper', clientId: 'helio' },
      { patientId: 'ashlar' },
    ])
      assert.equal((await clinician.post('/portal/launch', form)).statusCode, 302)
    const launches = await other.store.db.selectFrom('launch_token').selectAll().execute()
    const warned = launches.filter(({ context }) => context?.includes('"similar_name":true'))
    assert.deepEqual(
      warned.map(({ client_id, patient_id }) => [client_id, patient_id]),
      [['sallyport-app', 'juniper']],
    )
  })

  const refused: readonly (readonly [string, Record<string, string> | string, number])[] = [
    ['no patientId', {}, 400],
    ['an empty patientId', { patientId: '' }, 400],
    ['two patientIds', 'patientId=juniper&patientId=ashlar', 400],
    ['an unknown patient', { patientId: 'nobody' }, 404],
    ['a patientId that is a path', { patientId: '../Patient/juniper' }, 404],
    ['a patientId with a query', { patientId: 'juniper?_elements=id' }, 404],
    ['an unknown encounter', { patientId: 'juniper', encounterId: 'nothing' }, 404],
    ['an encounter of someone else', { patientId: 'juniper', encounterId: 'enc-9' }, 404],
    ['an encounterId that is a path', { patientId: 'juniper', encounterId: 'enc-1/_history/1' }, 404],
    ['a patient as encounter', { patientId: 'juniper', encounterId: 'juniper' }, 404],
    ['an unknown app', { patientId: 'juniper', clientId: 'nobody' }, 400],
    ['an app without a launch address', { patientId: 'juniper', clientId: 'backend' }, 400],
  ]
  for (const [name, form, status] of refused) {
    it(`responds with ${status} to ${name}, and creates no launch token (LAUNCH-4)`, async () => {
      const before = await tokens()
      const response = await browser.post('/portal/launch', form)
      assert.equal(response.statusCode, status)
      assert.match(response.body, /No record was opened/)
      assert.equal(await tokens(), before)
    })
  }

  it('redirects to /login without a login (LAUNCH-4)', async () => {
    const response = await auth.openBrowser().post('/portal/launch', { patientId: 'juniper' })
    assert.equal(response.statusCode, 302)
    assert.equal(response.headers.location, '/login')
  })

  it('refuses a form of another site (LAUNCH-4)', async () => {
    const before = await tokens()
    for (const headers of [
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { origin: 'http://localhost:8081' },
      { origin: 'null' },
    ])
      assert.equal((await browser.post('/portal/launch', { patientId: 'juniper' }, headers)).statusCode, 403)
    assert.equal(await tokens(), before)
  })

  it('responds with 502 while the FHIR server is unreachable', async () => {
    auth.fhir.fail('no-response')
    const response = await browser.post('/portal/launch', { patientId: 'juniper' })
    auth.fhir.fail(undefined)
    assert.equal(response.statusCode, 502)
    assert.match(response.body, /Patient records cannot be reached/)
  })

  it('reads launch URL and banner from the settings (LAUNCH-3, LAUNCH-6)', async () => {
    const settings = { smartClientLaunchUrl: 'https://ehr.example/app', defaultNeedPatientBanner: false }
    const other = await TestAuthServer.open(await open(), { settings })
    const response = await (await other.logIn()).post('/portal/launch', { patientId: 'juniper' })
    assert.ok(response.headers.location?.startsWith('https://ehr.example/app?iss='))
    const row = await other.store.db
      .selectFrom('launch_token')
      .select('need_patient_banner')
      .executeTakeFirst()
    assert.equal(row?.need_patient_banner, false)
  })

  it('launches the default client of the setting, at its own launch URL or the configured one (LAUNCH-3)', async () => {
    const settings = { defaultClientId: 'mine' }
    const other = await TestAuthServer.open(await open(), { settings })
    await other.addClient({ client_id: 'mine', launch_url: null })
    const browser = await other.logIn()
    const launch = () => browser.post('/portal/launch', { patientId: 'juniper' })
    assert.ok((await launch()).headers.location?.startsWith('http://localhost:8081/launch?'))
    await other.store.db
      .updateTable('client')
      .set({ launch_url: 'https://mine.example/go' })
      .where('client_id', '=', 'mine')
      .execute()
    assert.ok((await launch()).headers.location?.startsWith('https://mine.example/go?'))
  })
})

describe('buildLaunchUrl', () => {
  const rows: readonly (readonly [string, string])[] = [
    ['https://a.example/l', 'https://a.example/l?iss=I&launch=T'],
    ['https://a.example/l?x=1&y=%20', 'https://a.example/l?x=1&y=%20&iss=I&launch=T'],
    ['https://a.example/#/l', 'https://a.example/?iss=I&launch=T#/l'],
  ]
  for (const [launchUrl, address] of rows)
    it(`builds ${address} from ${launchUrl} (LAUNCH-2)`, () =>
      assert.equal(buildLaunchUrl(launchUrl, 'I', 'T'), address))
})

describe('further options of POST /portal/launch', () => {
  const open = openTestStore()
  let auth: TestAuthServer
  let browser: TestBrowser
  before(async () => {
    auth = await TestAuthServer.open(await open())
    browser = await auth.logIn()
  })

  async function contextOf(form: Readonly<Record<string, string>>) {
    const launch = await auth.launch(browser, form)
    const { code = '' } = readRedirect(await auth.authorize(browser, { launch }))
    const { need_patient_banner, intent, tenant, fhirContext } = (await auth.exchange(code)).json()
    return { need_patient_banner, intent, tenant, fhirContext }
  }

  it('are returned to the app with its tokens (LAUNCH-6, TOKEN-2)', async () => {
    const form = {
      needPatientBanner: 'false',
      intent: ' review-labs ',
      tenant: 'north',
      fhirContext: 'ImagingStudy/1\r\n\r\nDiagnosticReport/2',
    }
    assert.deepEqual(await contextOf(form), {
      need_patient_banner: false,
      intent: 'review-labs',
      tenant: 'north',
      fhirContext: [{ reference: 'ImagingStudy/1' }, { reference: 'DiagnosticReport/2' }],
    })
  })

  it('accept the JSON of fhirContext', async () => {
    const fhirContext = [{ reference: 'List/1', role: 'https://x.example/role' }]
    assert.deepEqual((await contextOf({ fhirContext: JSON.stringify(fhirContext) })).fhirContext, fhirContext)
  })

  it('are omitted if they are empty', async () => {
    const empty = { needPatientBanner: '', intent: '', tenant: ' ', fhirContext: '' }
    const defaults = {
      need_patient_banner: true,
      intent: undefined,
      tenant: undefined,
      fhirContext: undefined,
    }
    assert.deepEqual(await contextOf(empty), defaults)
  })

  for (const [what, form, fault] of [
    ['a banner that is neither', { needPatientBanner: 'maybe' }, 'needPatientBanner must be true or false.'],
    [
      'a reference that is none',
      { fhirContext: 'ImagingStudy' },
      'A reference of fhirContext must be relative',
    ],
    ['JSON that is broken', { fhirContext: '[{' }, 'fhirContext must be an array'],
    ['an intent without end', { intent: 'x'.repeat(201) }, 'The intent is longer than 200 characters.'],
  ] as const) {
    it(`mark the field and lose nothing with ${what}`, async () => {
      const entered = { tenant: 'north', encounterId: 'enc-2', search: 'Juniper', ...form }
      const { statusCode, body } = await browser.post('/portal/launch', { patientId: 'juniper', ...entered })
      assert.equal(statusCode, 400)
      assert.match(body, /<details class="more" open><summary>More options/)
      assert.ok(body.includes(`class="field__error" id="${Object.keys(form)[0]}-error">${fault}`))
      assert.match(body, /name="tenant"[^>]* value="north"/)
      assert.match(body, /name="encounterId" value="enc-2" checked/)
      assert.match(body, /name="search" type="search"[^>]* value="Juniper"/)
      for (const value of Object.values(form)) assert.ok(value === 'maybe' || body.includes(value))
    })
  }

  it('are offered to developers only', async t => {
    const offers = async (page: string) => /More options/.test(page)
    const form = async (browser: TestBrowser) => (await browser.get('/portal?patient=juniper')).body
    assert.equal(await offers(await form(browser)), false)
    const lab = await TestAuthServer.open(await open(), { settings: { lab: true } })
    t.after(() => lab.app.close())
    assert.equal(await offers(await form(await lab.logIn())), true)
  })

  it('need a choice of the encounter where the form asks for one (PORTAL-9)', async () => {
    const form = { patientId: 'juniper', step: 'encounter' }
    const { statusCode, body } = await browser.post('/portal/launch', form)
    assert.equal(statusCode, 400)
    assert.match(body, /No encounter chosen\.<\/b> Choose an encounter, or “No encounter”\./)
    assert.doesNotMatch(body, /name="encounterId"[^>]* checked/)
    assert.equal((await browser.post('/portal/launch', { ...form, encounterId: '' })).statusCode, 302)
  })
})

describe('smart_style_url', () => {
  const open = openTestStore()
  let auth: TestAuthServer
  before(async () => {
    auth = await TestAuthServer.open(await open())
  })

  it('is part of every EHR launch, at a URL that changes with its content', async () => {
    const browser = await auth.logIn()
    const { smart_style_url } = (await auth.exchange(await auth.getCode(browser))).json()
    const { origin, pathname } = new URL(smart_style_url)
    assert.equal(origin, 'http://localhost:9000')
    const response = await auth.app.inject({ url: pathname, headers: { origin: 'https://any.example' } })
    assert.equal(response.statusCode, 200)
    assert.match(String(response.headers['content-type']), /^application\/json/)
    assert.match(String(response.headers['cache-control']), /immutable/)
    assert.equal(response.headers['access-control-allow-origin'], '*')
    const hash = createHash('sha256').update(response.body).digest('hex')
    assert.ok(pathname.includes(hash.slice(0, 16)))
    assert.equal((await auth.app.inject({ url: '/smart-style/0000000000000000.json' })).statusCode, 404)
  })

  it('has every member of SMART, with the colours of our own pages', async () => {
    const style = JSON.parse(getStyle(testSettings).json)
    assert.deepEqual(Object.keys(style).sort(), [
      'color_background',
      'color_error',
      'color_highlight',
      'color_modal_backdrop',
      'color_success',
      'color_text',
      'dim_border_radius',
      'dim_font_size',
      'dim_spacing_size',
      'font_family_body',
      'font_family_heading',
    ])
    const css = readFileSync(new URL('../../../web/ui/assets/sallyport.css', import.meta.url), 'utf8')
    for (const [member, token] of [
      ['color_background', 'bg'],
      ['color_error', 'bad'],
      ['color_highlight', 'accent'],
      ['color_success', 'ok'],
      ['color_text', 'ink'],
    ] as const)
      assert.ok(css.includes(`--${token}: ${style[member]};`), member)
  })
})
