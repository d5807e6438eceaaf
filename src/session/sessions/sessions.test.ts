import assert from 'node:assert/strict'
import { after, beforeEach, describe, it } from 'node:test'
import { AppBrowser } from '../../../test/support/app-browser.ts'
import { eachDatabase } from '../../../test/support/databases.ts'
import { launchBrowser, sessionApp, useSessionApp } from '../../../test/support/session-app.ts'
import { createAuditor } from '../../audit/index.ts'
import { refuseRecords } from '../../audit/testing/audited-fhir.ts'
import { createSealer, openStore, sweep } from '../../store/index.ts'
import { toSession } from '../session.ts'
import { endSession } from './session-store.ts'

eachDatabase((name, _open, create) => {
  let databaseUrl = ''
  const setup = useSessionApp(async () => {
    databaseUrl = await create()
    return openStore(databaseUrl)
  })
  after(() => setup.store.close())
  let browser: AppBrowser
  beforeEach(async () => {
    setup.ehr.records.push({ resourceType: 'Patient', id: 'juniper' })
    browser = await launchBrowser(setup.app, setup.ehr.fhirBaseUrl)
  })

  const refreshes = () => setup.ehr.tokenForms.filter(({ grant_type }) => grant_type === 'refresh_token')
  const secondsLeft = async () => (await browser.get('/api/session')).json().secondsRemaining

  async function isOver(): Promise<void> {
    for (const path of ['/api/session', '/api/patient', '/api/me']) {
      const response = await browser.get(path)
      assert.equal(response.statusCode, 401, path)
      assert.equal(response.json().issue[0].code, 'login')
    }
  }

  describe('the end of a session', () => {
    it('comes after the idle time (SESSION-2)', async () => {
      assert.equal(await secondsLeft(), 1800)
      setup.clock.advance(1799)
      assert.equal(await secondsLeft(), 1)
      setup.clock.advance(1)
      await isOver()
    })

    it('is extended by an /api request and by the page, but not by /api/session (SESSION-3)', async () => {
      setup.clock.advance(600)
      assert.equal(await secondsLeft(), 1200)
      await browser.get('/api/patient')
      assert.equal(await secondsLeft(), 1800)
      setup.clock.advance(600)
      await browser.get(browser.page)
      assert.equal(await secondsLeft(), 1800)
    })

    it('is not extended by a request for another session', async () => {
      setup.clock.advance(600)
      await browser.get('/api/patient', { 'x-session-id': 'another' })
      assert.equal(await secondsLeft(), 1200)
    })

    it('never exceeds the maximum (SESSION-2)', async () => {
      for (let hour = 0; hour < 16; hour++) {
        setup.clock.advance(1790)
        await browser.get('/api/patient')
      }
      assert.equal(await secondsLeft(), 28_800 - 16 * 1790)
      setup.clock.advance(28_800 - 16 * 1790)
      await isOver()
    })

    it('comes with the access token if it cannot be renewed', async () => {
      setup.ehr.script.token = { refresh_token: undefined, expires_in: 120 }
      browser = await launchBrowser(setup.app, setup.ehr.fhirBaseUrl)
      assert.equal(await secondsLeft(), 120)
      setup.clock.advance(119)
      assert.equal((await browser.get('/api/patient')).statusCode, 200)
      setup.clock.advance(1)
      await isOver()
      assert.deepEqual(refreshes(), [])
    })

    it('comes with the refresh token if its lifetime is known (SESSION-2)', async () => {
      setup.ehr.script.token = { refresh_token_expires_in: 900 }
      browser = await launchBrowser(setup.app, setup.ehr.fhirBaseUrl)
      assert.equal(await secondsLeft(), 900)
    })

    it('is the session maximum if the stated lifetime exceeds what a column holds', async () => {
      for (const token of [
        { refresh_token: undefined, expires_in: 1e300 },
        { refresh_token: undefined, expires_in: 5_000.0005 },
        { expires_in: 1e300, refresh_token_expires_in: 1e300 },
      ]) {
        setup.ehr.script.token = token
        browser = await launchBrowser(setup.app, setup.ehr.fhirBaseUrl)
        assert.equal(await secondsLeft(), 1800)
      }
    })

    it('is returned in UTC and agrees with the seconds (API-2)', async () => {
      const { expiresAt, secondsRemaining } = (await browser.get('/api/session')).json()
      assert.match(expiresAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
      assert.equal(Math.floor((Date.parse(expiresAt) - setup.clock()) / 1000), secondsRemaining)
    })

    it('makes its row eligible for deletion', async () => {
      const { sessionId } = (await browser.get('/api/session')).json()
      const rows = () =>
        setup.store.db
          .selectFrom('app_session')
          .select('id_hash')
          .where('session_id', '=', sessionId)
          .execute()
      await sweep(setup.store, setup.clock())
      assert.equal((await rows()).length, 1)
      await sweep(setup.store, setup.clock() + 1_801_000)
      assert.equal((await rows()).length, 0)
    })
  })

  describe('several sessions of one browser', () => {
    const FENNEL = { resourceType: 'Patient', id: 'fennel', name: [{ family: 'Fennel', given: ['Finn'] }] }
    const JUNIPER = { resourceType: 'Patient', id: 'juniper', name: [{ family: 'Juniper', given: ['Alba'] }] }
    let juniper: string
    let fennel: string
    const read = async (session: string, path: string) =>
      browser.get(path, { 'x-session-id': session.slice('/s/'.length) })
    const patientOf = async (session: string) => (await read(session, '/api/session')).json().patientId
    const count = (body: string) => body.match(/<button[^>]*>End session/g)?.length ?? 0

    beforeEach(async () => {
      setup.ehr.records.length = 0
      setup.ehr.records.push(JUNIPER, FENNEL)
      juniper = browser.page
      setup.ehr.script.token = { patient: 'fennel' }
      setup.clock.advance(1)
      await browser.launch(setup.ehr.fhirBaseUrl)
      fennel = browser.page
    })

    it('are served side by side, each by its own name (SESSION-6)', async () => {
      assert.notEqual(juniper, fennel)
      assert.equal(await patientOf(juniper), 'juniper')
      assert.equal(await patientOf(fennel), 'fennel')
      assert.equal((await read(juniper, '/api/patient')).json().id, 'juniper')
      assert.match(
        (await browser.get(juniper)).body,
        /<h1 class="patient__name"><span class="family">Juniper/,
      )
      assert.match((await browser.get(fennel)).body, /<h1 class="patient__name"><span class="family">Fennel/)
      assert.deepEqual(setup.ehr.revoked, [])
    })

    it('are a conflict for a request that names none, and the response says what to do (SESSION-6)', async () => {
      for (const path of ['/api/session', '/api/patient', '/api/summary']) {
        const response = await browser.get(path)
        assert.equal(response.statusCode, 409, path)
        assert.equal(response.json().issue[0].code, 'conflict')
        assert.match(response.json().issue[0].details.text, /X-Session-Id/)
      }
    })

    it('are listed at / with their patients (SESSION-8)', async () => {
      const { body } = await browser.get('/')
      assert.match(body, new RegExp(`href="${juniper}"><span class="family">Juniper</span>, Alba`))
      assert.match(body, new RegExp(`href="${fennel}"><span class="family">Fennel</span>, Finn`))
      assert.equal(count(body), 2)
    })

    it('are open to the browser with the cookie only (SESSION-1)', async () => {
      assert.deepEqual([...browser.cookies.keys()], [juniper, fennel].map(toCookieName))
      const other = await launchBrowser(setup.app, setup.ehr.fhirBaseUrl)
      for (const stranger of [other, new AppBrowser(setup.app)]) {
        const page = await stranger.get(juniper)
        assert.equal(page.statusCode, stranger === other ? 409 : 401)
        assert.match(page.body, /This session is not open in this browser/)
        const api = await stranger.get('/api/patient', { 'x-session-id': juniper.slice(3) })
        assert.equal(api.statusCode, stranger === other ? 409 : 401)
        assert.equal((await stranger.post(`${juniper}/logout`)).statusCode, 303)
        assert.doesNotMatch(page.body + api.body, /Juniper/)
      }
      assert.equal(await patientOf(juniper), 'juniper')
    })

    it('do not open with the cookie value of one under the name of the other (SESSION-6)', async () => {
      const value = String(browser.cookies.get(toCookieName(fennel)))
      browser.cookies.set(toCookieName(juniper), value)
      assert.equal((await read(juniper, '/api/patient')).statusCode, 409)
      assert.equal((await browser.get('/api/session')).json().patientId, 'fennel')
    })

    it('end one by one, and the URL of the ended one says so (SESSION-7)', async () => {
      const issued = setup.ehr.issued.slice(0, 2)
      const ended = await browser.post(`${juniper}/logout`)
      assert.equal(ended.headers.location, `${juniper}/logout`)
      assert.deepEqual(setup.ehr.revoked.toSorted(), issued.toSorted())
      for (const url of [juniper, `${juniper}/logout`]) {
        const { body } = await browser.get(url)
        assert.match(body, /Your session has ended/)
        assert.match(body, /href="http:\/\/localhost:9000\/portal"/)
        assert.doesNotMatch(body, /Juniper|Fennel/)
      }
      assert.equal((await read(juniper, '/api/patient')).statusCode, 401)
      assert.equal((await browser.get('/api/patient')).json().id, 'fennel')
    })

    it('expire one by one', async () => {
      setup.clock.advance(1799)
      await read(fennel, '/api/patient')
      setup.clock.advance(1)
      assert.equal((await read(juniper, '/api/patient')).statusCode, 401)
      assert.match((await browser.get(juniper)).body, /Your session has ended/)
      assert.equal((await browser.get('/api/patient')).json().id, 'fennel')
      assert.equal(count((await browser.get('/')).body), 1)
    })

    it('are at most 10: the oldest ends, and its tokens are revoked (SESSION-6)', async () => {
      const issued = setup.ehr.issued.slice(0, 2)
      for (let at = 0; at < 9; at++) {
        setup.clock.advance(1)
        await browser.launch(setup.ehr.fhirBaseUrl)
      }
      assert.deepEqual(setup.ehr.revoked.toSorted(), issued.toSorted())
      assert.equal((await read(juniper, '/api/patient')).statusCode, 401)
      assert.equal(await patientOf(fennel), 'fennel')
      assert.equal(count((await browser.get('/')).body), 10)
      assert.equal(browser.cookies.size, 10)
    })

    it('are not chosen by /logout, which shows the list (SESSION-7)', async () => {
      const posted = await browser.post('/logout')
      assert.equal(posted.statusCode, 409)
      for (const { body } of [posted, await browser.get('/logout')]) assert.equal(count(body), 2)
      assert.equal(await patientOf(juniper), 'juniper')
    })

    it('leave no cookie of an expired session after the next launch', async () => {
      await setup.store.db.updateTable('app_session').set({ idle_expires_at: setup.clock() }).execute()
      await browser.launch(setup.ehr.fhirBaseUrl)
      assert.deepEqual([...browser.cookies.keys()], [toCookieName(browser.page)])
    })
  })

  function toCookieName(page: string): string {
    return `sallyport-session-${page.slice('/s/'.length)}`
  }

  describe('/logout', () => {
    it('shows a button on GET and ends nothing (SESSION-7)', async () => {
      const response = await browser.get('/logout')
      assert.ok(response.body.includes(`method="post" action="${browser.page}/logout">`))
      assert.equal((await browser.get('/api/session')).statusCode, 200)
    })

    it('ends the session on POST, clears the cookie and revokes the tokens (SESSION-7)', async () => {
      const cookies = Object.fromEntries(browser.cookies)
      const response = await browser.post('/logout')
      assert.equal(response.statusCode, 303)
      assert.equal(response.headers.location, '/logout')
      assert.equal(browser.cookies.size, 0)
      assert.deepEqual(setup.ehr.revoked.toSorted(), setup.ehr.issued.toSorted())
      const replayed = await setup.app.inject({ method: 'GET', url: '/api/session', cookies })
      assert.equal(replayed.statusCode, 401)
      assert.match((await browser.get('/logout')).body, /Your session has ended/)
    })

    it('revokes the tokens that a renewal has stored in the meantime (SESSION-7)', async () => {
      const { db } = setup.store
      const find = () => db.selectFrom('app_session').selectAll().orderBy('created_at', 'desc')
      const loaded = toSession(await find().executeTakeFirstOrThrow())
      await db.updateTable('app_session').set({ tokens_sealed: 'renewed' }).execute()
      assert.equal((await endSession(db, loaded, setup.clock())).tokensSealed, 'renewed')
      const { tokens_sealed, ended_at } = await find().executeTakeFirstOrThrow()
      assert.deepEqual([tokens_sealed, ended_at], ['', setup.clock()])
    })

    it('ends the session even if the auth server ignores the revocation', async () => {
      setup.ehr.script.configuration = { revocation_endpoint: undefined }
      const silent = await sessionApp(setup.store, [setup.ehr.fhirBaseUrl], { clock: setup.clock })
      browser = await launchBrowser(silent, setup.ehr.fhirBaseUrl)
      assert.equal((await browser.post('/logout')).statusCode, 303)
      assert.deepEqual(setup.ehr.revoked, [])
      assert.equal((await browser.get('/api/session')).statusCode, 401)
    })

    it('is refused if another site posts it', async () => {
      const response = await browser.post('/logout', { 'sec-fetch-site': 'cross-site' })
      assert.equal(response.statusCode, 403)
      assert.equal((await browser.get('/api/session')).statusCode, 200)
    })

    it('succeeds without a session', async () => {
      const response = await setup.app.inject({ method: 'POST', url: '/logout' })
      assert.equal(response.statusCode, 303)
    })
  })

  describe('a session whose audit record cannot be stored', () => {
    let allow: () => Promise<void>
    beforeEach(async () => {
      const { store, clock, ehr } = setup
      const audited = await sessionApp(store, [ehr.fhirBaseUrl], { clock, audit: createAuditor({ store }) })
      browser = await launchBrowser(audited, ehr.fhirBaseUrl)
      allow = await refuseRecords(store)
    })

    it('is not ended by a logout, which can be repeated (AUDIT-8)', async () => {
      assert.equal((await browser.post('/logout')).statusCode, 503)
      assert.equal(await secondsLeft(), 1800)
      assert.deepEqual(setup.ehr.revoked, [])
      await allow()
      assert.equal((await browser.post('/logout')).statusCode, 303)
      await isOver()
    })

    it('is not opened by a launch, and its tokens are revoked (SESSION-9)', async () => {
      const opened = setup.ehr.issued.length
      assert.equal((await browser.launch(setup.ehr.fhirBaseUrl)).statusCode, 503)
      assert.deepEqual(setup.ehr.revoked.toSorted(), setup.ehr.issued.slice(opened).toSorted())
      await allow()
      assert.equal((await browser.get('/api/patient')).statusCode, 200)
    })

    it('keeps the tokens of a renewal, because the auth server has replaced the old ones (AUDIT-8)', async () => {
      setup.clock.advance(400)
      assert.equal((await browser.get('/api/patient')).statusCode, 503)
      await allow()
      assert.equal((await browser.get('/api/patient')).statusCode, 200)
      assert.equal(refreshes().length, 1)
    })
  })

  // A local file does not become unreachable and recover.
  describe('an unreachable database', { skip: name === 'SQLite' }, () => {
    it('returns 503, as JSON or as a page, and reveals no detail', async () => {
      const closedStore = await openStore(databaseUrl)
      const broken = await sessionApp(closedStore, [setup.ehr.fhirBaseUrl], { clock: setup.clock })
      await closedStore.close()
      const cookies = Object.fromEntries(browser.cookies)
      const api = await broken.inject({ method: 'GET', url: '/api/session', cookies })
      assert.equal(api.statusCode, 503)
      assert.equal(api.json().issue[0].code, 'transient')
      const page = await broken.inject({ method: 'GET', url: '/', cookies })
      assert.equal(page.statusCode, 503)
      assert.match(page.body, /temporarily unavailable/)
      assert.equal((await broken.inject({ method: 'GET', url: '/readyz' })).statusCode, 503)
      assert.equal((await browser.get('/api/session')).statusCode, 200)
    })
  })

  describe('a session with the encrypted tokens of another one', () => {
    it('is over, because tokens decrypt only in their own row', async () => {
      const other = await launchBrowser(setup.app, setup.ehr.fhirBaseUrl)
      const id = async (of: AppBrowser) => String((await of.get('/api/session')).json().sessionId)
      const [mine, theirs] = [await id(browser), await id(other)]
      const { tokens_sealed } = await setup.store.db
        .selectFrom('app_session')
        .select('tokens_sealed')
        .where('session_id', '=', theirs)
        .executeTakeFirstOrThrow()
      await setup.store.db
        .updateTable('app_session')
        .set({ tokens_sealed })
        .where('session_id', '=', mine)
        .execute()
      assert.equal((await browser.get('/api/patient')).statusCode, 401)
      assert.equal((await other.get('/api/patient')).statusCode, 200)
    })
  })

  describe('a session of another SMART_SECRET', () => {
    it('is over', async () => {
      const other = await sessionApp(setup.store, [setup.ehr.fhirBaseUrl], {
        clock: setup.clock,
        sealer: createSealer('another secret, long enough'),
      })
      const cookies = Object.fromEntries(browser.cookies)
      const response = await other.inject({ method: 'GET', url: '/api/patient', cookies })
      assert.equal(response.statusCode, 401)
      assert.equal(
        setup.ehr.seen.some(({ path }) => path.includes('/Patient')),
        false,
      )
    })
  })
})
