import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { TestAuthServer } from '../testing/test-auth-server.ts'
import type { TestBrowser } from '../testing/test-browser.ts'
import { openTestStore } from '../testing/test-store.ts'

const BACK = 'http://localhost:8081/logout'

describe('/oauth2/logout', () => {
  const open = openTestStore()
  let house: TestAuthServer
  before(async () => {
    house = await TestAuthServer.open(await open())
    await house.addClient({ client_id: 'other' })
    await house.addClinician('second')
  })

  async function signedIn(username?: string) {
    const visitor = await house.loggedIn(username)
    return { visitor, tokens: (await house.exchange(await house.code(visitor))).json() }
  }
  const ask = (visitor: TestBrowser, parameters: Record<string, string>) =>
    visitor.get(`/oauth2/logout?${new URLSearchParams(parameters)}`)
  const isIn = async (visitor: TestBrowser) => (await visitor.get('/portal')).statusCode === 200

  it('ends the login of whom the id_token names, with what apps hold, and goes back with the state', async () => {
    const { visitor, tokens } = await signedIn()
    const response = await ask(visitor, {
      id_token_hint: tokens.id_token,
      post_logout_redirect_uri: BACK,
      state: 'a b',
    })
    assert.equal(response.statusCode, 302)
    assert.equal(response.headers.location, `${BACK}?state=a+b`)
    assert.equal(await isIn(visitor), false)
    assert.equal((await house.refresh(tokens.refresh_token)).json().error, 'invalid_grant')
  })

  it('signs out for an unverified app, but sends nobody to a URL that only that app named', async () => {
    const post_logout_redirect_uri = 'https://selfmade.example/'
    const urls = { post_logout_redirect_uris: JSON.stringify([post_logout_redirect_uri]) }
    await house.addClient({ client_id: 'selfmade', ...urls, approved: false })
    const form = { client_id: 'selfmade', post_logout_redirect_uri, state: 's' }
    const visitor = await house.loggedIn()
    const question = await ask(visitor, form)
    assert.match(
      question.body,
      /Sign out\?[\s\S]*<b>selfmade<\/b>&ensp;<span class="badge badge--warn">Unverified</,
    )
    assert.match(String(question.headers['content-security-policy']), /form-action 'self';/)
    for (const response of [
      await visitor.post('/oauth2/logout/confirm', form),
      await ask(house.visitor(), form),
    ])
      assert.equal(response.headers.location, '/login?signed-out=1')
    const second = await house.loggedIn()
    const tokens = (await house.exchange(await house.code(second))).json()
    const hint = { id_token_hint: tokens.id_token, post_logout_redirect_uri: BACK }
    await house.store.db.updateTable('client').set({ approved: false }).execute()
    assert.equal((await ask(second, hint)).headers.location, '/login?signed-out=1')
    await house.store.db.updateTable('client').set({ approved: true }).execute()
  })

  it('accepts an id_token that has expired', async () => {
    const { visitor, tokens } = await signedIn()
    house.time.now += 3_600_000
    await ask(visitor, { id_token_hint: tokens.id_token })
    assert.equal(await isIn(visitor), false)
  })

  it('asks first where it is not shown for whom the client speaks, and goes back after the answer', async () => {
    const { visitor } = await signedIn()
    const { tokens: others } = await signedIn('second')
    for (const parameters of [{}, { client_id: 'sallyport-app' }, { id_token_hint: others.id_token }]) {
      const response = await ask(visitor, parameters)
      assert.equal(response.statusCode, 200)
      assert.match(response.body, /Sign out\?/)
      assert.match(response.body, /except those with access while you are away\. <a href="\/manage">/)
      assert.equal(response.body.includes(others.id_token), false)
      assert.ok(await isIn(visitor))
    }
    assert.match((await visitor.get('/logout')).body, /except those with access while you are away\./)
    const form = { client_id: 'sallyport-app', post_logout_redirect_uri: BACK, state: 's' }
    // Chromium applies form-action to the redirects after a form too.
    const question = await ask(visitor, form)
    assert.match(
      String(question.headers['content-security-policy']),
      /form-action 'self' http:\/\/localhost:8081;/,
    )
    const done = await visitor.post('/oauth2/logout/confirm', form)
    assert.equal(done.headers.location, `${BACK}?state=s`)
    assert.equal(await isIn(visitor), false)
  })

  it('lets no other site give the answer', async () => {
    const { visitor } = await signedIn()
    const headers = { 'sec-fetch-site': 'cross-site' }
    assert.equal((await visitor.post('/oauth2/logout/confirm', {}, headers)).statusCode, 403)
    assert.ok(await isIn(visitor))
  })

  it('takes the form of another site, which comes without the cookie, and asks', async () => {
    const { visitor, tokens } = await signedIn()
    const stranger = house.visitor()
    const form = {
      id_token_hint: tokens.id_token,
      client_id: 'sallyport-app',
      post_logout_redirect_uri: BACK,
    }
    const response = await stranger.post('/oauth2/logout', form, { 'sec-fetch-site': 'cross-site' })
    assert.equal(response.statusCode, 303)
    assert.doesNotMatch(response.headers.location ?? '', /id_token/)
    assert.match((await visitor.get(response.headers.location ?? '')).body, /Sign out\?/)
  })

  it('never sends a browser to an address that the client did not register', async () => {
    const { visitor, tokens } = await signedIn()
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
      const response = await ask(visitor, parameters)
      assert.equal(response.statusCode, 400, JSON.stringify(Object.keys(parameters)))
      assert.equal(response.headers.location, undefined)
    }
    assert.ok(await isIn(visitor))
  })

  it('refuses what is too long to be passed on in a redirect', async () => {
    for (const [parameter, limit] of [
      ['state', 4096],
      ['client_id', 256],
    ] as const) {
      const refused = await house.visitor().post('/oauth2/logout', { [parameter]: 'x'.repeat(limit + 1) })
      assert.equal(refused.statusCode, 400)
      assert.match(refused.body, new RegExp(`${parameter} is longer than ${limit} characters`))
    }
  })

  it('goes on where nobody is logged in', async () => {
    const response = await ask(house.visitor(), {
      client_id: 'sallyport-app',
      post_logout_redirect_uri: BACK,
    })
    assert.equal(response.headers.location, BACK)
    assert.equal((await ask(house.visitor(), {})).headers.location, '/login?signed-out=1')
  })
})
