import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { testSettings } from '../testing/settings.ts'
import { TestAuthServer } from '../testing/test-auth-server.ts'
import { openTestStore } from '../testing/test-store.ts'

const SUPPORT = 'Service desk, 555 0100, help@north.example'

describe('the organization on pages', () => {
  const open = openTestStore()
  let auth: TestAuthServer
  before(async () => {
    auth = await TestAuthServer.open(await open(), {
      settings: { brand: { ...testSettings.brand, name: 'North Hospital', support: SUPPORT } },
    })
  })

  it('has its name in the title and in the top bar, and its contact, on every page', async () => {
    const browser = await auth.logIn()
    const paths = [
      '/portal',
      '/manage',
      '/account/sign-ins',
      '/account/password',
      '/activity',
      '/logout',
      '/nothing',
      '/oauth2/authorize',
    ]
    const bodies = await Promise.all(paths.map(path => browser.get(path)))
    for (const { body } of [...bodies, await auth.openBrowser().get('/login')]) {
      assert.match(body, /<title>[^<]+ – North Hospital<\/title>/)
      assert.match(body, /<a class="logo"[^>]*aria-label="North Hospital: start page"/)
      assert.match(
        body,
        /Service desk, 555 0100, <a href="mailto:help@north.example">help@north.example<\/a>/,
      )
    }
  })

  it('is who helps with a forgotten password', async () => {
    const { body } = await auth.openBrowser().get('/login')
    assert.match(
      body,
      /id="help">Forgot your password, or can’t sign in\? Ask for help, or for a link to choose a new password: Service desk/,
    )
    const other = await TestAuthServer.open(await open())
    assert.match(
      (await other.openBrowser().get('/login')).body,
      /Forgot your password, or can’t sign in\? Ask the people who gave you your account: they can/,
    )
  })
})

describe('an error page', () => {
  const open = openTestStore()

  it('keeps the navigation of a user who is signed in', async () => {
    const auth = await TestAuthServer.open(await open())
    const browser = await auth.logIn()
    const pages = [
      await browser.get('/nowhere'),
      await browser.get('/login/providers/nobody'),
      await browser.post('/portal', {}),
      await browser.get('/oauth2/authorize'),
      await browser.get('/oauth2/resume?interaction=none'),
    ]
    assert.deepEqual(
      pages.map(({ statusCode }) => statusCode),
      [404, 404, 405, 400, 400],
    )
    for (const { body } of pages) assert.match(body, /<nav class="topbar__nav"[\s\S]*Dr\. Robin Ahmadi/)
  })

  it('has none without a login, or if the database fails', async () => {
    const auth = await TestAuthServer.open(await open())
    assert.doesNotMatch((await auth.openBrowser().get('/nowhere')).body, /topbar__nav/)
    const browser = await auth.logIn()
    await auth.store.db.schema.dropTable('login').execute()
    const { statusCode, body } = await browser.get('/nowhere')
    assert.equal(statusCode, 404)
    assert.doesNotMatch(body, /topbar__nav/)
  })
})
