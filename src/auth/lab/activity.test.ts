import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { createAuditor } from '../../audit/index.ts'
import { readRedirect, TestAuthServer } from '../testing/test-auth-server.ts'
import type { TestBrowser } from '../testing/test-browser.ts'
import { openTestStore } from '../testing/test-store.ts'
import { ISSUED_BY_COMMAND } from './command-line.ts'

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
      reason: ISSUED_BY_COMMAND,
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
  })
})
