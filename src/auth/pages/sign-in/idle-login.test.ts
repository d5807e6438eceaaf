import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
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
    assert.match(
      (await browser.get('/login')).body,
      /Your sign-in has ended: it was not used for 30 minutes\./,
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
