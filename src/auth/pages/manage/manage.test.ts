import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { before, describe, it, mock } from 'node:test'
import { eachDatabaseIfThorough } from '../../../../test/support/databases.ts'
import { LIMITS } from '../../base/limits.ts'
import { readForm } from '../../testing/read-form.ts'
import { TestAuthServer } from '../../testing/test-auth-server.ts'
import type { TestBrowser } from '../../testing/test-browser.ts'
import { patient } from '../../testing/test-fhir-server.ts'

const HELIO = { client_id: 'helio', redirect_uri: 'https://helio.example/callback' }
const SCOPES = 'launch openid offline_access patient/Condition.rs patient/Observation.crs'

/** A FHIR server that never answers. */
const waitForAbort: typeof fetch = async (_url, init) => {
  init?.signal?.throwIfAborted()
  return new Promise((_, reject) => init?.signal?.addEventListener('abort', reject))
}

eachDatabaseIfThorough((_name, open) => {
  describe('/manage', () => {
    let auth: TestAuthServer
    let browser: TestBrowser
    before(async () => {
      auth = await TestAuthServer.open(await open())
      const logo_url = 'https://helio.example/logo.png'
      await auth.addClient({ client_id: 'helio', name: 'Helio <Trends>', scope: SCOPES, logo_url })
      await auth.addClient({ client_id: 'brief', scope: 'launch patient/Patient.rs user/Patient.rs' })
      await auth.addUser('colleague')
      browser = await auth.logIn()
    })

    const tokens = async (browser: TestBrowser, client: typeof HELIO, scope: string) =>
      (await auth.exchange(await auth.getCode(browser, { ...client, scope }), client)).json()

    it('tells patients with the same name apart, also before access is ended (REVOKE-3)', async () => {
      const identifier = [{ type: { coding: [{ code: 'MR' }] }, value: 'SYN-004127' }]
      const resources = [patient('juniper', 'Juniper', 'Alba', { identifier })]
      const other = await TestAuthServer.open(await open(), { resources })
      await other.addClient({ client_id: 'helio', scope: SCOPES })
      const user = await other.logIn()
      await other.exchange(await other.getCode(user, { ...HELIO, scope: SCOPES }), HELIO)
      for (const page of ['/manage', '/manage/remove?client=helio'])
        assert.match(
          (await user.get(page)).body,
          /Juniper<\/span>, Alba<span class="sub">Born .*>MRN SYN-004127</,
        )
    })

    it('requires a login', async () => {
      for (const address of ['/manage', '/manage/remove?client=helio'])
        assert.equal((await auth.openBrowser().get(address)).headers.location, '/login')
      assert.equal(
        (await auth.openBrowser().post('/manage/remove', { client: 'helio' })).headers.location,
        '/login',
      )
    })

    it('shows that no app has access', async () => {
      assert.match((await (await auth.logIn('colleague')).get('/manage')).body, /No app has access/)
    })

    it('shows each app with its permissions, number of patients, last use and end (REVOKE-3)', async () => {
      await tokens(browser, HELIO, SCOPES)
      const { body, headers } = await browser.get('/manage')
      // A list shows no logos: its policy would have to name each.
      assert.match(String(headers['content-security-policy']), /img-src 'self' data:;/)
      assert.doesNotMatch(body, /logo\.png/)
      assert.match(body, /<tbody[\s\S]*Helio &lt;Trends&gt;[\s\S]*helio\.example/)
      assert.match(body, /Reads conditions and measurements; adds measurements/)
      assert.match(
        body,
        /data-label="Records"><span class="family">Juniper<\/span>, Alba<span class="sub">Born /,
      )
      assert.match(
        body,
        /Last used" class="nowrap"><time datetime="[^"]+" data-moment="minutes">\d\d-\w+-\d+ \d\d:\d\d UTC</,
      )
      assert.match(
        (await browser.get('/manage/remove?client=helio')).body,
        /Records<\/dt><dd><span class="family">Juniper</,
      )
      assert.match(body, /When you end it<\/span>[\s\S]*Works while you are away/)
      assert.match(body, /One of them keeps access while you are away/)
      assert.ok(body.includes(SCOPES))
    })

    it('waits at most 2 s for the names of patients', async () => {
      await tokens(browser, HELIO, SCOPES)
      const limits: number[] = []
      const stuck = await TestAuthServer.open(auth.store, { fetch: waitForAbort })
      const timeout = mock.method(AbortSignal, 'timeout', (ms: number) => {
        limits.push(ms)
        return AbortSignal.abort(new DOMException('No response', 'TimeoutError'))
      })
      try {
        const { statusCode, body } = await (await stuck.logIn()).get('/manage')
        assert.equal(statusCode, 200)
        assert.match(body, /Helio/)
        assert.deepEqual(limits, [2_000])
      } finally {
        timeout.mock.restore()
        await stuck.app.close()
      }
    })

    it('omits access that has ended: online access with the login, other access with its last token', async () => {
      const brief = { client_id: 'brief', redirect_uri: 'https://brief.example/callback' }
      const own = { client_id: 'sallyport-app', redirect_uri: 'http://localhost:8081/callback' }
      const browser = await auth.logIn('colleague')
      await tokens(browser, brief, 'launch patient/Patient.rs user/Patient.rs')
      await tokens(browser, own, auth.settings.app.scope)
      const soon = (await browser.get('/manage')).body
      assert.match(soon, />brief<[\s\S]*All you may see/)
      assert.match(soon, /Demo app/)
      auth.time.now += 301_000
      const later = (await browser.get('/manage')).body
      assert.doesNotMatch(later, />brief</)
      assert.match(later, /Demo app/)
      await browser.post('/logout', {})
      const colleague = await auth.logIn('colleague')
      assert.match((await colleague.get('/manage')).body, /No app has access/)
    })

    it('lists the most recently used patients of an app, and the number of the others (REVOKE-3)', async () => {
      const { db } = auth.store
      await tokens(browser, HELIO, SCOPES)
      const query = db.selectFrom('grant').selectAll().where('client_id', '=', 'helio')
      const grant = await query.executeTakeFirstOrThrow()
      const patients = Array.from({ length: LIMITS.patientsListed + 1 }, (_, at) => at)
      const copy = (at: number) => ({
        ...grant,
        id: randomUUID(),
        patient_id: `patient-${at}`,
        last_used_at: grant.last_used_at - 1 - at,
      })
      const grants = patients.map(copy)
      await db.insertInto('grant').values(grants).execute()
      const token = await db
        .selectFrom('refresh_token')
        .selectAll()
        .where('grant_id', '=', grant.id)
        .executeTakeFirstOrThrow()
      const copied = grants.map(({ id }) => ({ ...token, token_hash: id, grant_id: id }))
      await db.insertInto('refresh_token').values(copied).execute()
      const { body } = await browser.get('/manage')
      assert.match(
        body,
        /52 records[\s\S]*Juniper[\s\S]*patient-0[\s\S]*patient-48<\/li><li>2 others, used earlier/,
      )
      const copies = db.selectFrom('grant').select('id').where('patient_id', 'like', 'patient-%')
      await db.deleteFrom('refresh_token').where('grant_id', 'in', copies).execute()
      await db.deleteFrom('grant').where('patient_id', 'like', 'patient-%').execute()
    })

    it('asks for confirmation on a page that changes nothing', async () => {
      const page = await browser.get('/manage/remove?client=helio')
      assert.match(page.body, /End Helio &lt;Trends&gt;’s access\?/)
      assert.match((await browser.get('/manage')).body, /Helio/)
      assert.equal((await browser.get('/manage/remove?client=nobody')).headers.location, '/manage')
    })

    it('removes access at once, of this app and this user only (REVOKE-3)', async () => {
      const colleague = await auth.logIn('colleague')
      const mine = await tokens(browser, HELIO, SCOPES)
      const theirs = await tokens(colleague, HELIO, SCOPES)
      const form = readForm((await browser.get('/manage/remove?client=helio')).body)
      const response = await browser.post('/manage/remove', form.toString())
      assert.equal(response.statusCode, 303)
      const page = await browser.get(response.headers.location ?? '')
      assert.match(
        page.body,
        /role="status"[\s\S]*Access ended[\s\S]*Helio &lt;Trends&gt; can no longer use any record on your behalf/,
      )
      const refresh = (token: string) => auth.refresh(token, { client_id: 'helio' })
      assert.equal((await refresh(mine.refresh_token)).json().error, 'invalid_grant')
      assert.equal((await refresh(theirs.refresh_token)).statusCode, 200)
      assert.match((await colleague.get('/manage')).body, /Helio/)
      // FHIR servers read it from the feed of revocations.
      const feed = (await browser.get('/oauth2/revocations')).json()
      assert.ok(feed.revoked.length > 0)
    })

    it('revokes a code that was not exchanged yet', async () => {
      const code = await auth.getCode(browser, { ...HELIO, scope: SCOPES })
      await browser.post('/manage/remove', { client: 'helio' })
      assert.equal((await auth.exchange(code, HELIO)).json().error, 'invalid_grant')
    })

    it('refuses a removal that another site sends', async () => {
      await tokens(browser, HELIO, SCOPES)
      const headers = { 'sec-fetch-site': 'cross-site' }
      assert.equal((await browser.post('/manage/remove', { client: 'helio' }, headers)).statusCode, 403)
      assert.match((await browser.get('/manage')).body, /Helio/)
    })

    it('reports no removal that did not happen', async () => {
      assert.doesNotMatch((await browser.get('/manage?removed=helio')).body, /Access ended/)
      assert.doesNotMatch((await browser.get('/manage?removed=%3Cb%3E')).body, /Access ended/)
      assert.equal((await browser.post('/manage/remove', { client: 'nobody' })).headers.location, '/manage')
    })
  })
})
