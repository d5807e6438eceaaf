import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { eachDatabase } from '../../../../test/support/databases.ts'
import { createAuditor, findRecords } from '../../../audit/index.ts'
import { TestAuthServer } from '../../testing/test-auth-server.ts'
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
    // The script of the portal asks this page whether the sign-in has ended.
    const asks = () => browser.get('/account', { 'x-requested-with': 'fetch' })
    assert.equal((await asks()).statusCode, 200)
    auth.time.now += 1 * MINUTE
    assert.equal((await asks()).headers.location, '/login')
    assert.equal(await opens(), false)
    assert.equal((await browser.get('/activity')).headers.location, '/login')
    // The script asked first, and so did the page before: the reason is still known.
    for (let at = 0; at < 2; at++)
      assert.match(
        (await browser.get('/login')).body,
        /You were signed out because you were inactive for 30 minutes\./,
      )
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
