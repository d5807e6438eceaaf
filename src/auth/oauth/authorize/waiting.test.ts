import assert from 'node:assert/strict'
import { before, beforeEach, describe, it } from 'node:test'
import { type AuditRecord, noAudit } from '../../../audit/index.ts'
import { clearScopes, readForm } from '../../testing/read-form.ts'
import { readRedirect, TestAuthServer } from '../../testing/test-auth-server.ts'
import type { TestBrowser } from '../../testing/test-browser.ts'
import { openTestStore } from '../../testing/test-store.ts'

const APP = { client_id: 'third', redirect_uri: 'https://third.example/callback' }
const SCOPE = 'launch/patient openid patient/Patient.rs patient/Condition.rs'

describe('a pending authorization request', () => {
  const open = openTestStore()
  let auth: TestAuthServer
  let loggedInBrowser: TestBrowser
  const kept: AuditRecord[] = []
  before(async () => {
    const audit = {
      ...noAudit,
      record: async (...some: readonly AuditRecord[]) => void kept.push(...some),
      recordIn: async (_trx: unknown, ...some: readonly AuditRecord[]) => void kept.push(...some),
    }
    auth = await TestAuthServer.open(await open(), { audit })
    await auth.addUser('colleague')
    loggedInBrowser = await auth.logIn()
  })
  beforeEach(async () => {
    await auth.store.db.deleteFrom('client').where('client_id', '=', APP.client_id).execute()
    const scope = 'openid offline_access patient/*.rs'
    await auth.addClient({ client_id: APP.client_id, scope, first_party: false })
  })

  const begin = async (browser = loggedInBrowser, scope = SCOPE, more = {}) => {
    const response = await auth.authorize(browser, { ...APP, scope, ...more })
    const address = response.headers.location ?? ''
    return {
      address,
      interaction: readRedirect(response).interaction ?? '',
      page: await browser.get(address),
    }
  }
  const pick = async (page: { readonly body: string }, fields: Readonly<Record<string, string>>) => {
    const form = `${readForm(page.body)}&${new URLSearchParams(fields)}`
    return loggedInBrowser.follow(await loggedInBrowser.post('/oauth2/pick', form), 'http://localhost:9000')
  }
  const decide = (form: URLSearchParams, decision: 'allow' | 'deny', browser = loggedInBrowser) =>
    browser.post('/oauth2/consent', `${form}&decision=${decision}`)
  const update = (client: { first_party?: boolean; redirect_uris?: string }) =>
    auth.store.db.updateTable('client').set(client).where('client_id', '=', APP.client_id).execute()

  it('sends nothing in response to HEAD', async () => {
    const { interaction } = await begin(loggedInBrowser, 'openid', { prompt: 'login' })
    await loggedInBrowser.login()
    await update({ first_party: true })
    for (const path of ['resume', 'pick', 'consent']) {
      const url = `/oauth2/${path}?interaction=${interaction}`
      const cookie = [...loggedInBrowser.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
      const head = await auth.app.inject({ method: 'HEAD', url, headers: { cookie } })
      assert.equal(head.headers.location, undefined, path)
    }
    assert.ok(readRedirect(await loggedInBrowser.get(`/oauth2/consent?interaction=${interaction}`)).code)
  })

  it('cannot be ended before the login and the choice of a patient', async () => {
    const { interaction, page } = await begin()
    for (const [browser, next] of [
      [auth.openBrowser(), /^\/login\?/],
      [loggedInBrowser, /^\/oauth2\/pick\?/],
    ] as const) {
      const denied = await browser.post('/oauth2/consent', { interaction, decision: 'deny' })
      assert.match(denied.headers.location ?? '', next)
    }
    assert.match((await pick(page, { patientId: 'juniper' })).body, />Juniper</)
  })

  it("keeps the user's decision if the app becomes a first-party app in the meantime", async () => {
    const boxes = [await begin(), await begin()].map(({ page }) => pick(page, { patientId: 'juniper' }))
    const [one, other] = (await Promise.all(boxes)).map(({ body }) => readForm(body))
    assert.ok(one && other)
    await update({ first_party: true })
    assert.equal(readRedirect(await decide(other, 'deny')).error, 'access_denied')
    const { code = '' } = readRedirect(await decide(clearScopes(one, 'patient/Condition.rs'), 'allow'))
    const { scope } = (await auth.exchange(code, APP)).json()
    assert.equal(scope, 'launch/patient openid patient/Patient.rs')
  })

  it('ends without a redirect if the app or its redirect URI was removed (AUTHORIZE-11)', async () => {
    for (const gone of ['address', 'app']) {
      const { page } = await begin()
      const consent = await pick(page, { patientId: 'juniper' })
      if (gone === 'address') await update({ redirect_uris: '["https://third.example/other"]' })
      else await auth.store.db.deleteFrom('client').where('client_id', '=', APP.client_id).execute()
      const answers = [
        await decide(readForm(consent.body), 'allow'),
        await decide(readForm(consent.body), 'deny'),
        await loggedInBrowser.post('/oauth2/pick', `${readForm(page.body)}&patientId=juniper`),
        await loggedInBrowser.post('/oauth2/pick', `${readForm(page.body)}&cancel=1`),
      ]
      for (const { statusCode, headers } of answers)
        assert.deepEqual([statusCode, headers.location], [400, undefined], gone)
      await update({ redirect_uris: JSON.stringify([APP.redirect_uri]) })
    }
  })

  it('asks for consent again if another encounter was chosen in another tab (CONSENT-4)', async () => {
    const { page } = await begin(loggedInBrowser, `launch/encounter ${SCOPE}`)
    const first = await pick(page, { patientId: 'juniper', encounterId: 'enc-1' })
    const second = await pick(page, { patientId: 'juniper', encounterId: 'enc-2' })
    const stale = await decide(readForm(first.body), 'allow')
    assert.equal(stale.statusCode, 200)
    const { code = '' } = readRedirect(await decide(readForm(second.body), 'allow'))
    assert.equal((await auth.exchange(code, APP)).json().encounter, 'enc-2')
  })

  it('requires a new login after a logout, and starts again for another user (AUTHORIZE-11)', async () => {
    const browser = await auth.logIn()
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

  it('is recorded with user, app and patient', async () => {
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
