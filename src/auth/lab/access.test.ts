import assert from 'node:assert/strict'
import { before, beforeEach, describe, it } from 'node:test'
import { createAuditor, findRecords } from '../../audit/index.ts'
import { TestAuthServer } from '../testing/test-auth-server.ts'
import type { TestBrowser } from '../testing/test-browser.ts'
import { openTestStore } from '../testing/test-store.ts'

const SETTINGS = {
  lab: true,
  onLoopback: false,
  bind: ['0.0.0.0'],
  trustProxy: 'loopback',
  issuerUrl: 'https://auth.example',
}
const HTTPS = { 'x-forwarded-proto': 'https', 'sec-fetch-site': 'same-origin' }
const LINK = `/lab/launch?${new URLSearchParams({
  client: 'new',
  launch_url: 'https://evil.example/launch',
  patient: 'juniper',
  redirect: '0',
  user: 'clinician',
  skip_login: '1',
  skip_consent: '1',
})}`

describe('the lab off loopback', () => {
  const open = openTestStore()
  let auth: TestAuthServer
  let clinician: TestBrowser
  let administrator: TestBrowser
  before(async () => {
    const store = await open()
    auth = await TestAuthServer.open(store, {
      settings: SETTINGS,
      audit: createAuditor({ store, failure: 'refuse' }),
    })
    await auth.addUser('admin', { admin: true })
    await auth.addUser('alba', { fhir_user_id: 'Patient/juniper', admin: true })
  })
  beforeEach(async () => {
    clinician = await auth.logIn()
    administrator = await auth.logIn('admin')
  })

  const launch = async (browser: TestBrowser, headers: Readonly<Record<string, string>> = HTTPS) => {
    const response = await browser.get(LINK, headers)
    return `${response.statusCode} ${response.json().error_description ?? 'launched'}`
  }
  const listClients = async () => {
    const rows = await auth.store.db.selectFrom('client').select('client_id').execute()
    return rows.map(({ client_id }) => client_id)
  }

  it('launches an app only for an administrator who signed in recently (LAB-9)', async () => {
    const others = [auth.openBrowser(), clinician, await auth.logIn('alba')]
    for (const browser of others)
      assert.equal(
        await launch(browser),
        '403 Off loopback, the lab is for administrators who are signed in.',
      )
    auth.time.now += 5 * 60_000
    assert.match(
      await launch(administrator),
      /^403 A launch of the lab needs a sign-in within the last 5 minutes/,
    )
    assert.deepEqual(await listClients(), ['sallyport-app'])
    assert.equal(await launch(await auth.logIn('admin')), '200 launched')
    assert.deepEqual((await listClients()).toSorted(), ['new', 'sallyport-app'])
    const records = await findRecords(auth.store, { limit: 10 })
    const record = records.find(({ kind, allowed }) => kind === 'launch' && allowed)
    assert.equal(record?.reason, 'Launched by the lab; requested by admin; without a sign-in')
    await auth.store.db.deleteFrom('client').where('client_id', '=', 'new').execute()
  })

  it('shows only to an administrator what is registered, on an error page (LAB-10)', async () => {
    const isShown = async (browser: TestBrowser) => {
      const { body } = await auth.authorize(browser, { redirect_uri: 'https://x.example' })
      return /Registered<\/span>|localhost:8081/.test(body)
    }
    assert.equal(await isShown(auth.openBrowser()), false)
    assert.equal(await isShown(clinician), false)
    assert.equal(await isShown(await auth.logIn('alba')), false)
    assert.equal(await isShown(administrator), true)
  })

  it('answers no request over plain http, even of an administrator (LAB-9)', async () => {
    for (const headers of [{ 'sec-fetch-site': 'same-origin' }, { ...HTTPS, 'x-forwarded-proto': 'http' }]) {
      assert.equal(
        await launch(administrator, headers),
        '403 Off loopback, the lab is available over https only.',
      )
      assert.equal((await administrator.get('/lab', headers)).statusCode, 403)
    }
    assert.deepEqual(await listClients(), ['sallyport-app'])
  })

  it('launches an app from its own pages and the address bar only (LAB-9)', async () => {
    const https = { 'x-forwarded-proto': 'https' }
    for (const more of [
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      {},
      { accept: '*/*', referer: 'https://app.example/' },
    ])
      assert.match(await launch(administrator, { ...https, ...more }), /^403 A page of another site may/)
    for (const more of [{ 'sec-fetch-site': 'none' }, { referer: 'https://auth.example/lab' }])
      assert.equal(await launch(administrator, { ...https, ...more }), '200 launched')
  })

  it('has pages for administrators only, and registers apps only in the administration area (LAB-9)', async () => {
    const page = await administrator.get('/lab', HTTPS)
    assert.equal(page.statusCode, 200)
    assert.match(page.body, /href="\/admin\/apps">Registered apps/)
    for (const path of ['/lab', '/lab/find?what=user&text=a'])
      assert.equal((await clinician.get(path, HTTPS)).statusCode, 403, path)
    assert.equal((await administrator.get('/lab/find?what=user&text=a', HTTPS)).statusCode, 200)
    // Keys that every object has: they once returned the settings of the server.
    for (const what of ['constructor', 'toString', 'valueOf', '__proto__', 'x'])
      assert.equal(
        (await administrator.get(`/lab/find?what=${what}`, HTTPS)).body,
        '{"error":"invalid_request","error_description":"Set the parameter “what” to one of these: client, user, patient."}',
      )
    for (const path of ['/apps', '/apps/new', '/apps/edit', '/apps/remove']) {
      assert.equal((await administrator.get(path, HTTPS)).statusCode, 404, path)
      assert.equal((await clinician.post(path, { client_id: 'x' }, HTTPS)).statusCode, 404, path)
    }
    const portal = async (browser: TestBrowser) => (await browser.get('/portal?patient=juniper', HTTPS)).body
    assert.match(await portal(administrator), /href="\/lab"[\s\S]*href="\/admin\/apps\/new"/)
    assert.doesNotMatch(await portal(clinician), /href="\/(?:lab|apps|admin|activity)/)
  })
})
