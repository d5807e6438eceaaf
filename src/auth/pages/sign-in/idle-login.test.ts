import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { eachDatabase } from '../../../../test/support/databases.ts'
import { createAuditor, findRecords } from '../../../audit/index.ts'
import { sha256 } from '../../../store/index.ts'
import { TestAuthServer } from '../../testing/test-auth-server.ts'
import { TestBrowser } from '../../testing/test-browser.ts'
import { openTestStore } from '../../testing/test-store.ts'

describe('an idle login', () => {
  const open = openTestStore()
  const MINUTE = 60_000

  it('ends after the idle time, which pages extend but background updates do not (LOGIN-8)', async () => {
    const auth = await TestAuthServer.open(await open(), { settings: { loginIdleSeconds: 1800 } })
    const browser = await auth.logIn()
    const opens = async (headers = {}) =>
      (await browser.get('/portal', headers)).headers.location !== '/login'
    for (let at = 0; at < 4; at++) {
      auth.time.now += 29 * MINUTE
      assert.equal(await opens({ 'sec-fetch-mode': 'navigate' }), true)
    }
    auth.time.now += 20 * MINUTE
    assert.equal(await opens({ 'sec-fetch-mode': 'cors' }), true)
    auth.time.now += 9 * MINUTE
    // Over plain http browsers send no Sec-Fetch-Mode.
    assert.equal(await opens({ 'x-requested-with': 'fetch' }), true)
    // The script of a page asks whether the sign-in has ended.
    const asks = async () => (await browser.get('/login/state', FETCH)).json().signedIn
    assert.equal(await asks(), true)
    auth.time.now += 1 * MINUTE
    assert.equal(await asks(), false)
    assert.equal(await opens(), false)
    assert.equal((await browser.get('/activity')).headers.location, '/login')
    // The script asked first, and so did the page before: the reason is still known.
    for (let at = 0; at < 2; at++)
      assert.match(
        (await browser.get('/login')).body,
        /You were signed out because you were inactive for 30 minutes\./,
      )
  })

  /** What the script of a page asks, and what it sends when the user is active. */
  const FETCH = { 'x-requested-with': 'fetch' }

  it('ends at the time that is set, to the second, and says that time (LOGIN-8)', async () => {
    const auth = await TestAuthServer.open(await open(), { settings: { loginIdleSeconds: 75 } })
    const browser = await auth.logIn()
    // A page in between counts in full, however short the time since the one before.
    for (const seconds of [30, 40, 74]) {
      auth.time.now += seconds * 1000
      assert.equal((await browser.get('/portal')).statusCode, 200)
    }
    auth.time.now += 75_000
    assert.equal((await browser.get('/portal')).headers.location, '/login')
    const { body } = await browser.get('/login')
    assert.match(body, /You were signed out because you were inactive for 1 minute and 15 seconds\./)
    assert.match(body, /Records that you opened in other apps may still be open there\./)
  })

  it('ends after the last activity that a page reports, and asking does not extend it (LOGIN-8)', async () => {
    const store = await open()
    const auth = await TestAuthServer.open(store, {
      audit: createAuditor({ store }),
      settings: { loginIdleSeconds: 75 },
    })
    const browser = await auth.logIn()
    const records = () => findRecords(store, { limit: 99 })
    const before = await records()
    const state = async () => (await browser.get('/login/state', FETCH)).json()
    const report = async (idleSeconds: string) =>
      browser.post('/login/state', { idleSeconds }, { 'sec-fetch-site': 'same-origin', ...FETCH })
    assert.deepEqual(await state(), {
      signedIn: true,
      secondsLeft: 75,
      canStay: true,
      warnSeconds: 25,
      reportSeconds: 7.5,
    })
    auth.time.now += 70_000
    assert.equal((await state()).secondsLeft, 5)
    // The user typed 3 seconds ago.
    assert.equal((await report('3')).json().secondsLeft, 72)
    // An older report of another tab changes nothing.
    assert.equal((await report('60')).json().secondsLeft, 72)
    for (const wrong of ['', '-5', 'NaN', 'x', '1e999']) assert.equal((await report(wrong)).statusCode, 400)
    auth.time.now += 72_000
    assert.deepEqual((await report('0')).json(), { signedIn: false })
    assert.deepEqual(await state(), { signedIn: false })
    assert.equal((await browser.get('/portal')).headers.location, '/login')
    assert.deepEqual(await records(), before)
  })

  for (const [idle, hours, expected] of [
    [1800, 0, { secondsLeft: 1800, canStay: true, warnSeconds: 60, reportSeconds: 30 }],
    [0, 7, { secondsLeft: 3600, canStay: false, warnSeconds: 60, reportSeconds: 30 }],
  ] as const)
    it(`says when it ends and whether use moves the end (${idle} s, after ${hours} hours)`, async () => {
      const auth = await TestAuthServer.open(await open(), { settings: { loginIdleSeconds: idle } })
      const browser = await auth.logIn()
      auth.time.now += hours * 60 * MINUTE
      assert.deepEqual((await browser.get('/login/state', FETCH)).json(), { signedIn: true, ...expected })
    })

  it('is reported by our own app, which closes with it; other apps do neither (LOGIN-20)', async () => {
    const auth = await TestAuthServer.open(await open(), { settings: { loginIdleSeconds: 75 } })
    await auth.addClient({ client_id: 'other', auth_method: 'client_secret', secret_hash: sha256('s') })
    const browser = await auth.logIn()
    const own = (await auth.exchange(await auth.getCode(browser))).json().access_token
    const launch = await auth.launch(browser, { clientId: 'other' })
    const request = { launch, client_id: 'other', redirect_uri: 'https://other.example/callback' }
    const { location = '' } = (await auth.authorize(browser, request)).headers
    const code = new URL(location).searchParams.get('code') ?? ''
    const secret = { ...request, client_secret: 's' }
    const other = (await auth.exchange(code, secret)).json().access_token
    const ask = (token: string, idle?: string) =>
      new TestBrowser(auth.app).get('/oauth2/userinfo', {
        authorization: `Bearer ${token}`,
        ...(idle !== undefined && { 'sallyport-idle-seconds': idle }),
      })
    const secondsLeft = async () => (await browser.get('/login/state', FETCH)).json().secondsLeft
    auth.time.now += 70_000
    assert.equal((await ask(other, '0')).json().idle_seconds, undefined)
    assert.equal((await ask(own)).json().idle_seconds, undefined)
    assert.equal((await ask(own, '100')).json().idle_seconds, 70)
    assert.equal(await secondsLeft(), 5)
    assert.equal((await ask(own, '2')).json().idle_seconds, 2)
    assert.equal(await secondsLeft(), 73)
    auth.time.now += 73_000
    const refused = await ask(own, '0')
    assert.deepEqual([refused.statusCode, refused.json().error], [401, 'login_required'])
    assert.equal((await ask(other)).statusCode, 200)
    assert.equal((await browser.get('/portal')).headers.location, '/login')
    // A new sign-in of the same user continues both.
    await browser.login()
    assert.equal((await ask(own)).statusCode, 200)
  })

  it('still has its maximum of 8 hours, however much it is used', async () => {
    const auth = await TestAuthServer.open(await open(), { settings: { loginIdleSeconds: 1800 } })
    const browser = await auth.logIn()
    for (let at = 0; at < 24; at++) {
      auth.time.now += 20 * MINUTE
      const location = (await browser.get('/portal')).headers.location
      assert.equal(location, at === 23 ? '/login' : undefined)
    }
  })

  it('passes its grants on to the next login of the same clinician, which can end them', async () => {
    const auth = await TestAuthServer.open(await open(), { settings: { loginIdleSeconds: 1800 } })
    const browser = await auth.logIn()
    const tokens = (await auth.exchange(await auth.getCode(browser))).json()
    auth.time.now += 31 * MINUTE
    const renewed = await auth.refresh(tokens.refresh_token)
    assert.equal(renewed.statusCode, 200)
    await browser.login()
    auth.time.now += 7 * 60 * MINUTE
    const later = await auth.refresh(renewed.json().refresh_token)
    assert.equal(later.statusCode, 200)
    await browser.post('/logout', {})
    assert.equal((await auth.refresh(later.json().refresh_token)).statusCode, 400)
  })

  it('lasts until its maximum without an idle time, as on loopback (LOGIN-8)', async () => {
    const auth = await TestAuthServer.open(await open())
    const browser = await auth.logIn()
    auth.time.now += 7 * 60 * MINUTE
    assert.equal((await browser.get('/portal')).statusCode, 200)
  })
})

