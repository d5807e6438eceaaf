import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { sha256 } from '../../../store/index.ts'
import { TestAuthServer } from '../../testing/test-auth-server.ts'
import { openTestStore } from '../../testing/test-store.ts'

describe('POST /oauth2/token', () => {
  const open = openTestStore()
  let auth: TestAuthServer
  before(async () => {
    auth = await TestAuthServer.open(await open())
    await auth.addClient({
      client_id: 'secret:ive',
      auth_method: 'client_secret',
      secret_hash: sha256('s+cret %'),
    })
    await auth.addClient({ client_id: 'keyed', auth_method: 'private_key_jwt' })
  })

  const basic = (id: string, secret: string) => ({
    authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`,
  })
  // The client is authenticated before the token is checked: an authenticated client gets `invalid_grant`.
  const form = { grant_type: 'refresh_token', refresh_token: 'nothing' }
  const encoded = basic('secret%3Aive', 's%2Bcret+%25')

  const proven: readonly (readonly [string, Record<string, string>, Record<string, string>])[] = [
    ['a public client by client_id', { client_id: 'sallyport-app' }, {}],
    ['a secret in a Basic header, form-encoded', {}, encoded],
    ['a Basic header with the same client_id beside it', { client_id: 'secret:ive' }, encoded],
    ['a secret in the form', { client_id: 'secret:ive', client_secret: 's+cret %' }, {}],
  ]
  for (const [name, more, headers] of proven) {
    it(`accepts ${name} (CLIENT-5)`, async () => {
      const response = await auth.requestToken({ ...form, ...more }, headers)
      assert.equal(response.statusCode, 400)
      assert.equal(response.json().error, 'invalid_grant')
    })
  }

  const unproven: readonly (readonly [string, Record<string, string>, Record<string, string>])[] = [
    ['no client', {}, {}],
    ['an unknown client', { client_id: 'nobody' }, {}],
    ['a wrong secret in the form', { client_id: 'secret:ive', client_secret: 'wrong' }, {}],
    ['a wrong secret in a Basic header', {}, basic('secret%3Aive', 'wrong')],
    ['a confidential client without a secret', { client_id: 'secret:ive' }, {}],
    ['a public client with a secret', { client_id: 'sallyport-app', client_secret: 'x' }, {}],
    ['a Basic header that is not base64', {}, { authorization: 'Basic ###' }],
    ['a Basic header without a colon', {}, { authorization: 'Basic YWJj' }],
    ['a Basic header with a broken escape', {}, basic('secret%3Aive', '%zz')],
    ['a Bearer header', {}, { authorization: 'Bearer abc' }],
    ['a client that must use private_key_jwt', { client_id: 'keyed' }, {}],
    [
      'an assertion that is no JWT',
      {
        client_assertion: 'x.y.z',
        client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
      },
      {},
    ],
  ]
  for (const [name, more, headers] of unproven) {
    it(`refuses ${name} (TOKEN-1)`, async () => {
      const response = await auth.requestToken({ ...form, ...more }, headers)
      assert.equal(response.statusCode, 401)
      assert.equal(response.json().error, 'invalid_client')
      assert.match(String(response.headers['www-authenticate']), /^Basic realm=/)
      assert.equal(response.headers['cache-control'], 'no-store')
      assert.equal(response.headers.pragma, 'no-cache')
    })
  }

  it('does not distinguish an unknown client from a wrong secret (CLIENT-5)', async () => {
    const unknown = await auth.requestToken({ ...form, client_id: 'nobody', client_secret: 'x' })
    const wrong = await auth.requestToken({ ...form, client_id: 'secret:ive', client_secret: 'x' })
    assert.deepEqual(unknown.json(), wrong.json())
  })

  it('refuses two authentication methods, and two different client ids (CLIENT-5)', async () => {
    const both = await auth.requestToken({ ...form, client_secret: 's+cret %' }, encoded)
    assert.equal(both.json().error, 'invalid_request')
    const different = await auth.requestToken({ ...form, client_id: 'sallyport-app' }, encoded)
    assert.equal(different.json().error, 'invalid_request')
  })

  it('refuses repeated parameters, and parameters with a NUL', async () => {
    for (const body of [
      'grant_type=refresh_token&grant_type=refresh_token&client_id=sallyport-app&refresh_token=x',
      'grant_type=refresh_token&client_id=sallyport-app&client_id=sallyport-app&refresh_token=x',
      'grant_type=refresh_token&client_id=sallyport-app%00&refresh_token=x',
    ]) {
      const response = await auth.openBrowser().post('/oauth2/token', body)
      assert.equal(response.statusCode, 400, body)
      assert.equal(response.json().error, 'invalid_request')
    }
  })

  it('refuses a missing or unknown grant type', async () => {
    const client = { client_id: 'sallyport-app' }
    assert.equal((await auth.requestToken(client)).json().error, 'invalid_request')
    for (const type of ['password', 'implicit', 'toString', '__proto__'])
      assert.equal(
        (await auth.requestToken({ ...client, grant_type: type })).json().error,
        'unsupported_grant_type',
        type,
      )
  })

  it('accepts only forms (TOKEN-1)', async () => {
    const payload = JSON.stringify({ ...form, client_id: 'sallyport-app' })
    for (const type of [
      'application/json',
      'text/plain',
      'application/x-www-form-urlencodedish',
      undefined,
    ]) {
      const response = await auth.app.inject({
        method: 'POST',
        url: '/oauth2/token',
        payload: type === 'application/x-www-form-urlencodedish' ? 'a=b' : payload,
        headers: type === undefined ? {} : { 'content-type': type },
      })
      assert.ok([400, 415].includes(response.statusCode), `${type}: ${response.statusCode}`)
      assert.equal(response.json().error, 'invalid_request')
      assert.equal(response.headers['cache-control'], 'no-store')
    }
  })

  it('responds to a body over the limit with 413 and an OAuth error', async () => {
    const response = await auth.requestToken({
      ...form,
      client_id: 'sallyport-app',
      more: 'x'.repeat(70_000),
    })
    assert.equal(response.statusCode, 413)
    assert.equal(response.json().error, 'invalid_request')
  })

  it('accepts a cross-site request, because it uses no cookie', async () => {
    const headers = { origin: 'http://localhost:8081', 'sec-fetch-site': 'same-site' }
    const response = await auth.requestToken({ ...form, client_id: 'sallyport-app' }, headers)
    assert.equal(response.json().error, 'invalid_grant')
  })

  it('allows browser apps to read responses from their registered origins only, including errors (TOKEN-7)', async () => {
    const ask = async (origin: string, client_id: string) => {
      const response = await auth.requestToken({ ...form, client_id }, { origin })
      assert.equal(response.headers.vary, 'Origin')
      assert.equal(response.headers['access-control-allow-credentials'], undefined)
      const { 'access-control-allow-origin': allowed, 'access-control-expose-headers': exposed } =
        response.headers
      assert.equal(exposed, allowed && 'Retry-After, WWW-Authenticate, X-Request-Id')
      return allowed
    }
    assert.equal(await ask('http://localhost:8081', 'sallyport-app'), 'http://localhost:8081')
    assert.equal(await ask('http://localhost:8081', 'nobody'), 'http://localhost:8081')
    assert.equal(await ask('https://evil.example', 'sallyport-app'), undefined)
    // Registered, but by another client.
    assert.equal(await ask('https://keyed.example', 'sallyport-app'), undefined)
    assert.equal(await ask('null', 'sallyport-app'), undefined)
  })

  it('responds to preflights of registered origins', async () => {
    const preflight = (origin: string) =>
      auth.app.inject({
        method: 'OPTIONS',
        url: '/oauth2/token',
        headers: { origin, 'access-control-request-method': 'POST' },
      })
    const known = await preflight('http://localhost:8081')
    assert.equal(known.statusCode, 204)
    assert.equal(known.headers['access-control-allow-origin'], 'http://localhost:8081')
    assert.match(String(known.headers['access-control-allow-headers']), /Authorization/)
    assert.equal((await preflight('https://evil.example')).headers['access-control-allow-origin'], undefined)
  })
})
