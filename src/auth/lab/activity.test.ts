import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { createAuditor } from '../../audit/index.ts'
import { readRedirect, TestAuthServer } from '../testing/test-auth-server.ts'
import type { TestBrowser } from '../testing/test-browser.ts'
import { openTestStore } from '../testing/test-store.ts'

describe('GET /activity with the lab', () => {
  const open = openTestStore()
  let auth: TestAuthServer
  let browser: TestBrowser
  before(async () => {
    const store = await open()
    auth = await TestAuthServer.open(store, { audit: createAuditor({ store }), settings: { lab: true } })
    browser = await auth.logIn()
  })

  const show = async (query = '') => (await browser.get(`/activity${query}`)).body

  it('names the command line as the origin of its tokens (ACTIVITY-1)', async () => {
    await createAuditor({ store: auth.store }).record({
      at: auth.time.now,
      server: 'auth',
      kind: 'token',
      allowed: true,
      status: 200,
      reason: 'Issued on the command line',
      launch: 'of-command',
    })
    assert.match(await show(), /data-key="of-command".*?<p class="run__facts">[^\n]*Command line</s)
  })

  it('links from an event to the page that changes its app (ACTIVITY-3)', async () => {
    await auth.addClient({ client_id: 'growth', name: 'Growth chart' })
    const refused = await auth
      .openBrowser()
      .get('/oauth2/authorize?client_id=growth&redirect_uri=https://x.example')
    const body = await show(`?reference=${refused.headers['x-request-id']}`)
    assert.match(
      body,
      /Growth chart <code>growth<\/code> <a href="\/apps\/edit\?client=growth">Change this app</,
    )
  })

  it('does not offer to change the app of the settings (ACTIVITY-3)', async () => {
    const refused = await auth
      .openBrowser()
      .get('/oauth2/authorize?client_id=sallyport-app&redirect_uri=https://x.example')
    const body = await show(`?reference=${refused.headers['x-request-id']}`)
    assert.match(body, /<dt>App<\/dt><dd>[^<]*<code>sallyport-app<\/code><\/dd>/)
  })

  it('links the error page of a lab launch to its event (ACTIVITY-5)', async () => {
    const refused = await browser.get('/lab/launch?client=sallyport-app&patient=nobody', {
      accept: 'text/html',
    })
    assert.match(refused.body, /href="\/activity\?reference=/)
    assert.match(refused.body, /aria-label="Main"|<nav/)
  })

  it('shows on the error page what was sent and what is registered, and what to change (LAB-10)', async () => {
    await auth.addClient({ client_id: 'charts', redirect_uris: '["http://localhost:3000/callback"]' })
    const ask = (parameters: Record<string, string>, from = auth.openBrowser()) =>
      auth.authorize(from, { client_id: 'charts', ...parameters })
    const { body, headers } = await ask({ redirect_uri: 'http://localhost:3001/callback' })
    assert.match(body, /<code>http:\/\/localhost<mark>:3001<\/mark>\/callback<\/code>/)
    assert.match(body, /Registered<\/span> <code>http:\/\/localhost<mark>:3000<\/mark>\/callback<\/code>/)
    assert.match(body, /What to change:<\/b> Register the URL that the app sends/)
    assert.match(body, /<a [^>]*href="\/apps\/edit\?client=charts"/)
    assert.match(body, new RegExp(`<a [^>]*href="/activity\\?reference=${headers['x-request-id']}"`))
    const refused = await ask({ client_id: 'chart' })
    const unknown = refused.body
    assert.match(unknown, /No app is registered with the client_id chart, .* Did you mean charts\?/)
    assert.match(unknown, /<a [^>]*href="\/apps"/)
    const token = await auth.exchange('x', { client_id: 'chart' })
    for (const { headers: found } of [refused, token])
      assert.match(
        await show(`?reference=${found['x-request-id']}`),
        /client_id chart, .* Did you mean charts\?/,
      )
  })

  it('links no page on the error page that its user cannot open (LAB-10)', async () => {
    await auth.addUser('mina', { fhir_user_id: 'Patient/juniper' })
    const { body } = await auth.authorize(await auth.logIn('mina'), { redirect_uri: 'https://x.example' })
    assert.match(body, /Registered<\/span>/)
    assert.doesNotMatch(body, /href="\/(apps|activity)/)
  })

  it('lists a refused link of the lab, but none that was only checked (LAB-1)', async () => {
    const open = async (query: string) => {
      const { headers } = await browser.get(`/lab/launch?client=sallyport-app${query}`)
      return show(`?reference=${headers['x-request-id']}`)
    }
    for (const wrong of ['&patient=nobody', '&nonsense=1']) {
      // First, because of two equal refusals only one is listed.
      assert.doesNotMatch(await open(`${wrong}&check=1`), /event__advice/, wrong)
      assert.match(await open(wrong), /event__advice/, wrong)
    }
  })

  it('names the scope that was probably meant by a misspelt one (ACTIVITY-3)', async () => {
    await auth.getCode(browser, {
      scope: 'launch patient/Patient.rs patient/Observaton.rs patient/Immunization.rs',
    })
    const body = await show('?kind=authorize')
    assert.match(body, /patient\/Observaton\.rs permits nothing\./)
    assert.match(body, /Write patient\/Observation\.rs instead of patient\/Observaton\.rs\./)
    assert.match(body, /Not granted, or only in part: patient\/Immunization\.rs\./)
    const refused = await auth.authorize(browser, { scope: 'patient/Observaton.rs' })
    assert.match(
      await show(`?reference=${refused.headers['x-request-id']}`),
      /What to do:<\/b> Write patient\/Observation\.rs instead of/,
    )
  })

  it('explains that a launch has no patient, because the launch parameter or launch/patient is missing (ACTIVITY-3)', async () => {
    for (const scope of ['patient/Patient.rs', 'launch patient/Patient.rs']) {
      const refused = await auth.authorize(browser, { scope, launch: undefined })
      assert.equal(
        readRedirect(refused).error_description,
        'There is no patient in this launch. Send the launch parameter that the app received, or request the scope launch/patient.',
      )
      const body = await show(`?reference=${refused.headers['x-request-id']}`)
      assert.match(body, /<p>There is no patient in this launch, so no patient\/ scope can be granted/, scope)
      assert.match(body, /What to do:<\/b> Send the value of “launch” that the app received/, scope)
      assert.doesNotMatch(body, /not registered|register the app/, scope)
    }
  })

  it('explains a link of the lab with an unknown simulated error (ACTIVITY-4)', async () => {
    for (const [simulate, meant] of [
      ['nonsense:1', /has an unknown parameter, or an unknown value of “simulate”\.<\/p>/],
      ['token:invalid_grand', /unknown value of “simulate”\. Did you mean token:invalid_grant\?<\/p>/],
    ] as const) {
      const refused = await browser.get(
        `/lab/launch?client=sallyport-app&patient=juniper&simulate=${simulate}`,
      )
      const body = await show(`?reference=${refused.headers['x-request-id']}`)
      assert.match(body, meant)
      assert.match(body, /Use one of the names that the reason lists/)
    }
  })

  it('says which app and launch a refused token claims to be from, and that nobody has verified it (ACTIVITY-4)', async () => {
    const fhir = { kind: 'fhir', server: 'fhir', allowed: false, status: 401, at: auth.time.now } as const
    const details = {
      claimed: { iss: 'http://localhost:9000', client_id: 'growth', jti: 'launch-of-growth.x', aud: 'x' },
    }
    const audit = createAuditor({ store: auth.store })
    await audit.record(
      { ...fhir, reason: 'The token is not accepted: the signature is wrong', details, requestId: 'c-1' },
      {
        ...fhir,
        reason: 'The token is not accepted: simulated by the lab: access-token:bad-signature',
        details,
        requestId: 'c-2',
      },
    )
    const claims =
      'The token claims to be from the app growth, of the launch launch-of-growth, issued by http://localhost:9000, for x; nobody has verified that.'
    for (const reference of ['c-1', 'c-2']) {
      const body = await show(`?reference=${reference}`)
      assert.ok(body.includes(claims))
      assert.match(
        body,
        /href="\/activity\?launch=launch-of-growth"><code>launch-of-growth<.* \(not verified\)/,
      )
      assert.match(body, /<h2>Without a launch</)
    }
    const { store } = auth
    const without = await TestAuthServer.open(store, { audit, settings: { lab: false } })
    const { body } = await (await without.logIn()).get('/activity?reference=c-1')
    assert.match(body, /the signature is wrong/)
    assert.doesNotMatch(body, /claims to be|of-growth/)
  })

  it('marks a simulated error, and explains that the lab simulated it (ACTIVITY-6)', async () => {
    const query = { client: 'sallyport-app', patient: 'juniper', redirect: '0', user: 'clinician' }
    const link = new URLSearchParams({ ...query, simulate: 'token:invalid_grant' })
    const { launch_url } = (await browser.get(`/lab/launch?${link}`)).json()
    const launch = new URL(launch_url).searchParams.get('launch') ?? ''
    const { code = '' } = readRedirect(await auth.authorize(browser, { launch }))
    const response = await auth.exchange(code)
    assert.match(
      await show(`?reference=${response.headers['x-request-id']}`),
      /The lab simulates this error \(token:invalid_grant\)/,
    )
    const body = await show()
    assert.match(body, /Simulated: token:invalid_grant.*Lab launch/s)
    const alone = { kind: 'fhir', server: 'fhir', allowed: false, status: 401, at: auth.time.now } as const
    await createAuditor({ store: auth.store }).record(
      { ...alone, reason: 'The token is not accepted: simulated by the lab: access-token:bad-signature' },
      { ...alone, reason: 'The token is not accepted: the signature is wrong' },
    )
    const [, mixed = ''] = (await show('?kind=fhir')).split('<h2>Without a launch</h2>')
    assert.match(mixed, /access-token:bad-signature/)
    assert.match(mixed, />Simulated</)
    assert.doesNotMatch(mixed, />Simulated: /)
  })
})
