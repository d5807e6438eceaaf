import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { sha256 } from '../../store/index.ts'
import { createLogger } from '../../web/http/index.ts'
import { SigningClient } from '../testing/signing-client.ts'
import { decodeClaims, TestAuthServer, unknownToken } from '../testing/test-auth-server.ts'
import { TestBrowser } from '../testing/test-browser.ts'
import { openTestStore } from '../testing/test-store.ts'

const SCOPE = 'launch openid fhirUser offline_access patient/*.rs'

describe('POST /oauth2/introspect', () => {
  const open = openTestStore()
  let auth: TestAuthServer
  let backEnd: SigningClient
  const log: string[] = []
  const checksIn = (lines: readonly string[]) => lines.flatMap(line => JSON.parse(line).check ?? [])
  before(async () => {
    const logger = createLogger({ level: 'info', destination: { write: line => log.push(line) } })
    auth = await TestAuthServer.open(await open(), { logger })
    backEnd = new SigningClient('back-end', auth.time)
    const secret = { auth_method: 'client_secret', secret_hash: sha256('s') } as const
    for (const id of ['app', 'other']) await auth.addClient({ client_id: id, ...secret })
    await auth.addClient({
      client_id: 'back-end',
      auth_method: 'private_key_jwt',
      jwks: backEnd.jwks,
      scope: 'system/*.cruds',
    })
  })

  const basic = (id: string) => ({ authorization: `Basic ${Buffer.from(`${id}:s`).toString('base64')}` })
  const ask = (token: string, headers: Record<string, string>, form: Record<string, string> = {}) =>
    new TestBrowser(auth.app).post('/oauth2/introspect', { token, ...form }, headers)
  const system = async (scope: string) => {
    const form = { grant_type: 'client_credentials', scope, ...backEnd.makeProof() }
    return String((await auth.requestToken(form)).json().access_token)
  }
  async function requestTokens(encounterId?: string, client_id = 'app') {
    const redirect_uri = `https://${client_id}.example/callback`
    const browser = await auth.logIn()
    const form = { clientId: client_id, ...(encounterId ? { encounterId } : {}) }
    const launch = await auth.launch(browser, form)
    const code = new URL(
      (await auth.authorize(browser, { launch, client_id, redirect_uri, scope: SCOPE })).headers.location ??
        '',
    ).searchParams.get('code')
    const response = await auth.exchange(String(code), {
      client_id,
      redirect_uri,
      client_secret: 's',
    })
    assert.equal(response.statusCode, 200, response.body)
    return response.json()
  }

  it('logs which check the token or the caller failed', async () => {
    const { access_token: token } = await requestTokens()
    log.length = 0
    await ask(token, basic('other'))
    await ask(unknownToken, basic('app'))
    await ask(token, { authorization: `Bearer ${unknownToken}` })
    assert.deepEqual(checksIn(log), [
      'client_id, the token belongs to another client',
      'it is not an access token that this server signed, and it is not an active refresh token',
      'invalid-token',
    ])
    assert.ok(!log.join('').includes(token))
  })

  it("describes a confidential client's own access token, with the launch context of the token response (INTROSPECT-1)", async () => {
    const tokens = await requestTokens('enc-1')
    const response = await ask(tokens.access_token, basic('app'))
    assert.equal(response.statusCode, 200)
    assert.equal(response.headers['cache-control'], 'no-store')
    const claims = decodeClaims(tokens.access_token)
    const {
      access_token: _,
      refresh_token: __,
      id_token: ___,
      expires_in: ____,
      launch_id: _____,
      ...context
    } = tokens
    assert.deepEqual(response.json(), {
      active: true,
      ...context,
      token_type: 'Bearer',
      client_id: 'app',
      iss: 'http://localhost:9000',
      aud: auth.settings.fhirBaseUrl,
      sub: claims.sub,
      jti: claims.jti,
      iat: claims.iat,
      exp: claims.exp,
      fhirUser: claims.fhirUser,
      amr: ['pwd'],
      auth_time: claims.iat,
    })
    assert.equal(response.json().patient, 'juniper')
    assert.equal(response.json().encounter, 'enc-1')
    assert.equal(response.json().need_patient_banner, true)
  })

  it('describes its refresh token until it is used', async () => {
    const { refresh_token: token } = await requestTokens()
    const body = (await ask(token, basic('app'), { token_type_hint: 'refresh_token' })).json()
    assert.equal(body.active, true)
    assert.equal(body.scope, SCOPE)
    assert.equal(body.patient, 'juniper')
    assert.equal(typeof body.exp, 'number')
    await auth.refresh(token, { client_id: 'app', client_secret: 's' })
    assert.deepEqual((await ask(token, basic('app'))).json(), { active: false })
  })

  it('is exactly {"active":false} for a token that is inactive or belongs to another client (INTROSPECT-2)', async () => {
    const tokens = await requestTokens()
    const [header = '', payload = ''] = tokens.access_token.split('.')
    for (const [token, client] of [
      [tokens.access_token, 'other'],
      [tokens.refresh_token, 'other'],
      [tokens.id_token, 'app'],
      [unknownToken, 'app'],
      ['nonsense', 'app'],
      [`${header}.${payload}.AAAA`, 'app'],
      [await system('system/*.rs'), 'app'],
    ])
      assert.equal((await ask(token, basic(client))).body, '{"active":false}')
    auth.time.now += 300_000
    assert.equal((await ask(tokens.access_token, basic('app'))).body, '{"active":false}')
  })

  it('is inactive for a token whose grant was revoked, even if the client has the id of the clinician (INTROSPECT-2)', async () => {
    const { id } = await auth.store.db.selectFrom('clinician').select('id').executeTakeFirstOrThrow()
    await auth.addClient({ client_id: id, auth_method: 'client_secret', secret_hash: sha256('s') })
    const { access_token: token, refresh_token } = await requestTokens(undefined, id)
    assert.equal(decodeClaims(token).sub, id)
    assert.equal((await ask(token, basic(id))).json().active, true)
    await new TestBrowser(auth.app).post('/oauth2/revoke', { token: refresh_token }, basic(id))
    assert.deepEqual((await ask(token, basic(id))).json(), { active: false })
  })

  it('describes any access token, but no refresh token, to a bearer token with a system/ read scope (INTROSPECT-1)', async () => {
    const tokens = await requestTokens()
    const bearer = { authorization: `Bearer ${await system('system/Patient.r')}` }
    assert.equal((await ask(tokens.access_token, bearer)).json().client_id, 'app')
    for (const form of [{}, { token_type_hint: 'refresh_token' }])
      assert.equal((await ask(tokens.refresh_token, bearer, form)).body, '{"active":false}')
    const all = { authorization: `Bearer ${await system('system/*.cruds')}` }
    assert.equal((await ask(tokens.refresh_token, all)).body, '{"active":false}')
    const own = (await ask(await system('system/Patient.r'), bearer)).json()
    assert.equal(own.sub, 'back-end')
    assert.equal(own.scope, 'system/Patient.r')
    assert.equal('patient' in own, false)
  })

  it('refuses other callers with 401 (INTROSPECT-1)', async () => {
    const tokens = await requestTokens()
    const token = tokens.access_token
    const expired = await system('system/*.rs')
    auth.time.now += 301_000
    const refused: readonly (readonly [Record<string, string>, Record<string, string>])[] = [
      [{}, {}],
      [{ client_id: 'sallyport-app' }, {}],
      [{}, { authorization: `Basic ${Buffer.from('app:wrong').toString('base64')}` }],
      [{}, { authorization: `Bearer ${(await requestTokens()).access_token}` }],
      [{}, { authorization: `Bearer ${await system('system/Patient.c')}` }],
      [{}, { authorization: `Bearer ${expired}` }],
      [{}, { authorization: 'Bearer nonsense' }],
    ]
    for (const [form, headers] of refused) {
      const response = await ask(token, headers, form)
      assert.equal(response.statusCode, 401, JSON.stringify(headers))
      assert.ok(response.headers['www-authenticate'])
      assert.equal('active' in response.json(), false)
    }
  })

  it('requires a form with a token', async () => {
    const response = await new TestBrowser(auth.app).post('/oauth2/introspect', {}, basic('app'))
    assert.equal(response.json().error, 'invalid_request')
    const json = await auth.app.inject({
      method: 'POST',
      url: '/oauth2/introspect',
      headers: { ...basic('app'), 'content-type': 'application/json' },
      payload: '{"token":"x"}',
    })
    assert.equal(json.statusCode, 400)
  })
})
