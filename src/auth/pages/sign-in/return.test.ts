import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { createSealer } from '../../../store/index.ts'
import { TestAuthServer } from '../../testing/test-auth-server.ts'
import type { TestBrowser } from '../../testing/test-browser.ts'
import { patient } from '../../testing/test-fhir-server.ts'
import { openTestStore } from '../../testing/test-store.ts'

const SIGNED_OUT = /You were signed out\.<\/b> Sign in to continue to the page you wanted\./
const CLICK = { 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'navigate' }

/** The cookie that the server itself would set. */
function sealReturn(path: string): string {
  return createSealer('test secret').seal(JSON.stringify({ path }), 'return after a sign-in')
}

describe('a page that is opened without a login', () => {
  const open = openTestStore()
  let auth: TestAuthServer
  before(async () => {
    auth = await TestAuthServer.open(await open(), {
      resources: [patient('juniper', 'Juniper', 'Alba')],
      settings: { lab: true },
    })
    await auth.addUser('alba', { fhir_user_id: 'Patient/juniper' })
  })

  /** Opens a page, or sends a form, in a tab that was left open when the user signed out in another one. */
  async function clickInStaleTab(username: string, click: (browser: TestBrowser) => Promise<unknown>) {
    const browser = await auth.logIn(username)
    await browser.post('/logout', {})
    await click(browser)
    const { body } = await browser.get('/login', CLICK)
    return { body, location: (await browser.login(username)).headers.location }
  }

  it('is shown after the sign-in, which says why it is asked for (LOGIN-13)', async () => {
    for (const [username, path] of [
      ['alba', '/home'],
      ['alba', '/manage'],
      ['alba', '/account/access-log?kind=opened'],
      ['alba', '/account/sign-ins'],
      ['clinician', '/activity?outcome=refused'],
      ['clinician', '/apps/new'],
    ] as const) {
      const { body, location } = await clickInStaleTab(username, browser => browser.get(path, CLICK))
      assert.match(body, SIGNED_OUT)
      assert.equal(location, path)
    }
  })

  it('is the page of the form that was sent, and that of a download (LOGIN-13)', async () => {
    for (const [path, page] of [
      ['/manage/remove?client=tracker', '/manage/remove?client=tracker'],
      ['/account/password', '/account/password'],
      ['/account/factors/recovery-codes', '/account/factors'],
      ['/admin/apps/x/edit', '/admin/apps/x/edit'],
      ['/admin/providers/x/test', '/admin/providers'],
    ] as const) {
      const { location } = await clickInStaleTab('alba', browser => browser.post(path, {}, CLICK))
      assert.equal(location, page)
    }
    for (const [path, page] of [
      ['/account/access-log.csv?kind=opened', '/account/access-log?kind=opened'],
      ['/admin/audit/export.ndjson', '/admin/audit'],
    ] as const) {
      const { location } = await clickInStaleTab('alba', browser => browser.get(path, CLICK))
      assert.equal(location, page)
    }
  })

  const CHOSEN = '/portal?search=juniper&patient=juniper&client=chart'
  const FORM = {
    patientId: 'juniper',
    clientId: 'chart',
    encounterId: 'enc-9',
    step: 'encounter',
    search: 'juniper',
    encounters: 'all',
    intent: 'reconcile',
  }
  const FORM_PAGE =
    '/portal?search=juniper&patient=juniper&client=chart&encounters=all&step=encounter&encounterId=enc-9&intent=reconcile'

  it('has all that the same clinician chose and typed (LOGIN-13)', async () => {
    for (const [click, page] of [
      [(browser: TestBrowser) => browser.get(CHOSEN, CLICK), CHOSEN],
      [(browser: TestBrowser) => browser.post('/portal/launch', FORM, CLICK), FORM_PAGE],
      [
        (browser: TestBrowser) => browser.post('/portal/launch', { patientId: 'juniper' }, CLICK),
        '/portal?patient=juniper',
      ],
      [(browser: TestBrowser) => browser.get('/portal/cards/launch?link=x', CLICK), '/portal'],
    ] as const) {
      const { body, location } = await clickInStaleTab('clinician', click)
      assert.match(body, SIGNED_OUT)
      assert.equal(location, page)
    }
  })

  it('is the same after the sign-in has ended by itself (LOGIN-13)', async () => {
    const browser = await auth.logIn('clinician')
    auth.time.now += 9 * 3600 * 1000
    await browser.post('/portal/launch', FORM, CLICK)
    assert.match(
      (await browser.get('/login', CLICK)).body,
      /Your sign-in has ended\.<\/b> Sign in again to continue where you were\./,
    )
    assert.equal((await browser.login('clinician', 'wrong')).statusCode, 401)
    assert.equal((await browser.login('clinician')).headers.location, FORM_PAGE)
    assert.equal((await browser.login('clinician')).headers.location, '/portal')
  })

  it('shows another user nothing of it, nor somebody whose predecessor is unknown (LOGIN-13)', async () => {
    await auth.addUser('colleague')
    for (const [path, expected] of [
      [CHOSEN, '/portal'],
      ['/portal/cards?patient=juniper', '/portal'],
      ['/account/access-log?kind=opened', '/account/access-log'],
    ] as const) {
      const browser = await auth.logIn('clinician')
      await browser.post('/logout', {})
      await browser.get(path, CLICK)
      for (const cookie of browser.cookies.values())
        assert.doesNotMatch(decodeURIComponent(cookie), /juniper/)
      assert.doesNotMatch((await browser.get('/login', CLICK)).body, /juniper/)
      assert.equal((await browser.login('colleague')).headers.location, expected)
      assert.equal((await browser.login('clinician')).headers.location, '/portal')
    }
    const stranger = auth.openBrowser()
    await stranger.get(CHOSEN, CLICK)
    assert.equal((await stranger.login('clinician')).headers.location, '/portal')
  })

  it('is not one of another server, nor a request of a script, whoever set the cookie (LOGIN-13)', async () => {
    for (const path of ['//evil.example/home', '/\\evil.example', 'https://evil.example/admin', '/logout']) {
      for (const value of [path, sealReturn(path)]) {
        const browser = auth.openBrowser()
        browser.cookies.set('sallyport-return', encodeURIComponent(value))
        assert.equal((await browser.login()).headers.location, '/portal')
      }
    }
    const browser = auth.openBrowser()
    browser.cookies.set('sallyport-return', encodeURIComponent(sealReturn('/home')))
    assert.equal((await browser.login()).headers.location, '/home')
    const updated = await clickInStaleTab('clinician', browser =>
      browser.get('/activity?after=1', { 'sec-fetch-mode': 'cors' }),
    )
    assert.equal(updated.location, '/portal')
  })

  it('explains itself to somebody who was not signed in, and the start page does not (LOGIN-13)', async () => {
    const browser = auth.openBrowser()
    await browser.get('/portal')
    assert.doesNotMatch((await browser.get('/login')).body, /signed out|not signed in/)
    await browser.get('/manage')
    assert.match((await browser.get('/login')).body, /You are not signed in\.<\/b> Sign in to continue/)
    await browser.post('/logout', {})
    assert.doesNotMatch((await browser.get('/login')).body, /not signed in/)
    assert.equal((await browser.login()).headers.location, '/portal')
  })

  it('has an account page, and pages with a slash after them', async () => {
    const browser = await auth.logIn()
    assert.match((await browser.get('/account/')).headers.location ?? '', /\/account$/)
    assert.equal((await browser.get('/admin/')).headers.location, '/admin')
    assert.equal((await browser.get('/portal/?search=x')).headers.location, '/portal?search=x')
    assert.equal((await browser.get('/nothing/')).statusCode, 404)
    assert.equal((await browser.get('/admin/api/')).statusCode, 404)
  })
})