eachDatabase((_name, open) => {
  describe('a sign-in in a browser that somebody else used before', () => {
    const MINUTE = 60_000

    for (const [when, minutes] of [
      ['is still good', 1],
      ['was idle for too long', 31],
    ] as const)
      it(`ends the sign-in before as a sign-out does, if it ${when} (LOGIN-18)`, async () => {
        const store = await open()
        const audit = createAuditor({ store })
        const auth = await TestAuthServer.open(store, { audit, settings: { loginIdleSeconds: 1800 } })
        await auth.addUser('colleague')
        const browser = await auth.logIn()
        const { refresh_token } = (await auth.exchange(await auth.getCode(browser))).json()
        auth.time.now += minutes * MINUTE
        await browser.get('/portal')
        await browser.get('/login')
        await browser.login('colleague')
        assert.match((await browser.get('/portal')).body, /Dr\. colleague/)
        assert.equal((await auth.refresh(refresh_token)).statusCode, 400)
        const { logins } = await auth.store.db
          .selectFrom('login')
          .select(({ fn }) => fn.countAll<number | string>().as('logins'))
          .executeTakeFirstOrThrow()
        assert.equal(Number(logins), 1)
        const [record, ...others] = await findRecords(auth.store, { events: [{ kind: 'logout' }], limit: 9 })
        assert.equal(record?.reason, 'Another user signed in in the same browser')
        assert.equal(record?.fhir_user, 'Practitioner/practitioner-1')
        assert.deepEqual(others, [])
      })
  })
})
