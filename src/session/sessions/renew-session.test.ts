import assert from 'node:assert/strict'
import { after, beforeEach, describe, it } from 'node:test'
import type { AppBrowser } from '../../../test/support/app-browser.ts'
import { eachDatabase } from '../../../test/support/databases.ts'
import { launchBrowser, sessionApp, useSessionApp } from '../../../test/support/session-app.ts'
import { createAuditor, findRecords } from '../../audit/index.ts'
import { openStore } from '../../store/index.ts'

eachDatabase((_name, _open, create) => {
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

  async function isOver(): Promise<void> {
    for (const path of ['/api/session', '/api/patient', '/api/me']) {
      const response = await browser.get(path)
      assert.equal(response.statusCode, 401, path)
      assert.equal(response.json().issue[0].code, 'login')
    }
  }

  describe('silent renewal', () => {
    it('happens shortly before the access token expires, unnoticed by the caller', async () => {
      setup.clock.advance(280)
      await browser.get('/api/patient')
      assert.equal(refreshes().length, 0)
      setup.clock.advance(11)
      setup.ehr.expireAccessTokens()
      assert.equal((await browser.get('/api/patient')).statusCode, 200)
      assert.equal(refreshes().length, 1)
    })

    it('sends one token request for 50 parallel requests (SESSION-4)', async () => {
      setup.clock.advance(300)
      setup.ehr.expireAccessTokens()
      const paths = ['/api/patient', '/api/session', '/api/me', '/api/conditions', '/api/summary']
      const responses = await Promise.all(
        Array.from({ length: 50 }, (_, at) => browser.get(paths[at % 5] ?? '')),
      )
      assert.deepEqual([...new Set(responses.map(({ statusCode }) => statusCode))], [200])
      assert.equal(refreshes().length, 1)
    })

    it('sends one token request for two instances on one database (SESSION-4)', async () => {
      const otherStore = await openStore(databaseUrl)
      try {
        const other = await sessionApp(otherStore, [setup.ehr.fhirBaseUrl], { clock: setup.clock })
        setup.clock.advance(300)
        setup.ehr.expireAccessTokens()
        const cookies = Object.fromEntries(browser.cookies)
        const responses = await Promise.all(
          Array.from({ length: 20 }, (_, at) =>
            [setup.app, other][at % 2]?.inject({ method: 'GET', url: '/api/patient', cookies }),
          ),
        )
        assert.deepEqual([...new Set(responses.map(response => response?.statusCode))], [200])
        assert.equal(refreshes().length, 1)
      } finally {
        await otherStore.close()
      }
    })

    it('takes over from an instance that died during a renewal', async () => {
      const { sessionId } = (await browser.get('/api/session')).json()
      setup.clock.advance(300)
      const claim = (until: number) =>
        setup.store.db
          .updateTable('app_session')
          .set({ renewing_until: until })
          .where('session_id', '=', sessionId)
          .execute()
      await claim(setup.clock() + 60_000)
      const impatient = await sessionApp(setup.store, [setup.ehr.fhirBaseUrl], {
        clock: setup.clock,
        app: { timeoutSeconds: 0.1 },
      })
      const cookies = Object.fromEntries(browser.cookies)
      const waiting = await impatient.inject({ method: 'GET', url: '/api/patient', cookies })
      assert.equal(waiting.statusCode, 504)
      assert.equal(refreshes().length, 0)
      await claim(setup.clock() - 1)
      assert.equal((await browser.get('/api/patient')).statusCode, 200)
      assert.equal(refreshes().length, 1)
    })

    it('uses each refresh token once, over many renewals', async () => {
      for (let round = 0; round < 4; round++) {
        setup.clock.advance(300)
        assert.equal((await browser.get('/api/patient')).statusCode, 200)
      }
      const used = refreshes().map(({ refresh_token }) => refresh_token)
      assert.equal(new Set(used).size, 4)
    })

    it('keeps the refresh token of an auth server that does not rotate', async () => {
      setup.clock.advance(300)
      setup.ehr.script.token = { refresh_token: undefined }
      await browser.get('/api/patient')
      const rows = await setup.store.db.selectFrom('app_session').selectAll().execute()
      assert.ok(
        rows.some(({ token_version, renewable_until }) => token_version === 2 && renewable_until === null),
      )
    })

    it('adopts a narrower scope', async () => {
      setup.ehr.script.token = { scope: 'launch openid fhirUser patient/Patient.rs' }
      setup.clock.advance(300)
      assert.deepEqual((await browser.get('/api/session')).json().scopes, [
        'launch',
        'openid',
        'fhirUser',
        'patient/Patient.rs',
      ])
      assert.equal((await browser.get('/api/conditions')).statusCode, 403)
    })

    it('works for any token lifetime', async () => {
      setup.ehr.script.token = { expires_in: 2 }
      browser = await launchBrowser(setup.app, setup.ehr.fhirBaseUrl)
      setup.clock.advance(2)
      await Promise.all(Array.from({ length: 20 }, () => browser.get('/api/patient')))
      assert.equal(refreshes().length, 1)
    })

    it('ends the session when the auth server refuses, also for /api/session (SESSION-5)', async () => {
      setup.clock.advance(300)
      setup.ehr.script.tokenEndpoint = (_form, reply) => reply.code(400).send({ error: 'invalid_grant' })
      assert.equal((await browser.get('/api/session')).statusCode, 401)
      await isOver()
      assert.equal(refreshes().length, 1)
      assert.equal(setup.log().at(-1)?.check, 'invalid_grant')
    })

    it('records a refusal that ended the session as refused (SESSION-5)', async () => {
      const { store, ehr, clock } = setup
      const app = await sessionApp(store, [ehr.fhirBaseUrl], { clock, audit: createAuditor({ store }) })
      const audited = await launchBrowser(app, ehr.fhirBaseUrl)
      clock.advance(300)
      ehr.script.tokenEndpoint = (_form, reply) => reply.code(400).send({ error: 'invalid_grant' })
      assert.equal((await audited.get('/api/patient')).statusCode, 401)
      const [ended] = await findRecords(store, { events: [{ kind: 'session-end' }], limit: 1 })
      assert.deepEqual(
        [Boolean(ended?.allowed), ended?.status, ended?.reason],
        [false, 401, 'The auth server refused to renew it'],
      )
      await app.close()
    })

    it('ends the session when the new tokens are for another patient (SESSION-5)', async () => {
      setup.clock.advance(300)
      setup.ehr.script.token = { patient: 'fennel' }
      assert.equal((await browser.get('/api/patient')).statusCode, 401)
      await isOver()
      const [line] = setup.log()
      assert.equal(line?.check, "token response patient, expected the session's patient")
      assert.doesNotMatch(JSON.stringify(line), /fennel|juniper/)
    })

    it('fails while the auth server fails, and then succeeds', async () => {
      setup.clock.advance(300)
      setup.ehr.script.tokenEndpoint = (_form, reply) => reply.code(503).send()
      const response = await browser.get('/api/patient')
      assert.equal(response.statusCode, 502)
      assert.equal(response.json().issue[0].code, 'transient')
      assert.equal((await browser.get('/api/session')).statusCode, 200)
      setup.ehr.script.tokenEndpoint = undefined
      assert.equal((await browser.get('/api/patient')).statusCode, 200)
    })

    it('sends the refresh token only to the auth server that issued it', async () => {
      setup.clock.advance(301)
      const sent = setup.ehr.tokenForms.length
      setup.ehr.script.configuration = {
        issuer: 'https://evil.example',
        token_endpoint: `${setup.ehr.issuer}/token?evil`,
      }
      assert.equal((await browser.get('/api/patient')).statusCode, 401)
      assert.equal(setup.ehr.tokenForms.length, sent)
    })

    it('revokes tokens that arrive after the session ended', async () => {
      setup.clock.advance(300)
      const arrived = Promise.withResolvers<void>()
      const answer = Promise.withResolvers<void>()
      setup.ehr.script.tokenEndpoint = async () => {
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
      await setup.app.inject({ method: 'POST', url: '/logout', cookies: Object.fromEntries(browser.cookies) })
      answer.resolve()
      assert.equal((await reading).statusCode, 401)
      assert.ok(setup.ehr.revoked.includes('late-refresh'))
      assert.ok(setup.ehr.revoked.includes('late-access'))
    })
  })

  describe('a 401 of the FHIR server', () => {
    it('causes one renewal and one retry', async () => {
      setup.ehr.expireAccessTokens()
      assert.equal((await browser.get('/api/patient')).statusCode, 200)
      assert.equal(refreshes().length, 1)
    })

    it('is returned to the caller if the new token is refused as well', async () => {
      setup.ehr.script.fhir = (_url, reply) => reply.code(401).send()
      const response = await browser.get('/api/patient')
      assert.equal(response.statusCode, 401)
      assert.equal(response.json().issue[0].code, 'login')
      assert.equal(refreshes().length, 1)
    })

    it('is returned to the caller at once if the token cannot be renewed', async () => {
      setup.ehr.script.token = { refresh_token: undefined }
      browser = await launchBrowser(setup.app, setup.ehr.fhirBaseUrl)
      setup.ehr.expireAccessTokens()
      assert.equal((await browser.get('/api/patient')).statusCode, 401)
      assert.deepEqual(refreshes(), [])
    })

    it('causes one renewal for many requests', async () => {
      setup.ehr.expireAccessTokens()
      const responses = await Promise.all(Array.from({ length: 30 }, () => browser.get('/api/patient')))
      assert.deepEqual([...new Set(responses.map(({ statusCode }) => statusCode))], [200])
      assert.equal(refreshes().length, 1)
    })
  })
})
