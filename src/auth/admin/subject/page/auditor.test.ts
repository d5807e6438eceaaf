import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { createAuditor, findRecords } from '../../../../audit/index.ts'
import { TestAuthServer } from '../../../testing/test-auth-server.ts'
import type { TestBrowser } from '../../../testing/test-browser.ts'
import { openTestStore } from '../../../testing/test-store.ts'

describe('an auditor', () => {
  const open = openTestStore()
  let auth: TestAuthServer
  let admin: TestBrowser
  let auditor: TestBrowser
  before(async () => {
    const store = await open()
    auth = await TestAuthServer.open(store, { audit: createAuditor({ store }) })
    await auth.addUser('ada', { admin: true })
    await auth.addUser('vera', { auditor: true })
    await auth.addUser('mira', { fhir_user_id: 'Patient/juniper' })
    const clinician = await auth.logIn()
    await auth.exchange(await auth.getCode(clinician))
    const { id } = await auth.findUser('vera')
    const link = { issuer: 'https://idp.test', subject: 'v', clinician_id: id, provisioned: false }
    await store.db
      .insertInto('clinician_link')
      .values({ ...link, created_at: 1 })
      .execute()
    admin = await auth.logIn('ada')
    auditor = await auth.logIn('vera')
  })

  const findLastRecord = async () =>
    (await findRecords(auth.store, { events: [{ kind: 'admin' }], limit: 1 }))[0]

  /** Follows the links of pages below `/admin`, each path once. Returns the paths and the forms that change something. */
  async function crawl(browser: TestBrowser) {
    const found = new Map([['/admin', '/admin']])
    const forms = new Set<string>()
    for (const [path, url] of found) {
      const { statusCode, body, headers } = await browser.get(url)
      assert.ok(statusCode === 200 || statusCode === 302, `${statusCode} ${url}`)
      if (!headers['content-type']?.toString().startsWith('text/html')) continue
      for (const [, action = ''] of body.matchAll(/<form[^>]*method="post"[^>]*action="(\/admin[^"]*)"/g))
        forms.add(generalize(action))
      for (const [, href = ''] of body.matchAll(/href="(\/admin[^"]*)"/g)) {
        const next = href.replaceAll('&amp;', '&')
        const key = generalize(next)
        if (!found.has(key)) found.set(key, next)
      }
      assert.ok(path)
    }
    return { paths: [...found.keys()], forms: [...forms] }
  }

  /** One record, key or grant is like another. */
  const generalize = (url: string) =>
    (url.split('?')[0] ?? '').replace(/\/(audit|keys|grants)\/(?=[^/]*[\d_])[^/]+/, '/$1/:id')

  it('finds every list and no action: no link or form leads to a refusal (ADMIN-29)', async () => {
    assert.match((await auditor.get('/admin')).body, /You are an auditor/)
    const seen = await crawl(auditor)
    const all = await crawl(admin)
    assert.deepEqual(seen.forms.toSorted(), ['/admin/audit/check-file', '/admin/audit/verify'])
    for (const path of [
      '/admin/apps',
      '/admin/clinicians',
      '/admin/users.csv',
      '/admin/access',
      '/admin/access/export.csv',
      '/admin/keys',
      '/admin/providers',
      '/admin/policy',
      '/admin/system',
      '/admin/audit',
      '/admin/audit/:id',
      '/admin/audit/export.csv',
      '/admin/audit/export.ndjson',
      '/admin/audit/verify',
    ])
      assert.ok(seen.paths.includes(path), path)
    const hidden = all.paths.filter(path => !seen.paths.includes(path))
    for (const last of ['new', 'rotate', 'withdraw', 'revoke', 'disable', 'reload', 'unlink', 'make-auditor'])
      assert.ok(
        hidden.some(path => path.endsWith(`/${last}`)),
        last,
      )
  })

  it('searches, exports and verifies, which is recorded with the own name (ADMIN-29)', async () => {
    const { id } = await auth.findUser('vera')
    for (const [path, request] of [
      ['/admin/audit?kind=login', 'audit list'],
      ['/admin/audit/export.csv', 'audit export csv'],
      ['/admin/users.csv', 'users export'],
      ['/admin/access/export.csv', 'grant export csv'],
    ] as const) {
      assert.equal((await auditor.get(path)).statusCode, 200, path)
      const record = await findLastRecord()
      assert.deepEqual([record?.request, record?.subject], [request, id])
    }
    assert.equal((await auditor.post('/admin/audit/verify', {})).statusCode, 303)
  })

  it('reads why a change is refused, which is recorded (ADMIN-29)', async () => {
    const { id } = await auth.findUser('ada')
    const refused = await auditor.post(`/admin/clinicians/${id}/end-sessions`, {})
    assert.equal(refused.statusCode, 403)
    assert.match(refused.body, /Auditors change nothing[\s\S]*Ask an administrator/)
    const record = await findLastRecord()
    assert.deepEqual([Boolean(record?.allowed), record?.reason], [false, 'Auditors change nothing'])
    assert.deepEqual(
      [record?.request, record?.resource_type, record?.resource_id],
      ['clinician end-sessions ada', 'account', id],
    )
    const page = (await auditor.get(`/admin/audit/${record?.id}`)).body
    assert.match(page, /<code>clinician end-sessions ada<\/code>/)
    assert.match(page, /Not changed[\s\S]*Changes to this account/)
    assert.equal((await admin.get('/admin')).statusCode, 200)
  })

  it('has attempts recorded with the operation and its target, before and after a form is sent (ADMIN-29)', async () => {
    const { id } = await auth.findUser('ada')
    for (const [path, request, type, target] of [
      [`/admin/clinicians/${id}/disable`, 'clinician disable ada', 'account', id],
      ['/admin/clinicians/nobody/disable', 'clinician disable nobody', null, null],
      ['/admin/clinicians/new', 'clinician add', null, null],
      ['/admin/apps/growth/edit', 'client set growth', 'client', 'growth'],
      ['/admin/grants/g1/revoke', 'grant revoke g1', 'grant', 'g1'],
      ['/admin/keys/k1/withdraw', 'keys withdraw k1', null, null],
    ] as const) {
      assert.equal((await auditor.get(path)).statusCode, 403, path)
      const record = await findLastRecord()
      assert.deepEqual(
        [record?.method, record?.request, record?.resource_type, record?.resource_id],
        ['admin', request, type, target],
      )
    }
    await auth.addUser('cora')
    assert.equal((await (await auth.logIn('cora')).get('/admin/audit?patient=1')).statusCode, 403)
    const record = await findLastRecord()
    assert.deepEqual([record?.method, record?.request], ['GET', '/admin/audit'])
  })

  it('is made and unmade on the page of a user, at once, and has one role (ADMIN-29)', async () => {
    await auth.addUser('bob')
    const bob = await auth.logIn('bob')
    const { id } = await auth.findUser('bob')
    const path = `/admin/clinicians/${id}`
    const roles: string[] = []
    for (const [verb, role, see, change] of [
      ['make-auditor', 'user → auditor', 200, 403],
      ['make-administrator', 'auditor → administrator', 200, 200],
      ['make-auditor', 'administrator → auditor', 200, 403],
      ['remove-auditor', 'auditor → user', 403, 403],
    ] as const) {
      assert.match((await admin.get(path)).body, new RegExp(`/${verb}"`))
      assert.equal((await admin.post(`${path}/${verb}`, {})).statusCode, 303, verb)
      roles.push(`Role: ${role}`)
      assert.equal((await bob.get('/admin/clinicians')).statusCode, see, verb)
      assert.equal((await bob.get('/admin/clinicians/new')).statusCode, change, verb)
    }
    const records = await findRecords(auth.store, { events: [{ kind: 'admin' }], limit: 100 })
    const changes = records.filter(({ request }) => request === 'clinician set bob')
    assert.deepEqual(changes.map(({ reason }) => reason).toReversed(), roles)
    assert.match((await admin.get('/admin/clinicians?state=auditors')).body, /vera/)
    assert.doesNotMatch((await admin.get('/admin/clinicians?state=auditors')).body, /bob/)
  })

  it('is no role that administrators give themselves, or patients (ADMIN-29)', async () => {
    const { id } = await auth.findUser('ada')
    const own = await admin.post(`/admin/clinicians/${id}/make-auditor`, {})
    assert.deepEqual([own.statusCode, /This is your own account/.test(own.body)], [409, true])
    const patient = await admin.post(`/admin/clinicians/${(await auth.findUser('mira')).id}/make-auditor`, {})
    assert.deepEqual(
      [patient.statusCode, /Only a clinician can be an auditor/.test(patient.body)],
      [400, true],
    )
  })
})
