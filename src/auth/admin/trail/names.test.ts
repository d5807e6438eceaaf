import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { createAuditor } from '../../../audit/index.ts'
import { parsePolicyText } from '../../../config/index.ts'
import { isFailure } from '../../../core/index.ts'
import { NO_CONTROLS } from '../../base/context.ts'
import { TestAuthServer } from '../../testing/test-auth-server.ts'
import type { TestBrowser } from '../../testing/test-browser.ts'
import { patient } from '../../testing/test-fhir-server.ts'
import { openTestStore } from '../../testing/test-store.ts'

const policy = parsePolicyText(`
rules:
  - clinicians: [Practitioner/practitioner-of-ada, Practitioner/elsewhere]
    patients: [juniper]
`)

const MRN = { type: { coding: [{ code: 'MR' }] }, value: 'SYN-004127' }
const RESOURCES = [
  patient('juniper', 'Juniper', 'Alba', { identifier: [MRN] }),
  patient('other', 'Juniper', 'Albert'),
  patient('ashlar', 'Ashlar', 'Tobias'),
]

describe('a patient on the pages of administrators', () => {
  const open = openTestStore()
  let auth: TestAuthServer
  let admin: TestBrowser
  before(async () => {
    assert(!isFailure(policy))
    const store = await open()
    const controls = { ...NO_CONTROLS, getPolicy: () => policy }
    auth = await TestAuthServer.open(store, {
      audit: createAuditor({ store }),
      controls,
      resources: RESOURCES,
    })
    await auth.addUser('ada', { admin: true })
    admin = await auth.logIn('ada')
    const clinician = await auth.logIn()
    for (const patientId of ['juniper', 'ashlar']) {
      auth.time.now += 1
      const launch = await auth.launch(clinician, { patientId })
      const { headers } = await auth.authorize(clinician, { launch })
      const code = new URL(headers.location ?? '').searchParams.get('code') ?? ''
      assert.equal((await auth.exchange(code)).statusCode, 200)
    }
  })

  /** The page, and the requests to the FHIR server for it. */
  const look = async (path: string) => {
    auth.fhir.requests.length = 0
    const { body, statusCode } = await admin.get(path)
    return { body, statusCode, requests: auth.fhir.requests.map(({ url }) => url.search) }
  }
  const JUNIPER = /<bdi>Juniper, Alba<\/bdi><span class="sub"><code>juniper<\/code>/

  it('has name and id among the access of apps, with one search, and the id if there is no response (ADMIN-24)', async () => {
    const { body, requests } = await look('/admin/access')
    assert.match(body, JUNIPER)
    assert.deepEqual(requests, ['?_id=ashlar,juniper&_count=2'])
    const app = await look('/admin/apps/sallyport-app')
    assert.match(app.body, /<code>juniper<\/code>[\s\S]*Show with the names of the patients/)
    assert.deepEqual(app.requests, [])
    const [, named = ''] = /href="([^"]*)">Show with the names/.exec(app.body) ?? []
    assert.match((await look(named.replaceAll('&amp;', '&'))).body, JUNIPER)
    const filtered = await look('/admin/access?patient=Alba%20Juniper')
    assert.match(filtered.body, JUNIPER)
    assert.ok(filtered.requests.every(query => !query.includes('_id=')))
    auth.fhir.fail('no-response')
    try {
      const unnamed = await look('/admin/access')
      assert.match(unnamed.body, /<td[^>]*><code>juniper<\/code><\/td>/)
      assert.equal(unnamed.requests.length, 1)
      const meant = await look('/admin/access?patient=juniper')
      assert.match(meant.body, /<td[^>]*><code>juniper<\/code><\/td>/)
      assert.ok(meant.requests.every(query => !query.startsWith('?_id=juniper&_count=1')))
    } finally {
      auth.fhir.fail(undefined)
    }
  })

  it('has name and id in the audit trail and its records, with one search (ADMIN-24)', async () => {
    const { body, requests } = await look('/admin/audit?kind=launch')
    assert.match(body, JUNIPER)
    assert.deepEqual(requests, ['?_id=ashlar,juniper&_count=2'])
    const [, id] = /juniper[\s\S]*?href="\/admin\/audit\/(\d+)"/.exec(body) ?? []
    const record = await look(`/admin/audit/${id}`)
    assert.match(
      record.body,
      /href="\/admin\/audit\?patient=Patient%2Fjuniper"><bdi>Juniper, Alba<\/bdi><\/a> <code>juniper</,
    )
    assert.equal(record.requests.length, 1)
    assert.deepEqual((await look('/admin/audit?kind=login')).requests, [])
  })

  it('is found by name or MRN for the policy, which names the clinicians who have accounts (ADMIN-24)', async () => {
    for (const text of ['Alba Juniper', 'SYN-004127', 'Patient/juniper']) {
      const { body, statusCode } = await look(`/admin/policy?${new URLSearchParams({ patient: text })}`)
      assert.equal(statusCode, 200, text)
      assert.match(body, JUNIPER, text)
      assert.match(body, /Rule 1[\s\S]*Dr\. ada<span class="sub"><code>Practitioner\/practitioner-of-ada</)
      assert.match(body, /<p><code>Practitioner\/elsewhere<\/code><\/p>/)
    }
    const several = (await look('/admin/policy?patient=juniper')).body
    assert.match(
      several,
      /class="prow" href="\/admin\/policy\?patient=Patient%2Fjuniper">[\s\S]*Alba<[\s\S]*14-Mar-1958[\s\S]*Albert</,
    )
    const nobody = await look('/admin/policy?patient=Nobody%20Known')
    assert.equal(nobody.statusCode, 404)
    assert.match(nobody.body, /Not found\.[\s\S]*No patient is known as Nobody Known\./)
    auth.fhir.fail('no-response')
    try {
      const unknown = await look('/admin/policy?patient=juniper')
      assert.equal(unknown.statusCode, 503)
      assert.match(unknown.body, /Not known\.[\s\S]*The FHIR server is unavailable/)
    } finally {
      auth.fhir.fail(undefined)
    }
  })
})
