import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { TestAuthServer } from './testing/test-auth-server.ts'
import type { TestBrowser } from './testing/test-browser.ts'
import { openTestStore } from './testing/test-store.ts'

const BACK = 'http://localhost:8081/logout'

describe('/oauth2/logout', () => {
  const open = openTestStore()
  let auth: TestAuthServer
  before(async () => {
    auth = await TestAuthServer.open(await open())
    await auth.addClient({ client_id: 'other' })
    await auth.addUser('second')
  })

  async function signedIn(username?: string) {
    const browser = await auth.logIn(username)
    return { browser, tokens: (await auth.exchange(await auth.getCode(browser))).json() }
  }
  const ask = (browser: TestBrowser, parameters: Record<string, string>) =>
    browser.get(`/oauth2/logout?${new URLSearchParams(parameters)}`)
  const isIn = async (browser: TestBrowser) => (await browser.get('/portal')).statusCode === 200

  it('ends the login of the user of the ID token, revokes its grants, and redirects back with the state (LOGOUT-1)', async () => {
    const { browser, tokens } = await signedIn()
    const response = await ask(browser, {
      id_token_hint: tokens.id_token,
      post_logout_redirect_uri: BACK,
      state: 'a b',
    })
    assert.equal(response.statusCode, 302)
    assert.equal(response.headers.location, `${BACK}?state=a+b`)
    assert.equal(await isIn(browser), false)
    assert.equal((await auth.refresh(tokens.refresh_token)).json().error, 'invalid_grant')
  })

  it('signs out for an unverified app without redirecting to its URL (LOGOUT-2)', async () => {
    const post_logout_redirect_uri = 'https://selfmade.example/'
    const urls = { post_logout_redirect_uris: JSON.stringify([post_logout_redirect_uri]) }
    await auth.addClient({ client_id: 'selfmade', ...urls, approved: false })
    const form = { client_id: 'selfmade', post_logout_redirect_uri, state: 's' }
    const browser = await auth.logIn()
    const question = await ask(browser, form)
    assert.match(
      question.body,
      /Sign out\?[\s\S]*<b>selfmade<\/b>&ensp;<span class="badge badge--warn">Unverified</,
    )
    assert.match(String(question.headers['content-security-policy']), /form-action 'self';/)
    for (const response of [
      await browser.post('/oauth2/logout/confirm', form),
      await ask(auth.openBrowser(), form),
    ])
      assert.equal(response.headers.location, '/login?signed-out=1')
    const second = await auth.logIn()
    const tokens = (await auth.exchange(await auth.getCode(second))).json()
    const hint = { id_token_hint: tokens.id_token, post_logout_redirect_uri: BACK }
    await auth.store.db.updateTable('client').set({ approved: false }).execute()
    assert.equal((await ask(second, hint)).headers.location, '/login?signed-out=1')
    await auth.store.db.updateTable('client').set({ approved: true }).execute()
  })

  it('accepts an ID token that has expired', async () => {
    const { browser, tokens } = await signedIn()
    auth.time.now += 3_600_000
    await ask(browser, { id_token_hint: tokens.id_token })
    assert.equal(await isIn(browser), false)
  })

  it('asks for confirmation without a matching ID token, then redirects back (LOGOUT-1)', async () => {
    const { browser } = await signedIn()
    const { tokens: others } = await signedIn('second')
    for (const parameters of [{}, { client_id: 'sallyport-app' }, { id_token_hint: others.id_token }]) {
      const response = await ask(browser, parameters)
      assert.equal(response.statusCode, 200)
      assert.match(response.body, /Sign out\?/)
      assert.match(response.body, /except those with access while you are away\. <a href="\/manage">/)
      assert.equal(response.body.includes(others.id_token), false)
      assert.ok(await isIn(browser))
    }
    assert.match((await browser.get('/logout')).body, /except those with access while you are away\./)
    const form = { client_id: 'sallyport-app', post_logout_redirect_uri: BACK, state: 's' }
    // Chromium applies form-action to the redirects after a form too.
    const question = await ask(browser, form)
    assert.match(
      String(question.headers['content-security-policy']),
      /form-action 'self' http:\/\/localhost:8081;/,
    )
    const done = await browser.post('/oauth2/logout/confirm', form)
    assert.equal(done.headers.location, `${BACK}?state=s`)
    assert.equal(await isIn(browser), false)
  })

  it('refuses a confirmation that another site sends', async () => {
    const { browser } = await signedIn()
    const headers = { 'sec-fetch-site': 'cross-site' }
    assert.equal((await browser.post('/oauth2/logout/confirm', {}, headers)).statusCode, 403)
    assert.ok(await isIn(browser))
  })

  it('accepts the form of another site, which arrives without the cookie, and asks for confirmation', async () => {
    const { browser, tokens } = await signedIn()
    const loggedOut = auth.openBrowser()
    const form = {
      id_token_hint: tokens.id_token,
      client_id: 'sallyport-app',
      post_logout_redirect_uri: BACK,
    }
    const response = await loggedOut.post('/oauth2/logout', form, { 'sec-fetch-site': 'cross-site' })
    assert.equal(response.statusCode, 303)
    assert.doesNotMatch(response.headers.location ?? '', /id_token/)
    assert.match((await browser.get(response.headers.location ?? '')).body, /Sign out\?/)
  })

  it('never redirects to a URL that the client did not register (LOGOUT-2)', async () => {
    const { browser, tokens } = await signedIn()
    const evil = 'https://evil.example/'
    for (const parameters of [
      { post_logout_redirect_uri: evil },
      { post_logout_redirect_uri: BACK },
      { post_logout_redirect_uri: evil, client_id: 'sallyport-app' },
      { post_logout_redirect_uri: `${BACK}/x`, id_token_hint: tokens.id_token },
      { post_logout_redirect_uri: BACK, client_id: 'other' },
      { post_logout_redirect_uri: BACK, client_id: 'other', id_token_hint: tokens.id_token },
      { id_token_hint: tokens.access_token },
      { id_token_hint: 'nonsense' },
    ] as readonly Record<string, string>[]) {
      const response = await ask(browser, parameters)
      assert.equal(response.statusCode, 400, JSON.stringify(Object.keys(parameters)))
      assert.equal(response.headers.location, undefined)
    }
    assert.ok(await isIn(browser))
  })

  it('refuses parameters that are too long for a redirect', async () => {
    for (const [parameter, limit] of [
      ['state', 4096],
      ['client_id', 256],
    ] as const) {
      const refused = await auth.openBrowser().post('/oauth2/logout', { [parameter]: 'x'.repeat(limit + 1) })
      assert.equal(refused.statusCode, 400)
      assert.match(refused.body, new RegExp(`${parameter} is longer than ${limit} characters`))
    }
  })

  it('redirects at once without a login', async () => {
    const response = await ask(auth.openBrowser(), {
      client_id: 'sallyport-app',
      post_logout_redirect_uri: BACK,
    })
    assert.equal(response.headers.location, BACK)
    assert.equal((await ask(auth.openBrowser(), {})).headers.location, '/login?signed-out=1')
  })
})
