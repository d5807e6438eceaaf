import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { SigningClient } from '../../testing/signing-client.ts'
import { TestAuthServer } from '../../testing/test-auth-server.ts'
import { openTestStore } from '../../testing/test-store.ts'

const APP = { redirect_uris: ['https://app.example/callback'], scope: 'launch openid patient/*.rs' }

describe('POST /oauth2/register', () => {
  const open = openTestStore()
  let auth: TestAuthServer
  let keys: SigningClient
  before(async () => {
    auth = await TestAuthServer.open(await open())
    keys = new SigningClient('any', auth.time)
  })

  const register = (metadata: unknown, headers: Record<string, string> = {}, on = auth) =>
    on.app.inject({
      method: 'POST',
      url: '/oauth2/register',
      headers: { 'content-type': 'application/json', ...headers },
      payload: typeof metadata === 'string' ? metadata : JSON.stringify(metadata),
    })

  it('issues an id and a secret that a confidential client can use', async () => {
    const response = await register({ ...APP, client_name: 'Growth chart', software_id: 'passed over' })
    assert.equal(response.statusCode, 201, response.body)
    assert.equal(response.headers['cache-control'], 'no-store')
    const body = response.json()
    assert.equal(body.client_name, 'Growth chart')
    assert.equal(body.token_endpoint_auth_method, 'client_secret_basic')
    assert.equal(body.client_secret_expires_at, 0)
    assert.deepEqual(body.grant_types, ['authorization_code'])
    assert.deepEqual(body.redirect_uris, APP.redirect_uris)
    assert.equal('software_id' in body, false)
    const form = { grant_type: 'refresh_token', refresh_token: 'x', client_id: body.client_id }
    const proven = await auth.requestToken({ ...form, client_secret: body.client_secret })
    assert.equal(proven.json().error, 'invalid_grant')
    assert.equal((await auth.requestToken(form)).json().error, 'invalid_client')
  })

  it('refuses a page whose host name resolves to this machine', async () => {
    for (const host of ['evil.example:9000', 'localhost.evil.example:9000'])
      assert.equal((await register(APP, { host })).statusCode, 421, host)
    for (const host of ['localhost:9000', '127.0.0.1:9000', '[::1]:9000'])
      assert.equal((await register(APP, { host })).statusCode, 201, host)
  })

  it('accepts JSON but no form', async () => {
    const response = await auth
      .openBrowser()
      .post('/oauth2/register', 'redirect_uris=https://a.example/&scope=openid')
    assert.equal(response.statusCode, 400)
    assert.equal(response.json().error, 'invalid_request')
  })

  it('registers a public app that needs consent and that the portal can launch', async () => {
    const initiate_login_uri = 'https://app.example/#/launch'
    const { client_id, ...body } = (
      await register({ ...APP, initiate_login_uri, token_endpoint_auth_method: 'none' })
    ).json()
    assert.equal('client_secret' in body, false)
    const browser = await auth.logIn()
    const launch = await auth.launch(browser, { clientId: client_id })
    const asked = await auth.authorize(browser, { launch, client_id, redirect_uri: APP.redirect_uris[0] })
    assert.match(asked.headers.location ?? '', /^\/oauth2\/consent/)
  })

  it('registers a backend service with a key', async () => {
    const { client_id } = (
      await register({
        token_endpoint_auth_method: 'private_key_jwt',
        grant_types: ['client_credentials'],
        scope: 'system/*.rs',
        jwks: { keys: [keys.jwk] },
      })
    ).json()
    const client = new SigningClient(client_id, auth.time)
    const form = { grant_type: 'client_credentials', scope: 'system/Patient.rs', ...client.makeProof() }
    assert.equal((await auth.requestToken(form)).statusCode, 200)
  })

  it('stores only the known members of a key set, and nothing that is too long', async () => {
    const deep = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`
    const metadata = { ...APP, token_endpoint_auth_method: 'private_key_jwt' }
    const put = (text: string, into: object) =>
      register(JSON.stringify({ ...metadata, ...into }).replace('"HERE"', text))
    const { jwks } = (
      await put(deep(400), { jwks: { keys: [{ ...keys.jwk, x5t: 'HERE' }], more: 1 } })
    ).json()
    assert.deepEqual(jwks, { keys: [keys.jwk] })
    const deepest = await put(deep(20_000), { jwks: { keys: [{ ...keys.jwk, x5t: 'HERE' }] } })
    assert.equal(deepest.statusCode, 400)
    const long = await put(`"${'x'.repeat(70_000)}"`, { jwks: { keys: [{ ...keys.jwk, x5t: 'HERE' }] } })
    assert.deepEqual([long.statusCode, long.json().error], [400, 'invalid_client_metadata'])
  })

  it('gives a client without scopes the default scopes of an app or a backend service (CLIENT-4)', async () => {
    const { scope: _, ...app } = APP
    const scopeOf = async (metadata: object) => (await register(metadata)).json().scope
    assert.equal(await scopeOf(app), 'launch launch/patient openid fhirUser patient/*.rs')
    assert.equal(
      await scopeOf({ ...app, grant_types: ['authorization_code', 'refresh_token'] }),
      'launch launch/patient openid fhirUser patient/*.rs online_access offline_access',
    )
    const backEnd = { grant_types: ['client_credentials'], token_endpoint_auth_method: 'private_key_jwt' }
    assert.equal(await scopeOf({ ...backEnd, jwks: { keys: [keys.jwk] } }), 'system/*.rs')
  })

  it('grants system/ scopes off loopback only with the initial access token (CLIENT-4)', async () => {
    const far = await TestAuthServer.open(await open(), {
      settings: { onLoopback: false, openRegistration: true, registrationToken: 'initial-access-token' },
    })
    const backEnd = {
      token_endpoint_auth_method: 'private_key_jwt',
      grant_types: ['client_credentials'],
      scope: 'system/*.rs',
      jwks: { keys: [keys.jwk] },
    }
    const refused = await register(backEnd, {}, far)
    assert.deepEqual([refused.statusCode, refused.json().error], [400, 'invalid_client_metadata'])
    assert.equal((await register(APP, {}, far)).statusCode, 201)
    const authorization = 'Bearer initial-access-token'
    assert.equal((await register(backEnd, { authorization }, far)).statusCode, 201)
  })

  const addresses: Readonly<Record<string, unknown>> = {
    'no redirect address': { scope: 'openid' },
    'a fragment': { ...APP, redirect_uris: ['https://app.example/#x'] },
    'http elsewhere': { ...APP, redirect_uris: ['http://app.example/'] },
    'javascript:': { ...APP, redirect_uris: ['javascript:alert(1)'] },
    'data:': { ...APP, redirect_uris: ['data:text/html,x'] },
    'a relative address': { ...APP, redirect_uris: ['/callback'] },
    'a host that ends a directive': { ...APP, redirect_uris: ['https://a;frame-ancestors/'] },
    'a host that ends a policy': { ...APP, redirect_uris: ['https://a,b/'] },
    'a wildcard host': { ...APP, redirect_uris: ['https://*.example/'] },
    'no list': { ...APP, redirect_uris: 'https://app.example/' },
    'a path that no header can hold': { ...APP, redirect_uris: ['https://app.example/コ'] },
    'a scheme without slashes, which a browser treats as a relative path': {
      ...APP,
      redirect_uris: ['https:app.example/callback'],
    },
    'a backslash': { ...APP, redirect_uris: ['https://app.example\\@evil.example/'] },
    'half of a surrogate pair': { ...APP, post_logout_redirect_uris: ['https://app.example/\ud800'] },
    'a post-logout address with a fragment': { ...APP, post_logout_redirect_uris: ['https://a.example/#'] },
  }
  for (const [name, metadata] of Object.entries(addresses))
    it(`refuses ${name} as invalid_redirect_uri`, async () => {
      const response = await register(metadata)
      assert.equal(response.statusCode, 400)
      assert.equal(response.json().error, 'invalid_redirect_uri')
    })

  it('keeps what the app states about its maker (RFC 7591, 2)', async () => {
    const stated = {
      client_uri: 'https://app.example/',
      policy_uri: 'https://app.example/#privacy',
      tos_uri: 'https://app.example/terms',
      contacts: ['help@app.example'],
    }
    const response = await register({ ...APP, ...stated })
    assert.equal(response.statusCode, 201)
    const { client_uri, policy_uri, tos_uri, contacts } = response.json()
    assert.deepEqual({ client_uri, policy_uri, tos_uri, contacts }, stated)
  })

  const unfit: Readonly<Record<string, unknown>> = {
    'a list': [APP],
    'an unknown method': { ...APP, token_endpoint_auth_method: 'tls_client_auth' },
    'the grant type password': { ...APP, grant_types: ['password'] },
    'the grant type implicit': { ...APP, grant_types: ['implicit'], response_types: ['token'] },
    'client_credentials with a secret': { ...APP, grant_types: ['client_credentials'] },
    'system/ for an app': { ...APP, scope: 'system/*.rs' },
    'a scope of our own': { ...APP, scope: '__launch-contexts.c' },
    'an empty scope': { ...APP, scope: ' ' },
    'a scope of no type': { ...APP, scope: 'patient/Nothing.rs' },
    'keys missing': { ...APP, token_endpoint_auth_method: 'private_key_jwt' },
    'a private key': { ...APP, jwks: { keys: [{ kty: 'RSA', n: 'x', e: 'AQAB', d: 'x', kid: '1' }] } },
    'no usable key': { ...APP, jwks: { keys: [{ kty: 'oct', kid: '1' }] } },
    'keys twice': { ...APP, jwks: { keys: [] }, jwks_uri: 'https://app.example/jwks' },
    'a key set by http': { ...APP, jwks_uri: 'http://app.example/jwks' },
    'a logo with a fragment': { ...APP, logo_uri: 'https://app.example/logo.svg#x' },
    'a logo that is a script': { ...APP, logo_uri: 'javascript:alert(1)' },
    'a logo on a host that ends a directive': { ...APP, logo_uri: 'https://a;frame-ancestors/logo.png' },
    'a website by http': { ...APP, client_uri: 'http://app.example/' },
    'a privacy notice that is a script': { ...APP, policy_uri: 'javascript:alert(1)' },
    'terms with a password': { ...APP, tos_uri: 'https://a:b@app.example/' },
    'a contact that changes the direction of the text': { ...APP, contacts: ['a\u202eb'] },
    'too many contacts': { ...APP, contacts: ['1', '2', '3', '4', '5', '6'] },
    'a launch page on a host that ends a policy': { ...APP, initiate_login_uri: 'https://a,b/launch' },
    'a launch page that no header can hold': { ...APP, initiate_login_uri: 'https://app.example/コ' },
    'a launch page with such a fragment': { ...APP, initiate_login_uri: 'https://app.example/#/コ' },
    'a launch page with a space in its fragment': { ...APP, initiate_login_uri: 'https://app.example/#/a b' },
    'a name that is no text': { ...APP, client_name: 7 },
  }
  for (const [name, metadata] of Object.entries(unfit))
    it(`refuses ${name} as invalid_client_metadata`, async () => {
      const response = await register(metadata)
      assert.equal(response.statusCode, 400, response.body)
      assert.equal(response.json().error, 'invalid_client_metadata')
    })

  it('registers a client as unverified, or as approved with the initial access token (CLIENT-3)', async () => {
    const both = await TestAuthServer.open(await open(), {
      settings: { openRegistration: true, registrationToken: 'initial-access-token' },
    })
    const isApproved = async (headers: Record<string, string>) => {
      const { client_id } = (await register(APP, headers, both)).json()
      const row = both.store.db.selectFrom('client').select('approved').where('client_id', '=', client_id)
      return (await row.executeTakeFirstOrThrow()).approved
    }
    assert.equal(await isApproved({}), false)
    assert.equal(await isApproved({ authorization: 'Bearer initial-access-token' }), true)
  })

  it('never registers a first-party client, nor a client id that the caller chose (CLIENT-3)', async () => {
    const body = (await register({ ...APP, client_id: 'sallyport-portal', first_party: true })).json()
    assert.notEqual(body.client_id, 'sallyport-portal')
    const row = await auth.store.db
      .selectFrom('client')
      .select('first_party')
      .where('client_id', '=', body.client_id)
      .executeTakeFirstOrThrow()
    assert.equal(row.first_party, false)
  })

  it('is closed by default, except with the initial access token (CLIENT-2)', async () => {
    const closed = await TestAuthServer.open(await open(), {
      settings: { openRegistration: false, registrationToken: 'an initial access token' },
    })
    const without = await register(APP, {}, closed)
    assert.equal(without.statusCode, 401)
    assert.match(String(without.headers['www-authenticate']), /^Bearer/)
    const wrong = await register(APP, { authorization: 'Bearer another' }, closed)
    assert.equal(wrong.statusCode, 401)
    const authorization = 'Bearer an initial access token'
    assert.equal((await register(APP, { authorization }, closed)).statusCode, 401, 'a token has no spaces')
  })

  it('accepts the initial access token', async () => {
    const closed = await TestAuthServer.open(await open(), {
      settings: { openRegistration: false, registrationToken: 'initial-access-token' },
    })
    const authorization = 'Bearer initial-access-token'
    assert.equal((await register(APP, { authorization }, closed)).statusCode, 201)
  })

  it('refuses a body that is not JSON', async () => {
    assert.equal((await register('{')).statusCode, 400)
    const form = await auth.openBrowser().post('/oauth2/register', { scope: 'openid' })
    assert.equal(form.statusCode, 400)
  })
})
