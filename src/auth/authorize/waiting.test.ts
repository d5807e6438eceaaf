import assert from 'node:assert/strict'
import { before, beforeEach, describe, it } from 'node:test'
import { type AuditRecord, noAudit } from '../../audit/index.ts'
import { readForm, without } from '../testing/read-form.ts'
import { readAnswer, TestAuthServer } from '../testing/test-auth-server.ts'
import type { TestBrowser } from '../testing/test-browser.ts'
import { openTestStore } from '../testing/test-store.ts'

const APP = { client_id: 'third', redirect_uri: 'https://third.example/callback' }
const SCOPE = 'launch/patient openid patient/Patient.rs patient/Condition.rs'

describe('a request that waits for its user', () => {
  const open = openTestStore()
  let house: TestAuthServer
  let visitor: TestBrowser
  const kept: AuditRecord[] = []
  before(async () => {
    const audit = {
      ...noAudit,
      record: async (...some: readonly AuditRecord[]) => void kept.push(...some),
      recordIn: async (_trx: unknown, ...some: readonly AuditRecord[]) => void kept.push(...some),
    }
    house = await TestAuthServer.open(await open(), { audit })
    await house.addClinician('colleague')
    visitor = await house.loggedIn()
  })
  beforeEach(async () => {
    await house.store.db.deleteFrom('client').where('client_id', '=', APP.client_id).execute()
    const scope = 'openid offline_access patient/*.rs'
    await house.addClient({ client_id: APP.client_id, scope, first_party: false })
  })

  const begin = async (browser = visitor, scope = SCOPE, more = {}) => {
    const response = await house.authorize(browser, { ...APP, scope, ...more })
    const address = response.headers.location ?? ''
    return { address, interaction: readAnswer(response).interaction ?? '', page: await browser.get(address) }
  }
  const pick = async (page: { readonly body: string }, fields: Readonly<Record<string, string>>) => {
    const form = `${readForm(page.body)}&${new URLSearchParams(fields)}`
    return visitor.follow(await visitor.post('/oauth2/pick', form), 'http://localhost:9000')
  }
  const decide = (form: URLSearchParams, decision: 'allow' | 'deny', browser = visitor) =>
    browser.post('/oauth2/consent', `${form}&decision=${decision}`)
  const update = (client: { first_party?: boolean; redirect_uris?: string }) =>
    house.store.db.updateTable('client').set(client).where('client_id', '=', APP.client_id).execute()

  it('gives nothing to a HEAD, which nobody would read', async () => {
    const { interaction } = await begin(visitor, 'openid', { prompt: 'login' })
    await visitor.login()
    await update({ first_party: true })
    for (const path of ['resume', 'pick', 'consent']) {
      const url = `/oauth2/${path}?interaction=${interaction}`
      const cookie = [...visitor.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
      const head = await house.app.inject({ method: 'HEAD', url, headers: { cookie } })
      assert.equal(head.headers.location, undefined, path)
    }
    assert.ok(readAnswer(await visitor.get(`/oauth2/consent?interaction=${interaction}`)).code)
  })

  it('is not ended by whoever has not logged in, or has still to choose', async () => {
    const { interaction, page } = await begin()
    for (const [browser, next] of [
      [house.visitor(), /^\/login\?/],
      [visitor, /^\/oauth2\/pick\?/],
    ] as const) {
      const denied = await browser.post('/oauth2/consent', { interaction, decision: 'deny' })
      assert.match(denied.headers.location ?? '', next)
    }
    assert.match((await pick(page, { patientId: 'juniper' })).body, />Juniper</)
  })

  it('keeps what its user decided when the app became ours meanwhile', async () => {
    const boxes = [await begin(), await begin()].map(({ page }) => pick(page, { patientId: 'juniper' }))
    const [one, other] = (await Promise.all(boxes)).map(({ body }) => readForm(body))
    assert.ok(one && other)
    await update({ first_party: true })
    assert.equal(readAnswer(await decide(other, 'deny')).error, 'access_denied')
    const { code = '' } = readAnswer(await decide(without(one, 'patient/Condition.rs'), 'allow'))
    const { scope } = (await house.exchange(code, APP)).json()
    assert.equal(scope, 'launch/patient openid patient/Patient.rs')
  })

  it('ends without a redirect when the app or its address is gone', async () => {
    for (const gone of ['address', 'app']) {
      const { page } = await begin()
      const consent = await pick(page, { patientId: 'juniper' })
      if (gone === 'address') await update({ redirect_uris: '["https://third.example/other"]' })
      else await house.store.db.deleteFrom('client').where('client_id', '=', APP.client_id).execute()
      const answers = [
        await decide(readForm(consent.body), 'allow'),
        await decide(readForm(consent.body), 'deny'),
        await visitor.post('/oauth2/pick', `${readForm(page.body)}&patientId=juniper`),
        await visitor.post('/oauth2/pick', `${readForm(page.body)}&cancel=1`),
      ]
      for (const { statusCode, headers } of answers)
        assert.deepEqual([statusCode, headers.location], [400, undefined], gone)
      await update({ redirect_uris: JSON.stringify([APP.redirect_uri]) })
    }
  })

  it('is asked again when another encounter was chosen in another tab', async () => {
    const { page } = await begin(visitor, `launch/encounter ${SCOPE}`)
    const first = await pick(page, { patientId: 'juniper', encounterId: 'enc-1' })
    const second = await pick(page, { patientId: 'juniper', encounterId: 'enc-2' })
    const stale = await decide(readForm(first.body), 'allow')
    assert.equal(stale.statusCode, 200)
    const { code = '' } = readAnswer(await decide(readForm(second.body), 'allow'))
    assert.equal((await house.exchange(code, APP)).json().encounter, 'enc-2')
  })

  it('waits for the login again after a logout, and begins anew for another user', async () => {
    const browser = await house.loggedIn()
    const { page, interaction } = await begin(browser)
    const picked = await browser.post('/oauth2/pick', `${readForm(page.body)}&patientId=juniper`)
    const consent = await browser.follow(picked, 'http://localhost:9000')
    await browser.post('/logout', {})
    const after = await decide(readForm(consent.body), 'allow', browser)
    assert.match(after.headers.location ?? '', /^\/login\?interaction=/)
    const next = await browser.post('/login', { username: 'colleague', password: 'sallyport', interaction })
    assert.match((await browser.follow(next, 'http://localhost:9000')).body, /Choose a patient for third/)
    const late = await decide(readForm(consent.body), 'allow', browser)
    assert.match(late.headers.location ?? '', /^\/oauth2\/pick\?/)
  })

  it('is recorded with who decided, on which app, and for whom', async () => {
    const { page } = await begin()
    const left = await begin()
    kept.length = 0
    const consent = await pick(page, { patientId: 'juniper' })
    await decide(readForm(consent.body), 'allow')
    await pick(left.page, { cancel: '1' })
    const [allowed, denied] = kept.filter(({ kind }) => kind === 'authorize')
    const subject = allowed?.subject
    assert.match(subject ?? '', /^[0-9a-f-]{36}$/)
    for (const [record, expected] of [
      [allowed, { allowed: true, client: 'third', subject, patient: 'juniper' }],
      [denied, { allowed: false, client: 'third', subject, patient: undefined }],
    ] as const)
      assert.deepEqual(
        {
          allowed: record?.allowed,
          client: record?.client,
          subject: record?.subject,
          patient: record?.patient,
        },
        expected,
      )
  })
})
