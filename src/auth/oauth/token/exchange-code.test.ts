import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { createLocalJWKSet, jwtVerify } from 'jose'
import { eachDatabase } from '../../../../test/support/databases.ts'
import {
  computeChallenge,
  decodeClaims,
  readRedirect,
  TestAuthServer,
  unknownToken,
  VERIFIER,
} from '../../testing/test-auth-server.ts'
import type { TestBrowser } from '../../testing/test-browser.ts'

eachDatabase((_name, open) => {
  describe('exchangeCode', () => {
    let auth: TestAuthServer
    let browser: TestBrowser
    before(async () => {
      auth = await TestAuthServer.open(await open())
      browser = await auth.logIn()
      await auth.addClient({ client_id: 'other', scope: 'launch openid patient/*.rs' })
    })

    it('returns token, scope, patient, encounter and banner (TOKEN-2)', async () => {
      const launch = await auth.launch(browser, { encounterId: 'enc-1' })
      const { code = '' } = readRedirect(await auth.authorize(browser, { launch }))
      const response = await auth.exchange(code)
      const body = response.json()
      assert.equal(response.statusCode, 200)
      assert.equal(response.headers['cache-control'], 'no-store')
      assert.equal(response.headers.pragma, 'no-cache')
      assert.deepEqual(
        { ...body, access_token: '', id_token: '', refresh_token: '', smart_style_url: '' },
        {
          access_token: '',
          id_token: '',
          refresh_token: '',
          token_type: 'Bearer',
          expires_in: 300,
          // The login's 8 hours: no time passes in this test.
          refresh_token_expires_in: 28_800,
          scope: auth.settings.app.scope,
          patient: 'juniper',
          encounter: 'enc-1',
          need_patient_banner: true,
          smart_style_url: '',
          // The audit trail's name of the launch, which the token's own id begins with.
          launch_id: String(decodeClaims(body.access_token).jti).split('.')[0],
        },
      )
    })

    it('signs an access token with the specified claims, and no others (SERVICE-5, TOKEN-3)', async () => {
      const launch = await auth.launch(browser, { encounterId: 'enc-1' })
      const { code = '' } = readRedirect(await auth.authorize(browser, { launch }))
      const { access_token: token } = (await auth.exchange(code)).json()
      const keys = createLocalJWKSet((await browser.get('/oauth2/jwks')).json())
      const { payload, protectedHeader } = await jwtVerify(token, keys, {
        issuer: 'http://localhost:9000',
        audience: 'http://localhost:8080/fhir',
        typ: 'at+jwt',
        algorithms: ['RS256'],
        currentDate: new Date(auth.time.now),
      })
      const { id } = await auth.store.db.selectFrom('clinician').select('id').executeTakeFirstOrThrow()
      assert.equal(typeof protectedHeader.kid, 'string')
      assert.equal(typeof payload.jti, 'string')
      assert.deepEqual(
        { ...payload, jti: '' },
        {
          iss: 'http://localhost:9000',
          sub: id,
          aud: 'http://localhost:8080/fhir',
          client_id: 'sallyport-app',
          scope: auth.settings.app.scope,
          jti: '',
          iat: auth.time.now / 1000,
          exp: auth.time.now / 1000 + 300,
          patient: 'juniper',
          encounter: 'enc-1',
          fhirUser: 'http://localhost:8080/fhir/Practitioner/practitioner-1',
        },
      )
    })

    it('signs an ID token for the client, with nonce, name and absolute fhirUser (TOKEN-4)', async () => {
      const { id_token: token } = (await auth.exchange(await auth.getCode(browser))).json()
      const claims = decodeClaims(token)
      assert.equal(claims.aud, 'sallyport-app')
      assert.equal(claims.nonce, 'nonce-1')
      assert.equal(claims.name, 'Dr. Robin Ahmadi')
      assert.equal(claims.fhirUser, 'http://localhost:8080/fhir/Practitioner/practitioner-1')
      assert.equal(claims.auth_time, auth.time.now / 1000)
    })

    it('omits encounter, refresh_token and id_token if they do not apply (TOKEN-2)', async () => {
      const scope = 'launch patient/Patient.rs'
      const body = (await auth.exchange(await auth.getCode(browser, { scope }))).json()
      assert.equal(body.scope, scope)
      for (const name of ['encounter', 'refresh_token', 'id_token']) assert.equal(name in body, false, name)
      assert.equal('fhirUser' in decodeClaims(body.access_token), false)
    })

    it('revokes the whole grant if a code is used again (TOKEN-5)', async () => {
      const code = await auth.getCode(browser)
      const { refresh_token: token } = (await auth.exchange(code)).json()
      const again = await auth.exchange(code)
      assert.equal(again.statusCode, 400)
      assert.equal(again.json().error, 'invalid_grant')
      assert.equal((await auth.refresh(token)).json().error, 'invalid_grant')
    })

    it('succeeds for exactly one of 50 concurrent exchanges', async () => {
      const code = await auth.getCode(browser)
      const responses = await Promise.all(Array.from({ length: 50 }, () => auth.exchange(code)))
      const won = responses.filter(response => response.statusCode === 200)
      const lost = responses.filter(response => response.statusCode === 400)
      assert.deepEqual([won.length, lost.length], [1, 49])
      assert.ok(lost.every(response => response.json().error === 'invalid_grant'))
    })

    it('refuses a code after 60 seconds (TOKEN-5)', async () => {
      const [late, inTime] = [await auth.getCode(browser), await auth.getCode(browser)]
      auth.time.now += 59_999
      assert.equal((await auth.exchange(inTime)).statusCode, 200)
      auth.time.now += 1
      assert.equal((await auth.exchange(late)).json().error, 'invalid_grant')
    })

    it('refuses a code with another client, redirect URI or verifier, and keeps it valid for the right one (TOKEN-5)', async () => {
      const code = await auth.getCode(browser)
      const cases: readonly Readonly<Record<string, string>>[] = [
        { client_id: 'other' },
        { redirect_uri: 'http://localhost:8081/callback/' },
        { code_verifier: `${VERIFIER}x` },
        { code_verifier: computeChallenge(VERIFIER) },
        { code_verifier: 'short' },
        { code: unknownToken },
      ]
      for (const different of cases) {
        const response = await auth.exchange(code, different)
        assert.equal(response.statusCode, 400, JSON.stringify(different))
        assert.equal(response.json().error, 'invalid_grant', JSON.stringify(different))
      }
      assert.equal((await auth.exchange(code)).statusCode, 200)
    })

    it('refuses a request without code, redirect_uri or code_verifier', async () => {
      const code = await auth.getCode(browser)
      for (const name of ['code', 'redirect_uri', 'code_verifier']) {
        const response = await auth.exchange(code, { [name]: '' })
        assert.equal(response.statusCode, 400, name)
        assert.equal(response.json().error, 'invalid_request', name)
      }
    })

    it('refuses a code of a clinician who logged out or was disabled', async () => {
      await auth.addUser('leaving')
      const leaving = await auth.logIn('leaving')
      const code = await auth.getCode(leaving)
      await leaving.post('/logout', {})
      assert.equal((await auth.exchange(code)).json().error, 'invalid_grant')

      await leaving.login('leaving')
      const second = await auth.getCode(leaving)
      const disable = auth.store.db.updateTable('clinician').set({ disabled: true })
      await disable.where('username', '=', 'leaving').execute()
      assert.equal((await auth.exchange(second)).json().error, 'invalid_grant')
    })

    it('stores no readable code, token or secret in the database (TOKEN-6)', async () => {
      const launch = await auth.launch(browser)
      const { code = '' } = readRedirect(await auth.authorize(browser, { launch }))
      const { refresh_token: token } = (await auth.exchange(code)).json()
      const tables = ['launch_token', 'authorization_code', 'refresh_token', 'login', 'grant'] as const
      const rows = await Promise.all(
        tables.map(table => auth.store.db.selectFrom(table).selectAll().execute()),
      )
      const text = JSON.stringify(rows)
      for (const secret of [launch, code, token, ...browser.cookies.values()])
        assert.equal(text.includes(secret), false)
    })
  })
})
