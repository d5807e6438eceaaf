import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { createAuditor, findRecords } from '../../../audit/index.ts'
import { listRoutes } from '../../../web/index.ts'
import { TestAuthServer } from '../../testing/test-auth-server.ts'
import type { TestBrowser } from '../../testing/test-browser.ts'
import { openTestStore } from '../../testing/test-store.ts'

describe('/admin', () => {
  const open = openTestStore()
  let auth: TestAuthServer
  let admin: TestBrowser
  before(async () => {
    const store = await open()
    auth = await TestAuthServer.open(store, { audit: createAuditor({ store }) })
    await auth.addClinician('ada', { admin: true })
    admin = await auth.logIn('ada')
  })

  const listPages = () =>
    listRoutes(auth.app)
      .filter(({ path }) => /^\/admin(?!\/api)/.test(path))
      .map(({ method, path }) => ({ method, path: path.replace(/:\w+/g, 'x') }))
  const ask = (browser: TestBrowser, { method, path }: { method: string; path: string }) =>
    method === 'GET' ? browser.get(path) : browser.post(path, {})

  it('refuses every page and act to everybody who is not an administrator', async () => {
    await auth.addClinician('alba', { fhir_user_id: 'Patient/juniper', admin: true })
    assert.ok(listPages().length > 5)
    for (const username of ['clinician', 'alba']) {
      const browser = await auth.logIn(username)
      for (const route of listPages()) {
        const response = await ask(browser, route)
        assert.equal(response.statusCode, 403, `${username}: ${route.method} ${route.path}`)
        assert.match(response.body, /You are not an administrator/)
      }
    }
    const [record] = await findRecords(auth.store, { events: [{ kind: 'admin' }], limit: 1 })
    assert.equal(record?.reason, 'Not an administrator')
  })

  it('returns to the page after the sign-in', async () => {
    const browser = auth.openBrowser()
    const response = await browser.get('/admin/audit?kind=login')
    assert.equal(response.headers.location, '/login')
    assert.equal((await browser.login('ada')).headers.location, '/admin/audit?kind=login')
    assert.equal((await browser.login('ada')).headers.location, '/portal')
  })

  it('returns to no other page, whoever set the cookie', async () => {
    for (const path of [
      '//evil.test/admin',
      'https://evil.test/admin',
      '/administrators',
      '/admin/../portal',
    ]) {
      const browser = auth.openBrowser()
      browser.cookies.set('sallyport-return', encodeURIComponent(path))
      assert.equal((await browser.login('ada')).headers.location, '/portal', path)
    }
  })

  it('is linked in the top bar for administrators only', async () => {
    assert.match((await admin.get('/manage')).body, /href="\/admin"/)
    assert.doesNotMatch((await (await auth.logIn()).get('/manage')).body, /href="\/admin"/)
  })

  it('signs in again with the own username, and returns', async () => {
    const browser = await auth.logIn('ada')
    const page = await browser.get((await browser.get('/admin/sign-in')).headers.location ?? '')
    assert.match(page.body, /Sign in again to continue[\s\S]*name="username"[^>]* value="ada"/)
    assert.equal((await browser.login('ada')).headers.location, '/admin/signed-in')
  })

  it('shows the state of the servers', async () => {
    const { body } = await admin.get('/admin')
    assert.match(body, /Auth server[\s\S]*Ready[\s\S]*database, signing key/)
    assert.match(body, /FHIR server[\s\S]*No response/)
  })

  it('reloads the settings after a confirmation', async () => {
    assert.match((await admin.get('/admin/reload')).body, /Reload the settings\?/)
    assert.match((await admin.post('/admin/reload', {})).body, /The settings are reloaded/)
    const [record] = await findRecords(auth.store, { events: [{ kind: 'admin' }], limit: 1 })
    assert.equal(record?.reason, 'Settings reloaded')
  })

  describe('/audit', () => {
    it('filters, pages and shows the records', async () => {
      const all = (await admin.get('/admin/audit?kind=login')).body
      assert.match(all, /Sign-in<\/td>[\s\S]*Dr\. ada/)
      assert.doesNotMatch(all, /Not an administrator/)
      for (let count = 0; count < 51; count += 1) await (await auth.logIn()).get('/admin')
      const first = (await admin.get('/admin/audit?kind=admin&result=refused')).body
      const older = /href="(\/admin\/audit\?[^"]*after=[^"]*)"/.exec(first)?.[1]?.replaceAll('&amp;', '&')
      assert.match((await admin.get(older ?? '')).body, /Not an administrator/)
      const id = /\/admin\/audit\/(\d+)"/.exec(first)?.[1]
      assert.match((await admin.get(`/admin/audit/${id}`)).body, /AuditEvent/)
      for (const unknown of ['x', '0', '9'.repeat(30)])
        assert.equal((await admin.get(`/admin/audit/${unknown}`)).statusCode, 404)
    })

    it('exports the records of the filters, and records the export', async () => {
      const ndjson = await admin.get(
        '/admin/audit/export.ndjson?kind=login&user=Practitioner/practitioner-of-ada',
      )
      assert.match(String(ndjson.headers['content-disposition']), /attachment; filename="audit.ndjson"/)
      const events = ndjson.body
        .trimEnd()
        .split('\n')
        .map(line => JSON.parse(line))
      assert.ok(events.length > 0 && events.every(({ resourceType }) => resourceType === 'AuditEvent'))
      const csv = await admin.get('/admin/audit/export.csv?kind=admin&result=allowed')
      assert.match(csv.body, /^id,at,server,kind,.*\r\n\d+,2026-11-13T14:00:00.000Z,auth,admin,/)
      assert.match(csv.body, /Exported the audit trail as ndjson: \?kind=login/)
    })

    it('writes no formula into a CSV file', async () => {
      const reason = '=HYPERLINK("https://evil.test")'
      const event = { at: 1, server: 'auth', kind: 'register', allowed: true, status: 201, reason } as const
      await createAuditor({ store: auth.store }).record(event)
      const { body } = await admin.get('/admin/audit/export.csv?kind=register')
      assert.match(body, /,"'=HYPERLINK\(""https/)
    })
  })
})
