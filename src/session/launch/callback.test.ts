import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { AppBrowser } from '../../../test/support/app-browser.ts'
import { eachDatabaseIfThorough } from '../../../test/support/databases.ts'
import { launchBrowser, sessionApp, useSessionApp } from '../../../test/support/session-app.ts'
import { sha256 } from '../../store/index.ts'
import { findSite } from '../../web/http/index.ts'

eachDatabaseIfThorough((_name, open) => {
  const setup = useSessionApp(open)

  describe('GET /callback', () => {
    it('opens a session for the patient, encounter and banner of the token response (APP-4)', async () => {
      const browser = new AppBrowser(setup.app)
      const response = await browser.launch(setup.ehr.fhirBaseUrl)
      assert.equal(response.statusCode, 302)
      const { sessionId } = (await browser.get('/api/session')).json()
      assert.equal(response.headers.location, `/s/${sessionId}`)
      const { patientId, encounterId, needPatientBanner, fhirBaseUrl } = (
        await browser.get('/api/session')
      ).json()
      assert.deepEqual(
        { patientId, encounterId, needPatientBanner, fhirBaseUrl },
        {
          patientId: 'juniper',
          encounterId: 'visit-1',
          needPatientBanner: true,
          fhirBaseUrl: setup.ehr.fhirBaseUrl,
        },
      )
    })

    it('sets one opaque HttpOnly cookie and clears the launch cookie (SESSION-1)', async () => {
      const browser = new AppBrowser(setup.app)
      const response = await browser.launch(setup.ehr.fhirBaseUrl)
      const cookie = response.cookies.find(({ name }) => name.startsWith('sallyport-session-'))
      assert.match(cookie?.value ?? '', /^[\w-]{43}$/)
      assert.equal(cookie?.httpOnly, true)
      assert.equal(cookie?.sameSite, 'Lax')
      assert.deepEqual([...browser.cookies.keys()], [`sallyport-session-${browser.page.slice(3)}`])
    })

    it('binds cookies to the host and to https if the app has an https URL', async () => {
      const secure = await sessionApp(setup.store, [setup.ehr.fhirBaseUrl], { appUrl: 'https://app.example' })
      const response = await new AppBrowser(secure).launch(setup.ehr.fhirBaseUrl)
      const cookie = response.cookies.find(({ name }) => name.startsWith('__Host-sallyport-session-'))
      assert.equal(cookie?.secure, true)
      assert.equal(cookie?.path, '/')
    })

    it('stores no token and no cookie in plain text (SESSION-1)', async () => {
      const browser = await launchBrowser(setup.app, setup.ehr.fhirBaseUrl)
      const rows = JSON.stringify(await setup.store.db.selectFrom('app_session').selectAll().execute())
      assert.equal(setup.ehr.issued.length, 2)
      for (const secret of [...setup.ehr.issued, ...browser.cookies.values()])
        assert.ok(!rows.includes(secret))
    })

    it('fetches the key set of an auth server once, and again for an unknown kid (APP-5)', async () => {
      const countFetches = () => setup.ehr.seen.filter(({ path }) => path === '/jwks').length
      for (const [kid, fetches] of [
        ['one', 1],
        ['one', 1],
        ['two', 2],
        ['two', 2],
      ] as const) {
        setup.ehr.script.kid = kid
        await launchBrowser(setup.app, setup.ehr.fhirBaseUrl)
        assert.equal(countFetches(), fetches)
      }
    })

    it('sends code, verifier and client id, and no secret', async () => {
      await launchBrowser(setup.app, setup.ehr.fhirBaseUrl)
      const [form] = setup.ehr.tokenForms
      const { code, code_verifier, ...rest } = form ?? {}
      assert.deepEqual(
        { ...rest },
        {
          grant_type: 'authorization_code',
          redirect_uri: 'http://localhost:8081/callback',
          client_id: 'sallyport-app',
        },
      )
      assert.ok(code && code_verifier)
    })

    async function refused(browser: AppBrowser, url: string, title: RegExp, status: number): Promise<void> {
      const before = setup.ehr.tokenForms.length
      const response = await browser.get(url)
      assert.equal(response.statusCode, status)
      assert.match(response.body, title)
      assert.equal(setup.ehr.tokenForms.length, before)
      assert.ok(![...browser.cookies.keys()].some(name => name.startsWith('sallyport-session-')))
    }

    it('refuses a state that it did not issue', async () => {
      const browser = new AppBrowser(setup.app)
      const callback = await browser.visitAuthServer(await browser.begin(setup.ehr.fhirBaseUrl))
      await refused(browser, callback.replace(/state=[^&]+/, 'state=other'), /cannot be continued/, 400)
      await refused(browser, callback.replace(/state=[^&]+&?/, ''), /cannot be continued/, 400)
      await refused(browser, `${callback}&state=twice`, /cannot be continued/, 400)
      await refused(browser, '/callback', /cannot be continued/, 400)
      const repeated = 'parameter state is missing or repeated'
      assert.deepEqual(
        setup.log().map(({ check }) => check),
        ['the browser sent no cookie of this launch', repeated, repeated, repeated],
      )
    })

    it('refuses a launch whose sealed verifier was copied from another one', async () => {
      const [browser, other] = [new AppBrowser(setup.app), new AppBrowser(setup.app)]
      const { db } = setup.store
      await db.deleteFrom('app_launch').execute()
      await other.begin(setup.ehr.fhirBaseUrl)
      const { code_verifier_sealed } = await db
        .selectFrom('app_launch')
        .select('code_verifier_sealed')
        .executeTakeFirstOrThrow()
      const callback = await browser.visitAuthServer(await browser.begin(setup.ehr.fhirBaseUrl))
      await db.updateTable('app_launch').set({ code_verifier_sealed }).execute()
      await refused(browser, callback, /cannot be continued/, 400)
    })

    it('refuses the state of another browser and still lets the right browser finish (APP-3)', async () => {
      const [victim, attacker] = [new AppBrowser(setup.app), new AppBrowser(setup.app)]
      const callback = await attacker.visitAuthServer(await attacker.begin(setup.ehr.fhirBaseUrl))
      await victim.begin(setup.ehr.fhirBaseUrl)
      await refused(victim, callback, /cannot be continued/, 400)
      assert.equal((await attacker.get(callback)).statusCode, 302)
    })

    it('refuses a replayed callback and leaves the session alone', async () => {
      const browser = new AppBrowser(setup.app)
      const callback = await browser.visitAuthServer(await browser.begin(setup.ehr.fhirBaseUrl))
      const launchCookies = new Map(browser.cookies)
      await browser.get(callback)
      for (const [name, value] of launchCookies) browser.cookies.set(name, value)
      const again = await browser.get(callback)
      assert.equal(again.statusCode, 400)
      assert.equal(setup.ehr.tokenForms.length, 1)
      assert.equal((await browser.get('/api/session')).statusCode, 200)
    })

    it('accepts exactly one of many parallel callbacks (APP-3)', async () => {
      const browser = new AppBrowser(setup.app)
      const callback = await browser.visitAuthServer(await browser.begin(setup.ehr.fhirBaseUrl))
      const cookies = Object.fromEntries(browser.cookies)
      const responses = await Promise.all(
        Array.from({ length: 20 }, () => setup.app.inject({ method: 'GET', url: callback, cookies })),
      )
      assert.equal(responses.filter(({ statusCode }) => statusCode === 302).length, 1)
      assert.equal(setup.ehr.tokenForms.length, 1)
    })

    it('lets two tabs launch at the same time (APP-6)', async () => {
      const browser = new AppBrowser(setup.app)
      const [first, second] = await Promise.all([
        browser.begin(setup.ehr.fhirBaseUrl),
        browser.begin(setup.ehr.fhirBaseUrl),
      ])
      const one = await browser.visitAuthServer(first)
      const two = await browser.visitAuthServer(second)
      assert.equal((await browser.get(two)).statusCode, 302)
      assert.equal((await browser.get(one)).statusCode, 302)
    })

    it('keeps the newest five launches of a browser, in its cookies and in the database (APP-6)', async () => {
      const browser = new AppBrowser(setup.app)
      browser.cookies.set('sallyport-login', 'of the auth server on another port')
      const count = async () => (await setup.store.db.selectFrom('app_launch').selectAll().execute()).length
      const before = await count()
      const begun = []
      for (let at = 0; at < 30; at++) {
        setup.clock.advance(0.001)
        begun.push(await browser.begin(setup.ehr.fhirBaseUrl))
      }
      const pending = [...browser.cookies.keys()].filter(name => name.startsWith('sallyport-app-launch-'))
      assert.equal(pending.length, 5)
      assert.ok(browser.cookies.has('sallyport-login'))
      assert.equal((await count()) - before, 5)
      const [sixth, fifth] = begun.slice(-6)
      assert.ok(sixth && fifth)
      await refused(browser, await browser.visitAuthServer(sixth), /cannot be continued/, 400)
      assert.equal((await browser.get(await browser.visitAuthServer(fifth))).statusCode, 302)
    })

    describe('while strangers have started as many launches as are stored', () => {
      const fill = async (address: string) => {
        const now = setup.clock()
        const network_hash = sha256(findSite(address))
        const lifetime = { created_at: now, expires_at: now + 600_000 }
        const rows = Array.from({ length: 2_000 }, () => ({
          state_hash: randomUUID(),
          browser_hash: randomUUID(),
          network_hash,
          ...lifetime,
          issuer: 'i',
          fhir_base_url: 'f',
          nonce: 'n',
          code_verifier_sealed: 's',
        }))
        for (let at = 0; at < rows.length; at += 500)
          await setup.store.db
            .insertInto('app_launch')
            .values(rows.slice(at, at + 500))
            .execute()
      }
      const count = async () => (await setup.store.db.selectFrom('app_launch').selectAll().execute()).length
      beforeEach(() => fill('127.0.0.1'))
      // The other tests share this store and have their own clocks.
      afterEach(() => setup.store.db.deleteFrom('app_launch').where('issuer', '=', 'i').execute())

      it('stores no more of their network, and launches everybody else (LIMIT-4)', async () => {
        const before = await count()
        const browser = new AppBrowser(setup.app)
        const begun = await browser.begin(setup.ehr.fhirBaseUrl)
        assert.equal(begun.statusCode, 302)
        assert.equal(await count(), before)
        assert.ok((begun.cookies[0]?.value.length ?? 0) < 2_000)
        const opened = await browser.get(await browser.visitAuthServer(begun))
        assert.match(String(opened.headers.location), /^\/s\//)
        assert.equal((await browser.get('/api/session')).statusCode, 200)
      })

      it('stores no more of all networks together, and removes no launch that waits (LIMIT-4)', async () => {
        const waiting = new AppBrowser(setup.app)
        await setup.store.db.deleteFrom('app_launch').where('issuer', '=', 'i').execute()
        const callback = await waiting.visitAuthServer(await waiting.begin(setup.ehr.fhirBaseUrl))
        for (const network of [1, 2, 3, 4, 5]) await fill(`10.7.6.${network}`)
        const before = await count()
        const browser = new AppBrowser(setup.app)
        const begun = await browser.begin(setup.ehr.fhirBaseUrl)
        assert.equal(await count(), before)
        assert.equal((await browser.get(await browser.visitAuthServer(begun))).statusCode, 302)
        assert.equal((await waiting.get(callback)).statusCode, 302)
      })

      it('completes a launch once, in the browser that began it, and within 10 minutes (APP-3)', async () => {
        const [browser, other] = [new AppBrowser(setup.app), new AppBrowser(setup.app)]
        const callback = await browser.visitAuthServer(await browser.begin(setup.ehr.fhirBaseUrl))
        await other.begin(setup.ehr.fhirBaseUrl)
        await refused(other, callback, /cannot be continued/, 400)
        const cookies = Object.fromEntries(browser.cookies)
        const responses = await Promise.all(
          Array.from({ length: 20 }, () => setup.app.inject({ method: 'GET', url: callback, cookies })),
        )
        assert.equal(responses.filter(({ statusCode }) => statusCode === 302).length, 1)
        // The cookie of one launch is worthless under the name of another.
        const second = await browser.visitAuthServer(await browser.begin(setup.ehr.fhirBaseUrl))
        const names = [...browser.cookies.keys()].filter(name => name.startsWith('sallyport-app-launch-'))
        const [value = ''] = other.cookies.values()
        for (const name of names) browser.cookies.set(name, value)
        await refused(browser, second, /cannot be continued/, 400)
        const late = await other.visitAuthServer(await other.begin(setup.ehr.fhirBaseUrl))
        setup.clock.advance(600)
        await refused(other, late, /cannot be continued/, 400)
      })

      it('keeps the newest five launches of a browser (APP-6)', async () => {
        const browser = new AppBrowser(setup.app)
        for (let at = 0; at < 12; at++) await browser.begin(setup.ehr.fhirBaseUrl)
        const last = await browser.begin(setup.ehr.fhirBaseUrl)
        assert.equal(browser.cookies.size, 5)
        assert.equal((await browser.get(await browser.visitAuthServer(last))).statusCode, 302)
      })
    })

    it('makes a browser evict launch cookies before login and session cookies', async () => {
      const browser = new AppBrowser(setup.app)
      const begun = await browser.begin(setup.ehr.fhirBaseUrl)
      assert.match(String(begun.headers['set-cookie']), /^sallyport-app-launch-.*; Priority=Low/)
      const opened = await browser.get(await browser.visitAuthServer(begun))
      assert.match(String(opened.headers['set-cookie']), /sallyport-session-[^;]*;.* Priority=High/)
    })

    it('refuses a launch that took more than 10 minutes (APP-3)', async () => {
      const browser = new AppBrowser(setup.app)
      const callback = await browser.visitAuthServer(await browser.begin(setup.ehr.fhirBaseUrl))
      setup.clock.advance(601)
      await refused(browser, callback, /cannot be continued/, 400)
    })

    it('sends the code only to the auth server that started the launch (APP-3)', async () => {
      const browser = new AppBrowser(setup.app)
      const callback = await browser.visitAuthServer(await browser.begin(setup.ehr.fhirBaseUrl))
      setup.ehr.script.configuration = {
        issuer: 'https://evil.example',
        token_endpoint: 'https://evil.example/token',
      }
      setup.clock.advance(301)
      const response = await browser.get(callback)
      assert.equal(response.statusCode, 502)
      assert.match(response.body, /ISSUER_CHANGED/)
      const check = `smart-configuration issuer is now https://evil.example, expected ${setup.ehr.issuer}`
      assert.equal(setup.log().at(-1)?.check, check)
    })

    it('does not adopt a session id that the browser sends', async () => {
      const browser = new AppBrowser(setup.app)
      const fixed = `sallyport-session-${randomUUID()}`
      browser.cookies.set(fixed, 'fixed-by-an-attacker')
      await browser.launch(setup.ehr.fhirBaseUrl)
      assert.ok(!browser.cookies.has(fixed))
      assert.equal((await browser.get('/api/session')).statusCode, 200)
    })
  })
})
