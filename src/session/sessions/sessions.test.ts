import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import type { FastifyInstance } from 'fastify'
import type { AppBrowser } from '../../../test/support/app-browser.ts'
import { eachDatabase } from '../../../test/support/databases.ts'
import { type ScriptedEhr, startScriptedEhr } from '../../../test/support/scripted-ehr.ts'
import { launched, sessionApp, testClock } from '../../../test/support/session-app.ts'
import { openStore, type Store, sealer, sweep } from '../../store/index.ts'

const PATIENT = { resourceType: 'Patient', id: 'juniper' }

eachDatabase((name, _open, create) => {
  let ehr: ScriptedEhr
  let store: Store
  let databaseUrl: string
  let app: FastifyInstance
  let browser: AppBrowser
  let clock = testClock()

  before(async () => {
    databaseUrl = await create()
    store = await openStore(databaseUrl)
    ehr = await startScriptedEhr()
  })
  beforeEach(async () => {
    ehr.reset()
    ehr.records.push(PATIENT)
    clock = testClock()
    app = await sessionApp(store, [ehr.fhirBaseUrl], { clock })
    browser = await launched(app, ehr.fhirBaseUrl)
  })
  after(async () => {
    await ehr.close()
    await store.close()
  })

  const refreshes = () => ehr.tokenForms.filter(({ grant_type }) => grant_type === 'refresh_token')
  const secondsLeft = async () => (await browser.get('/api/session')).json().secondsRemaining

  async function isOver(): Promise<void> {
    for (const path of ['/api/session', '/api/patient', '/api/me']) {
      const response = await browser.get(path)
      assert.equal(response.statusCode, 401, path)
      assert.equal(response.json().issue[0].code, 'login')
    }
  }

  describe('the end of a session', () => {
    it('comes after the idle time', async () => {
      assert.equal(await secondsLeft(), 1800)
      clock.advance(1799)
      assert.equal(await secondsLeft(), 1)
      clock.advance(1)
      await isOver()
    })

    it('is moved by an /api request, and by the page, but not by /api/session', async () => {
      clock.advance(600)
      assert.equal(await secondsLeft(), 1200)
      await browser.get('/api/patient')
      assert.equal(await secondsLeft(), 1800)
      clock.advance(600)
      await browser.get('/')
      assert.equal(await secondsLeft(), 1800)
    })

    it('is not moved by a request for another session', async () => {
      clock.advance(600)
      await browser.get('/api/patient', { 'x-session-id': 'another' })
      assert.equal(await secondsLeft(), 1200)
    })

    it('is never after the maximum', async () => {
      for (let hour = 0; hour < 16; hour++) {
        clock.advance(1790)
        await browser.get('/api/patient')
      }
      assert.equal(await secondsLeft(), 28_800 - 16 * 1790)
      clock.advance(28_800 - 16 * 1790)
      await isOver()
    })

    it('comes with the access token where nothing can renew it', async () => {
      ehr.script.token = { refresh_token: undefined, expires_in: 120 }
      browser = await launched(app, ehr.fhirBaseUrl)
      assert.equal(await secondsLeft(), 120)
      clock.advance(119)
      assert.equal((await browser.get('/api/patient')).statusCode, 200)
      clock.advance(1)
      await isOver()
      assert.deepEqual(refreshes(), [])
    })

    it('comes when the refresh token ends, where the auth server tells when', async () => {
      ehr.script.token = { refresh_token_expires_in: 900 }
      browser = await launched(app, ehr.fhirBaseUrl)
      assert.equal(await secondsLeft(), 900)
    })

    it('is told in UTC, and agrees with the seconds', async () => {
      const { expiresAt, secondsRemaining } = (await browser.get('/api/session')).json()
      assert.match(expiresAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
      assert.equal(Math.floor((Date.parse(expiresAt) - clock()) / 1000), secondsRemaining)
    })

    it('lets its row be swept', async () => {
      const { sessionId } = (await browser.get('/api/session')).json()
      const rows = () =>
        store.db.selectFrom('app_session').select('id_hash').where('session_id', '=', sessionId).execute()
      await sweep(store, clock())
      assert.equal((await rows()).length, 1)
      await sweep(store, clock() + 1_801_000)
      assert.equal((await rows()).length, 0)
    })
  })

  describe('silent renewal', () => {
    it('happens a little before the access token ends, and the caller does not notice', async () => {
      clock.advance(280)
      await browser.get('/api/patient')
      assert.equal(refreshes().length, 0)
      clock.advance(11)
      ehr.expireAccessTokens()
      assert.equal((await browser.get('/api/patient')).statusCode, 200)
      assert.equal(refreshes().length, 1)
    })

    it('asks once for 50 requests at the same time', async () => {
      clock.advance(300)
      ehr.expireAccessTokens()
      const paths = ['/api/patient', '/api/session', '/api/me', '/api/conditions', '/api/summary']
      const responses = await Promise.all(
        Array.from({ length: 50 }, (_, at) => browser.get(paths[at % 5] ?? '')),
      )
      assert.deepEqual([...new Set(responses.map(({ statusCode }) => statusCode))], [200])
      assert.equal(refreshes().length, 1)
    })

    it('asks once over two instances on one database', async () => {
      const otherStore = await openStore(databaseUrl)
      try {
        const other = await sessionApp(otherStore, [ehr.fhirBaseUrl], { clock })
        clock.advance(300)
        ehr.expireAccessTokens()
        const cookies = Object.fromEntries(browser.cookies)
        const responses = await Promise.all(
          Array.from({ length: 20 }, (_, at) =>
            [app, other][at % 2]?.inject({ method: 'GET', url: '/api/patient', cookies }),
          ),
        )
        assert.deepEqual([...new Set(responses.map(response => response?.statusCode))], [200])
        assert.equal(refreshes().length, 1)
      } finally {
        await otherStore.close()
      }
    })

    it('takes over from an instance that died while it renewed', async () => {
      const { sessionId } = (await browser.get('/api/session')).json()
      clock.advance(300)
      const claim = (until: number) =>
        store.db
          .updateTable('app_session')
          .set({ renewing_until: until })
          .where('session_id', '=', sessionId)
          .execute()
      await claim(clock() + 60_000)
      const impatient = await sessionApp(store, [ehr.fhirBaseUrl], { clock, app: { timeoutSeconds: 0.1 } })
      const cookies = Object.fromEntries(browser.cookies)
      const waiting = await impatient.inject({ method: 'GET', url: '/api/patient', cookies })
      assert.equal(waiting.statusCode, 504)
      assert.equal(refreshes().length, 0)
      await claim(clock() - 1)
      assert.equal((await browser.get('/api/patient')).statusCode, 200)
      assert.equal(refreshes().length, 1)
    })

    it('uses each refresh token once, over many renewals', async () => {
      for (let round = 0; round < 4; round++) {
        clock.advance(300)
        assert.equal((await browser.get('/api/patient')).statusCode, 200)
      }
      const used = refreshes().map(({ refresh_token }) => refresh_token)
      assert.equal(new Set(used).size, 4)
    })

    it('keeps the refresh token of an auth server that does not rotate', async () => {
      clock.advance(300)
      ehr.script.token = { refresh_token: undefined }
      await browser.get('/api/patient')
      const rows = await store.db.selectFrom('app_session').selectAll().execute()
      assert.ok(
        rows.some(({ token_version, renewable_until }) => token_version === 2 && renewable_until === null),
      )
    })

    it('takes over a narrower scope', async () => {
      ehr.script.token = { scope: 'launch openid fhirUser patient/Patient.rs' }
      clock.advance(300)
      assert.deepEqual((await browser.get('/api/session')).json().scopes, [
        'launch',
        'openid',
        'fhirUser',
        'patient/Patient.rs',
      ])
      assert.equal((await browser.get('/api/conditions')).statusCode, 403)
    })

    it('does not depend on how short a token lives', async () => {
      ehr.script.token = { expires_in: 2 }
      browser = await launched(app, ehr.fhirBaseUrl)
      clock.advance(2)
      await Promise.all(Array.from({ length: 20 }, () => browser.get('/api/patient')))
      assert.equal(refreshes().length, 1)
    })

    it('ends the session when the auth server refuses, also for /api/session', async () => {
      clock.advance(300)
      ehr.script.tokenEndpoint = (_form, reply) => reply.code(400).send({ error: 'invalid_grant' })
      assert.equal((await browser.get('/api/session')).statusCode, 401)
      await isOver()
      assert.equal(refreshes().length, 1)
    })

    it('ends the session when the new tokens are for another patient', async () => {
      clock.advance(300)
      ehr.script.token = { patient: 'fennel' }
      assert.equal((await browser.get('/api/patient')).statusCode, 401)
      await isOver()
    })

    it('fails for the moment when the auth server fails, and then goes on', async () => {
      clock.advance(300)
      ehr.script.tokenEndpoint = (_form, reply) => reply.code(503).send()
      const response = await browser.get('/api/patient')
      assert.equal(response.statusCode, 502)
      assert.equal(response.json().issue[0].code, 'transient')
      assert.equal((await browser.get('/api/session')).statusCode, 200)
      ehr.script.tokenEndpoint = undefined
      assert.equal((await browser.get('/api/patient')).statusCode, 200)
    })

    it('sends the refresh token to no other auth server than the one that gave it', async () => {
      clock.advance(301)
      const sent = ehr.tokenForms.length
      ehr.script.configuration = {
        issuer: 'https://evil.example',
        token_endpoint: `${ehr.issuer}/token?evil`,
      }
      assert.equal((await browser.get('/api/patient')).statusCode, 401)
      assert.equal(ehr.tokenForms.length, sent)
    })

    it('gives tokens back that arrive after the session was ended', async () => {
      clock.advance(300)
      const arrived = Promise.withResolvers<void>()
      const answer = Promise.withResolvers<void>()
      ehr.script.tokenEndpoint = async () => {
        arrived.resolve()
        await answer.promise
        return {
          access_token: 'late-access',
          token_type: 'Bearer',
          refresh_token: 'late-refresh',
          expires_in: 300,
        }
      }
      const reading = browser.get('/api/patient')
      await arrived.promise
      await app.inject({ method: 'POST', url: '/logout', cookies: Object.fromEntries(browser.cookies) })
      answer.resolve()
      assert.equal((await reading).statusCode, 401)
      assert.ok(ehr.revoked.includes('late-refresh'))
      assert.ok(ehr.revoked.includes('late-access'))
    })
  })

  describe('a 401 of the FHIR server', () => {
    it('is met with one renewal and one more try', async () => {
      ehr.expireAccessTokens()
      assert.equal((await browser.get('/api/patient')).statusCode, 200)
      assert.equal(refreshes().length, 1)
    })

    it('is told to the caller when the new token is refused as well', async () => {
      ehr.script.fhir = (_url, reply) => reply.code(401).send()
      const response = await browser.get('/api/patient')
      assert.equal(response.statusCode, 401)
      assert.equal(response.json().issue[0].code, 'login')
      assert.equal(refreshes().length, 1)
    })

    it('is told at once where nothing can renew the token', async () => {
      ehr.script.token = { refresh_token: undefined }
      browser = await launched(app, ehr.fhirBaseUrl)
      ehr.expireAccessTokens()
      assert.equal((await browser.get('/api/patient')).statusCode, 401)
      assert.deepEqual(refreshes(), [])
    })

    it('leads to one renewal for many requests', async () => {
      ehr.expireAccessTokens()
      const responses = await Promise.all(Array.from({ length: 30 }, () => browser.get('/api/patient')))
      assert.deepEqual([...new Set(responses.map(({ statusCode }) => statusCode))], [200])
      assert.equal(refreshes().length, 1)
    })
  })

  describe('X-Session-Id', () => {
    it('is a conflict once another launch has replaced the session', async () => {
      const { sessionId } = (await browser.get('/api/session')).json()
      const page = { 'x-session-id': sessionId }
      assert.equal((await browser.get('/api/patient', page)).statusCode, 200)
      await browser.launch(ehr.fhirBaseUrl)
      for (const path of ['/api/session', '/api/patient', '/api/summary']) {
        const response = await browser.get(path, page)
        assert.equal(response.statusCode, 409, path)
        assert.equal(response.json().issue[0].code, 'conflict')
        assert.ok(!response.body.includes('juniper'))
      }
    })
  })

  describe('/logout', () => {
    it('shows a button on GET and ends nothing', async () => {
      const response = await browser.get('/logout')
      assert.match(response.body, /<form[^>]* method="post" action="\/logout">/)
      assert.equal((await browser.get('/api/session')).statusCode, 200)
    })

    it('ends the session on POST, takes the cookie back and gives the tokens back', async () => {
      const cookies = Object.fromEntries(browser.cookies)
      const response = await browser.post('/logout')
      assert.equal(response.statusCode, 303)
      assert.equal(response.headers.location, '/logout')
      assert.equal(browser.cookies.size, 0)
      assert.deepEqual(ehr.revoked.toSorted(), ehr.issued.toSorted())
      const replayed = await app.inject({ method: 'GET', url: '/api/session', cookies })
      assert.equal(replayed.statusCode, 401)
      assert.match((await browser.get('/logout')).body, /Your session has ended/)
    })

    it('ends the session also when the auth server takes no notice', async () => {
      ehr.script.configuration = { revocation_endpoint: undefined }
      const silent = await sessionApp(store, [ehr.fhirBaseUrl], { clock })
      browser = await launched(silent, ehr.fhirBaseUrl)
      assert.equal((await browser.post('/logout')).statusCode, 303)
      assert.deepEqual(ehr.revoked, [])
      assert.equal((await browser.get('/api/session')).statusCode, 401)
    })

    it('is refused when another site posts it', async () => {
      const response = await browser.post('/logout', { 'sec-fetch-site': 'cross-site' })
      assert.equal(response.statusCode, 403)
      assert.equal((await browser.get('/api/session')).statusCode, 200)
    })

    it('is quiet without a session', async () => {
      const response = await app.inject({ method: 'POST', url: '/logout' })
      assert.equal(response.statusCode, 303)
    })
  })

  // A file of this machine does not go away and come back.
  describe('a database that is away', { skip: name === 'SQLite' }, () => {
    it('is 503, as JSON or as a page, and shows nothing of the fault', async () => {
      const gone = await openStore(databaseUrl)
      const broken = await sessionApp(gone, [ehr.fhirBaseUrl], { clock })
      await gone.close()
      const cookies = Object.fromEntries(browser.cookies)
      const api = await broken.inject({ method: 'GET', url: '/api/session', cookies })
      assert.equal(api.statusCode, 503)
      assert.equal(api.json().issue[0].code, 'transient')
      const page = await broken.inject({ method: 'GET', url: '/', cookies })
      assert.equal(page.statusCode, 503)
      assert.match(page.body, /cannot be shown right now/)
      assert.equal((await broken.inject({ method: 'GET', url: '/readyz' })).statusCode, 503)
      assert.equal((await browser.get('/api/session')).statusCode, 200)
    })
  })

  describe('a session of another SMART_SECRET', () => {
    it('is over', async () => {
      const other = await sessionApp(store, [ehr.fhirBaseUrl], {
        clock,
        sealer: sealer('another secret, long enough'),
      })
      const cookies = Object.fromEntries(browser.cookies)
      const response = await other.inject({ method: 'GET', url: '/api/patient', cookies })
      assert.equal(response.statusCode, 401)
      assert.equal(
        ehr.seen.some(({ path }) => path.includes('/Patient')),
        false,
      )
    })
  })
})
