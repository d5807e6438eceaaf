import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import { AppBrowser } from '../../../test/support/app-browser.ts'
import { startScriptedEhr } from '../../../test/support/scripted-ehr.ts'
import { APP_SCOPE, launchBrowser, sessionApp, useSessionApp } from '../../../test/support/session-app.ts'

describe('GET /launch', () => {
  const setup = useSessionApp()

  it('sends PKCE, state, nonce, aud and launch to the auth server (APP-1)', async () => {
    const response = await new AppBrowser(setup.app).begin(setup.ehr.fhirBaseUrl, 'xyz')
    assert.equal(response.statusCode, 302)
    const url = new URL(String(response.headers.location))
    assert.equal(`${url.origin}${url.pathname}`, `${setup.ehr.issuer}/authorize`)
    const { state, nonce, code_challenge, ...rest } = Object.fromEntries(url.searchParams)
    assert.deepEqual(rest, {
      response_type: 'code',
      client_id: 'sallyport-app',
      redirect_uri: 'http://localhost:8081/callback',
      scope: APP_SCOPE,
      aud: setup.ehr.fhirBaseUrl,
      launch: 'xyz',
      code_challenge_method: 'S256',
    })
    for (const random of [state, nonce, code_challenge]) assert.match(random ?? '', /^[\w-]{43}$/)
  })

  it('stores neither state nor code verifier in plain text', async () => {
    const response = await new AppBrowser(setup.app).begin(setup.ehr.fhirBaseUrl)
    const state = new URL(String(response.headers.location)).searchParams.get('state') ?? ''
    const rows = JSON.stringify(await setup.store.db.selectFrom('app_launch').selectAll().execute())
    const [cookie] = response.cookies
    assert.ok(!rows.includes(state))
    assert.ok(cookie && !rows.includes(cookie.value))
    assert.match(rows, /"code_verifier_sealed":"v1\./)
  })

  it('accepts the iss with a trailing slash and sends it back unchanged', async () => {
    const response = await new AppBrowser(setup.app).begin(`${setup.ehr.fhirBaseUrl}/`)
    const url = new URL(String(response.headers.location))
    assert.equal(url.searchParams.get('aud'), `${setup.ehr.fhirBaseUrl}/`)
  })

  it('refuses an iss that is not configured and sends no request to it (APP-2)', async () => {
    const other = await startScriptedEhr()
    try {
      for (const iss of [
        other.fhirBaseUrl,
        `${setup.ehr.fhirBaseUrl}/../fhir`,
        `${setup.ehr.fhirBaseUrl}//`,
        `${setup.ehr.fhirBaseUrl}?x`,
        `${setup.ehr.fhirBaseUrl}#x`,
        setup.ehr.fhirBaseUrl.toUpperCase(),
        'javascript:alert(1)',
        'x',
      ]) {
        const response = await new AppBrowser(setup.app).begin(iss)
        assert.equal(response.statusCode, 403, iss)
        assert.match(response.body, /This app is not set up for that FHIR server/)
      }
      const [first] = setup.log()
      const expected = `iss ${other.fhirBaseUrl}, expected one of ${setup.ehr.fhirBaseUrl}`
      assert.equal(first?.check, expected)
      assert.deepEqual(other.seen, [])
      assert.deepEqual(setup.ehr.seen, [])
    } finally {
      await other.close()
    }
  })

  it('shows a foreign iss only as text', async () => {
    const response = await new AppBrowser(setup.app).begin(
      'https://evil.example/<script>alert(1)</script>?token=abc',
    )
    assert.ok(!response.body.includes('<script>alert'))
    assert.ok(!response.body.includes('token=abc'))
  })

  it('refuses parameters that are too long and names the limit', async () => {
    const get = (url: string) => setup.app.inject({ method: 'GET', url })
    const iss = encodeURIComponent(setup.ehr.fhirBaseUrl)
    assert.equal((await get(`/launch?iss=${iss}&launch=${'x'.repeat(4096)}`)).statusCode, 302)
    const weird = await get(`/launch?iss=${iss}&launch=${'%25'.repeat(4096)}`)
    assert.ok(String(weird.headers.location).length < 14_000)
    for (const [url, text] of [
      [`/launch?iss=${iss}&launch=${'x'.repeat(4097)}`, /launch, has more than 4096 characters/],
      [`/launch?iss=https://${'x'.repeat(2000)}&launch=x`, /iss, has more than 2000 characters/],
      [`/callback?state=x&code=${'x'.repeat(4097)}`, /code, has more than 4096 characters/],
      [`/callback?code=x&state=${'x'.repeat(201)}`, /state, has more than 200 characters/],
    ] as const) {
      const refused = await get(url)
      assert.equal(refused.statusCode, 400, url.slice(0, 40))
      assert.match(refused.body, text)
    }
  })

  it('names the missing part of a link', async () => {
    const browser = new AppBrowser(setup.app)
    const iss = encodeURIComponent(setup.ehr.fhirBaseUrl)
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
    assert.deepEqual(setup.ehr.seen, [])
  })

  it('without iss and launch starts a standalone launch against the configured issuer (APP-1)', async () => {
    const browser = new AppBrowser(setup.app)
    const response = await browser.get('/launch')
    assert.equal(response.statusCode, 302)
    const { origin, pathname, searchParams } = new URL(String(response.headers.location))
    assert.equal(`${origin}${pathname}`, `${setup.ehr.issuer}/authorize`)
    assert.equal(searchParams.get('aud'), setup.ehr.fhirBaseUrl)
    assert.equal(searchParams.get('launch'), null)
    assert.equal(searchParams.get('scope'), APP_SCOPE.replace(/^launch /, 'launch/patient '))
    assert.match(
      String((await browser.get(await browser.visitAuthServer(response))).headers.location),
      /^\/s\/[\w-]{36}$/,
    )
    assert.equal((await browser.get('/api/session')).statusCode, 200)
  })

  it('with only one of the two is refused', async () => {
    for (const query of [`iss=${encodeURIComponent(setup.ehr.fhirBaseUrl)}`, 'launch=x', 'iss=&launch='])
      assert.equal((await new AppBrowser(setup.app).get(`/launch?${query}`)).statusCode, 400)
  })

  it('refuses HEAD, which would start a launch', async () => {
    const response = await setup.app.inject({
      method: 'HEAD',
      url: `/launch?iss=${setup.ehr.fhirBaseUrl}&launch=a`,
    })
    assert.ok(response.statusCode >= 400)
    assert.deepEqual(setup.ehr.seen, [])
  })

  it('reads the configuration once for launches within 5 minutes', async () => {
    const reads = () => setup.ehr.seen.filter(({ path }) => path.endsWith('smart-configuration')).length
    const browser = new AppBrowser(setup.app)
    await Promise.all([1, 2, 3].map(() => browser.begin(setup.ehr.fhirBaseUrl)))
    await browser.begin(setup.ehr.fhirBaseUrl)
    assert.equal(reads(), 1)
    setup.clock.advance(301)
    await browser.begin(setup.ehr.fhirBaseUrl)
    assert.equal(reads(), 2)
  })

  it('resolves relative endpoints against the FHIR base', async () => {
    setup.ehr.script.configuration = { authorization_endpoint: '../authorize', token_endpoint: '../token' }
    const browser = await launchBrowser(setup.app, setup.ehr.fhirBaseUrl)
    assert.equal((await browser.get('/api/session')).statusCode, 200)
  })

  it('shows an error page if the FHIR server is unreachable', async () => {
    const stopped = await startScriptedEhr()
    await stopped.close()
    const separateApp = await sessionApp(setup.store, [stopped.fhirBaseUrl])
    const response = await new AppBrowser(separateApp).begin(stopped.fhirBaseUrl)
    assert.equal(response.statusCode, 502)
    assert.match(response.body, /Patient records cannot be reached/)
  })

  it('shows an error page if the FHIR server does not respond in time', async () => {
    const fetch: typeof globalThis.fetch = async () => {
      throw new DOMException('The operation was aborted due to timeout', 'TimeoutError')
    }
    const waiting = await sessionApp(setup.store, [setup.ehr.fhirBaseUrl], { fetch })
    const response = await new AppBrowser(waiting).begin(setup.ehr.fhirBaseUrl)
    assert.equal(response.statusCode, 504)
  })
})

describe('GET /launch in a frame', () => {
  const setup = useSessionApp()
  const IN_FRAME = { 'sec-fetch-dest': 'iframe' }
  let browser: AppBrowser
  const launchUrl = () =>
    `/launch?${new URLSearchParams({ iss: setup.ehr.fhirBaseUrl, launch: 'launch-token' })}`

  beforeEach(async () => {
    const framed = await sessionApp(setup.store, [setup.ehr.fhirBaseUrl], {
      appUrl: 'https://app.example',
      app: { frameOrigins: ['https://ehr.example'] },
    })
    browser = new AppBrowser(framed)
  })

  async function beginInFrame(): Promise<URL> {
    const tested = await browser.get(launchUrl(), IN_FRAME)
    assert.equal(tested.headers.location, `${launchUrl()}&frame=1`)
    const begun = await browser.get(String(tested.headers.location), IN_FRAME)
    return new URL(String(begun.headers.location))
  }

  function callbackOf(url: URL, result: Readonly<Record<string, string>>): string {
    const state = url.searchParams.get('state') ?? ''
    return `/callback?${new URLSearchParams({ ...result, state, iss: setup.ehr.issuer })}`
  }

  it('asks the auth server to show no page (FRAME-2)', async () => {
    assert.equal((await beginInFrame()).searchParams.get('prompt'), 'none')
    const outside = await browser.get(launchUrl())
    assert.equal(new URL(String(outside.headers.location)).searchParams.get('prompt'), null)
  })

  it('offers a window for the sign-in, whose callback only the frame can complete (FRAME-2)', async () => {
    const silent = await beginInFrame()
    const page = await browser.get(callbackOf(silent, { error: 'login_required' }), IN_FRAME)
    assert.equal(page.statusCode, 200)
    const [, escaped = ''] = /data-authorization-url="([^"]+)"/.exec(page.body) ?? []
    const url = new URL(escaped.replaceAll('&amp;', '&'))
    assert.equal(url.searchParams.get('prompt'), null)
    assert.equal(url.searchParams.get('launch'), 'launch-token')
    const back = new URL((await fetch(url, { redirect: 'manual' })).headers.get('location') ?? '')
    const callback = `${back.pathname}${back.search}`
    const inWindow = await setup.app.inject({ method: 'GET', url: callback })
    assert.equal(inWindow.statusCode, 200)
    assert.match(inWindow.body, /Continue in the other window/)
    assert.equal(inWindow.headers['set-cookie'], undefined)
    assert.equal(setup.ehr.tokenForms.length, 0)
    assert.match(String((await browser.get(callback, IN_FRAME)).headers.location), /^\/s\//)
  })

  it('offers a new tab if the browser keeps no cookies (FRAME-3)', async () => {
    const page = await browser.get(`${launchUrl()}&frame=1`, IN_FRAME)
    assert.match(page.body, /Open the record in a new tab/)
    assert.ok(page.body.includes(`href="${launchUrl().replaceAll('&', '&amp;')}" target="_blank"`))
  })

  it('sets cookies that a browser sends in that frame, and pages that it shows there (FRAME-1)', async () => {
    const opened = await browser.launch(setup.ehr.fhirBaseUrl)
    for (const cookie of [opened.headers['set-cookie']].flat())
      for (const part of [/^__Host-/, /; Secure/, /; SameSite=None/, /; Partitioned/])
        assert.match(String(cookie), part)
    const page = await browser.get(browser.page)
    assert.match(String(page.headers['content-security-policy']), /^frame-ancestors https:\/\/ehr\.example;/)
    assert.equal(page.headers['x-frame-options'], undefined)
    assert.match((await browser.get('/nowhere')).headers['content-security-policy'] as string, /ehr\.example/)
  })

  it('is an ordinary launch if the site allows no frames (FRAME-1)', async () => {
    const plain = new AppBrowser(setup.app)
    const begun = await plain.get(launchUrl(), IN_FRAME)
    assert.equal(new URL(String(begun.headers.location)).searchParams.get('prompt'), null)
    const page = await plain.get('/')
    assert.match(String(page.headers['content-security-policy']), /^frame-ancestors 'none'/)
    assert.equal(page.headers['x-frame-options'], 'DENY')
  })
})
