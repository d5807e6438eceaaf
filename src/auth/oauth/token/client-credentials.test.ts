import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { sha256 } from '../../../store/index.ts'
import { SigningClient } from '../../testing/signing-client.ts'
import { decodeClaims, TestAuthServer } from '../../testing/test-auth-server.ts'
import { openTestStore } from '../../testing/test-store.ts'
import { makeClientTokenPrefix, revokeTokens } from '../revoked-tokens.ts'

describe('client_credentials', () => {
  const open = openTestStore()
  let auth: TestAuthServer
  let backEnd: SigningClient
  before(async () => {
    auth = await TestAuthServer.open(await open())
    backEnd = new SigningClient('back-end', auth.time)
    await auth.addClient({
      client_id: 'back-end',
      auth_method: 'private_key_jwt',
      jwks: backEnd.jwks,
      scope:
        'openid offline_access system/*.rs system/Condition.cruds patient/*.rs user/*.rs __launch-contexts.c',
    })
  })
  const ask = (scope: string | undefined) =>
    auth.requestToken({
      grant_type: 'client_credentials',
      ...(scope === undefined ? {} : { scope }),
      ...backEnd.makeProof(),
    })

  it('issues a token for 300 s, with the granted scope and no refresh token (TOKEN-8)', async () => {
    const response = await ask('system/Patient.rs')
    assert.equal(response.statusCode, 200, response.body)
    const body = response.json()
    assert.deepEqual(Object.keys(body).sort(), ['access_token', 'expires_in', 'scope', 'token_type'])
    assert.equal(body.token_type, 'Bearer')
    assert.equal(body.expires_in, 300)
    assert.equal(body.scope, 'system/Patient.rs')
    assert.equal(response.headers['cache-control'], 'no-store')
    assert.equal(response.headers.pragma, 'no-cache')
    const claims = decodeClaims(body.access_token)
    assert.equal(claims.sub, 'back-end')
    assert.equal(claims.client_id, 'back-end')
    assert.equal(claims.aud, auth.settings.fhirBaseUrl)
    assert.equal(claims.scope, 'system/Patient.rs')
    assert.equal(Number(claims.exp) - Number(claims.iat), 300)
    assert.equal('patient' in claims || 'fhirUser' in claims, false)
  })

  it('revokes the tokens with their client, and not those of a later client with the same id', async () => {
    const token = (await ask('__launch-contexts.c')).json().access_token
    const knock = () => auth.openBrowser().post('/launch-contexts', '', { authorization: `Bearer ${token}` })
    const end = (createdAt: number) =>
      revokeTokens(
        auth.store.db,
        makeClientTokenPrefix({ id: 'back-end', createdAt }),
        auth.time.now,
        auth.time.now + 1,
      )
    await end(auth.time.now - 1)
    assert.equal((await knock()).statusCode, 400)
    await end(auth.time.now)
    assert.equal((await knock()).statusCode, 401)
    await auth.store.db.deleteFrom('revocation').execute()
  })

  it('limits the lifetime to 300 s, or to a shorter configured lifetime', async () => {
    for (const [ttl, expected] of [
      [3600, 300],
      [60, 60],
    ] as const) {
      const other = await TestAuthServer.open(await open(), { settings: { accessTokenTtlSeconds: ttl } })
      const client = new SigningClient('b', other.time)
      await other.addClient({
        client_id: 'b',
        auth_method: 'private_key_jwt',
        jwks: client.jwks,
        scope: 'system/*.rs',
      })
      const form = { grant_type: 'client_credentials', scope: 'system/*.rs', ...client.makeProof() }
      assert.equal((await other.requestToken(form)).json().expires_in, expected)
    }
  })

  const granted: readonly (readonly [asked: string, granted: string])[] = [
    ['system/Patient.cruds', 'system/Patient.rs'],
    ['system/*.cruds', 'system/*.rs system/Condition.cruds'],
    ['system/Patient.read', 'system/Patient.read'],
    ['system/patient.rs', 'system/Patient.rs'],
    ['system/Patient.rs openid offline_access patient/*.rs user/*.rs', 'system/Patient.rs'],
    ['system/Nothing.rs system/Patient.r', 'system/Patient.r'],
    ['__launch-contexts.c', '__launch-contexts.c'],
  ]
  for (const [asked, expected] of granted)
    it(`grants ${expected} of ${asked}`, async () => {
      assert.equal((await ask(asked)).json().scope, expected)
    })

  for (const asked of [
    undefined,
    'patient/*.rs',
    'user/Patient.rs',
    'openid',
    'system/Patient.c',
    'nonsense',
    '__x',
  ])
    it(`refuses ${asked ?? 'no scope'} as invalid_scope (TOKEN-8)`, async () => {
      const response = await ask(asked)
      assert.equal(response.statusCode, 400)
      assert.equal(response.json().error, 'invalid_scope')
    })

  it('refuses a client with a secret, and a public client (TOKEN-8)', async () => {
    const secret = { auth_method: 'client_secret', secret_hash: sha256('s') } as const
    await auth.addClient({ client_id: 'secret', ...secret, scope: 'system/*.rs' })
    await auth.addClient({ client_id: 'public', scope: 'system/*.rs' })
    for (const client of [{ client_id: 'secret', client_secret: 's' }, { client_id: 'public' }]) {
      const response = await auth.requestToken({
        grant_type: 'client_credentials',
        scope: 'system/*.rs',
        ...client,
      })
      assert.equal(response.statusCode, 400)
      assert.equal(response.json().error, 'unauthorized_client')
    }
  })

  it('grants no system/ scope if the FHIR server does not honour it', async () => {
    const fhir = { ...auth.settings.fhir, scopeContexts: ['patient', 'user'] as const }
    const other = await TestAuthServer.open(await open(), { settings: { fhir } })
    const client = new SigningClient('b', other.time)
    await other.addClient({
      client_id: 'b',
      auth_method: 'private_key_jwt',
      jwks: client.jwks,
      scope: 'system/*.rs',
    })
    const form = { grant_type: 'client_credentials', scope: 'system/*.rs', ...client.makeProof() }
    assert.equal((await other.requestToken(form)).json().error, 'invalid_scope')
  })

  describe('of a client of the administration API', () => {
    const admin = { client_id: 'console', client_secret: 's' }
    before(() =>
      auth.addClient({
        client_id: 'console',
        auth_method: 'client_secret',
        secret_hash: sha256('s'),
        scope: 'sallyport/admin',
        redirect_uris: '[]',
        launch_url: null,
      }),
    )
    const request = (scope: string, client: Record<string, string> = admin) =>
      auth.requestToken({ grant_type: 'client_credentials', scope, ...client })

    it('issue a token for the auth server alone, for 300 s (ADMIN-1)', async () => {
      const { access_token, expires_in, scope } = (await request('sallyport/admin')).json()
      assert.deepEqual([expires_in, scope], [300, 'sallyport/admin'])
      const claims = decodeClaims(access_token)
      assert.deepEqual([claims.aud, claims.sub], [auth.settings.issuerUrl, 'console'])
      const headers = { authorization: `Bearer ${access_token}` }
      assert.equal((await auth.app.inject({ url: '/oauth2/userinfo', headers })).statusCode, 401)
    })

    it('grant the scope only to that client, only with authentication, and only alone (ADMIN-1)', async () => {
      await auth.addClient({ client_id: 'open', scope: 'sallyport/admin' })
      const backend = { ...backEnd.makeProof() }
      for (const [scope, client] of [
        ['sallyport/admin', { client_id: 'open' }],
        ['sallyport/admin', { client_id: 'console', client_secret: 'wrong' }],
        ['sallyport/admin', backend],
        ['sallyport/admin system/*.rs', admin],
        ['system/*.rs', admin],
      ] as const)
        assert.notEqual((await request(scope, client)).statusCode, 200, scope)
    })

    it('refuse another scope by naming the one that the client has (ADMIN-1)', async () => {
      await auth.addClient({
        client_id: 'siem',
        auth_method: 'client_secret',
        secret_hash: sha256('s'),
        scope: 'sallyport/admin.read',
      })
      const reader = { client_id: 'siem', client_secret: 's' }
      const refused = await request('sallyport/admin', reader)
      assert.deepEqual(
        [refused.statusCode, refused.json().error, refused.json().error_description],
        [400, 'invalid_scope', 'This client may request sallyport/admin.read only.'],
      )
      assert.equal((await request('sallyport/admin.read', reader)).statusCode, 200)
    })
  })
})
