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
})
