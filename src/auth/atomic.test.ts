import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type { LightMyRequestResponse } from 'fastify'
import { eachDatabase } from '../../test/support/databases.ts'
import { createAuditor } from '../audit/index.ts'
import { refuseRecords } from '../audit/testing/audited-fhir.ts'
import { sha256 } from '../store/index.ts'
import { readForm } from './testing/read-form.ts'
import { SigningClient } from './testing/signing-client.ts'
import { TestAuthServer } from './testing/test-auth-server.ts'
import type { TestBrowser } from './testing/test-browser.ts'

const TABLES = [
  'authorization_code',
  'authorization_request',
  'client',
  'grant',
  'launch_token',
  'login',
  'login_failure',
  'refresh_token',
  'revocation',
  'used_assertion',
] as const

type Send = () => Promise<LightMyRequestResponse>

eachDatabase((_name, open) => {
  describe('a request whose audit record cannot be written', () => {
    let auth: TestAuthServer
    let clinician: TestBrowser
    before(async () => {
      const store = await open()
      auth = await TestAuthServer.open(store, { audit: createAuditor({ store }) })
      clinician = await auth.logIn()
      await auth.addClient({ client_id: 'asking', first_party: false, scope: 'launch openid patient/*.rs' })
      const back = new SigningClient('back-end', auth.time)
      await auth.addClient({
        client_id: back.id,
        auth_method: 'private_key_jwt',
        jwks: back.jwks,
        scope: 'system/*.rs __launch-contexts.c',
      })
    })

    const content = (...except: readonly (typeof TABLES)[number][]) =>
      Promise.all(
        TABLES.filter(table => !except.includes(table)).map(async table =>
          auth.store.db.selectFrom(table).selectAll().execute(),
        ),
      )

    const backEnd = (scope: string) => {
      const proof = new SigningClient('back-end', auth.time).makeProof()
      return () => auth.requestToken({ grant_type: 'client_credentials', scope, ...proof })
    }
    const refreshToken = async () => (await auth.exchange(await auth.getCode(clinician))).json().refresh_token
    /** A browser on the consent page, and the form that it sends from there. */
    const consentForm = async () => {
      const asked = await auth.authorize(clinician, {
        client_id: 'asking',
        redirect_uri: 'https://asking.example/callback',
        scope: 'launch openid patient/Patient.rs',
        launch: await auth.launch(clinician, { clientId: 'asking' }),
      })
      return readForm((await clinician.get(asked.headers.location ?? '')).body)
    }

    /** A request, and the status that it has when its record can be kept. */
    const requests: Readonly<Record<string, () => Promise<readonly [send: Send, status: number]>>> = {
      'a code exchange': async () => {
        const code = await auth.getCode(clinician)
        return [() => auth.exchange(code), 200]
      },
      'a refresh': async () => {
        const token = await refreshToken()
        return [() => auth.refresh(token), 200]
      },
      'client credentials': async () => [backEnd('system/Patient.rs'), 200],
      'an authorization': async () => {
        const launch = await auth.launch(clinician)
        return [() => auth.authorize(clinician, { launch }), 302]
      },
      'a consent': async () => {
        const form = await consentForm()
        return [() => clinician.post('/oauth2/consent', `${form}&decision=allow`), 302]
      },
      'a refused consent': async () => {
        const form = await consentForm()
        return [() => clinician.post('/oauth2/consent', `${form}&decision=deny`), 302]
      },
      'a launch': async () => [() => clinician.post('/portal/launch', { patientId: 'juniper' }), 302],
      'a launch by an EHR': async () => {
        const { access_token } = (await backEnd('__launch-contexts.c')()).json()
        const order = { username: 'clinician', client_id: 'sallyport-app', patient: 'juniper' }
        return [
          () =>
            auth.app.inject({
              method: 'POST',
              url: '/launch-contexts',
              payload: order,
              headers: { authorization: `Bearer ${access_token}` },
            }),
          201,
        ]
      },
      'a login': async () => {
        const browser = auth.openBrowser()
        return [() => browser.login(), 302]
      },
      'a failed login': async () => {
        const browser = auth.openBrowser()
        return [() => browser.login('clinician', 'wrong'), 401]
      },
      'a revocation': async () => {
        const token = await refreshToken()
        const form = { token, client_id: 'sallyport-app' }
        return [() => auth.openBrowser().post('/oauth2/revoke', form), 200]
      },
      'a revocation of an access token': async () => {
        const proof = new SigningClient('back-end', auth.time).makeProof()
        const token: string = (await backEnd('system/Patient.rs')()).json().access_token
        return [() => auth.openBrowser().post('/oauth2/revoke', { token, ...proof }), 200]
      },
      'access taken back': async () => {
        await refreshToken()
        return [() => clinician.post('/manage/remove', { client: 'sallyport-app' }), 303]
      },
      'a registration': async () => {
        const payload = { redirect_uris: ['https://new.example/callback'], scope: 'openid' }
        const headers = { host: 'localhost:9000' }
        return [() => auth.app.inject({ method: 'POST', url: '/oauth2/register', payload, headers }), 201]
      },
      'a logout': async () => {
        const browser = await auth.logIn()
        return [() => browser.post('/logout', {}), 302]
      },
      'the end of a session': async () => {
        const browser = await auth.logIn()
        return [() => browser.post('/oauth2/logout/confirm', {}), 302]
      },
    }

    for (const [name, prepare] of Object.entries(requests))
      it(`changes nothing and can be repeated: ${name} (AUDIT-8)`, async () => {
        const [send, status] = await prepare()
        // Each comparison of a password is a guess, and is counted.
        const except = name === 'a failed login' ? (['login_failure'] as const) : []
        const kept = await content(...except)
        const allow = await refuseRecords(auth.store)
        const refused = await send().finally(allow)
        assert.equal(refused.statusCode, 503)
        assert.ok(refused.headers['retry-after'])
        assert.deepEqual(refused.headers['set-cookie'], undefined)
        assert.deepEqual(await content(...except), kept)
        // Later than any window in which a repetition is forgiven.
        auth.time.now += 30_000
        assert.equal((await send()).statusCode, status)
      })

    it('does not revoke the grant if the client repeats the refresh later (AUDIT-8)', async () => {
      const token = await refreshToken()
      const allow = await refuseRecords(auth.store)
      for (let times = 0; times < 3; times++) assert.equal((await auth.refresh(token)).statusCode, 503)
      await allow()
      auth.time.now += 30_000
      const renewed = await auth.refresh(token)
      assert.equal(renewed.statusCode, 200)
      assert.equal((await auth.refresh(renewed.json().refresh_token)).statusCode, 200)
      const grant = await auth.store.db
        .selectFrom('refresh_token')
        .innerJoin('grant', 'grant.id', 'refresh_token.grant_id')
        .select('revoked_at')
        .where('token_hash', '=', sha256(token))
        .executeTakeFirst()
      assert.deepEqual(grant, { revoked_at: null })
    })

    it('is served if the settings allow it', async () => {
      const store = await open()
      const lenient = await TestAuthServer.open(store, { audit: createAuditor({ store, failure: 'allow' }) })
      await refuseRecords(store)
      const browser = await lenient.logIn()
      const code = await lenient.getCode(browser)
      assert.equal((await lenient.exchange(code)).statusCode, 200)
      assert.equal((await lenient.exchange(code)).statusCode, 400)
    })
  })
})
