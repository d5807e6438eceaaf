import assert from 'node:assert/strict'
import { createHmac, generateKeyPairSync, sign } from 'node:crypto'
import { before, describe, it } from 'node:test'
import { encode, SigningClient } from '../../testing/signing-client.ts'
import { TestAuthServer } from '../../testing/test-auth-server.ts'
import { openTestStore } from '../../testing/test-store.ts'

const SCOPE = 'system/Patient.rs'

describe('private_key_jwt', () => {
  const open = openTestStore()
  let auth: TestAuthServer
  let rs: SigningClient
  let es: SigningClient
  before(async () => {
    auth = await TestAuthServer.open(await open())
    rs = new SigningClient('rs', auth.time, 'RS384')
    es = new SigningClient('es', auth.time, 'ES384')
    for (const client of [rs, es])
      await auth.addClient({
        client_id: client.id,
        auth_method: 'private_key_jwt',
        jwks: client.jwks,
        scope: 'system/*.rs',
      })
    await auth.addClient({ client_id: 'public' })
    const twins = JSON.stringify({ keys: [es.jwk, { ...es.jwk, use: undefined }] })
    await auth.addClient({ client_id: 'twins', auth_method: 'private_key_jwt', jwks: twins, scope: SCOPE })
    await auth.addClient({
      client_id: 'empty',
      auth_method: 'private_key_jwt',
      jwks: '{"keys":[]}',
      scope: SCOPE,
    })
  })

  const ask = (form: Record<string, string>, headers: Record<string, string> = {}) =>
    auth.requestToken({ grant_type: 'client_credentials', scope: SCOPE, ...form }, headers)

  for (const alg of ['RS384', 'ES384'] as const)
    it(`accepts ${alg}, with and without client_id, for the token endpoint and for the issuer (CLIENT-6)`, async () => {
      const client = alg === 'RS384' ? rs : es
      assert.equal((await ask(client.makeProof())).statusCode, 200)
      assert.equal((await ask({ ...client.makeProof(), client_id: client.id })).statusCode, 200)
      assert.equal((await ask(client.makeProof({ aud: 'http://localhost:9000' }))).statusCode, 200)
      assert.equal(
        (await ask(client.makeProof({ aud: ['http://localhost:9000/oauth2/token'] }))).statusCode,
        200,
      )
      assert.equal((await ask(client.makeProof({}, { typ: undefined }))).statusCode, 200)
    })

  const seconds = () => Math.floor(auth.time.now / 1000)
  const otherKey = generateKeyPairSync('ec', { namedCurve: 'P-384' })
  const refused: Readonly<Record<string, () => Record<string, string>>> = {
    'aud of another server': () => es.makeProof({ aud: 'https://other.example/token' }),
    'aud that begins with the token endpoint': () =>
      es.makeProof({ aud: 'http://localhost:9000/oauth2/token/x' }),
    'aud for others too': () => es.makeProof({ aud: ['http://localhost:9000', 'https://other.example'] }),
    'aud that is empty': () => es.makeProof({ aud: [] }),
    'no aud': () => es.makeProof({ aud: undefined }),
    'no exp': () => es.makeProof({ exp: undefined }),
    'exp as text': () => es.makeProof({ exp: `${seconds() + 60}` }),
    'exp that is over': () => es.makeProof({ exp: seconds() }),
    'exp an hour ahead': () => es.makeProof({ exp: seconds() + 3600 }),
    'nbf to come': () => es.makeProof({ nbf: seconds() + 60 }),
    'iat to come': () => es.makeProof({ iat: seconds() + 60 }),
    'no jti': () => es.makeProof({ jti: undefined }),
    'empty jti': () => es.makeProof({ jti: '' }),
    'jti that is no text': () => es.makeProof({ jti: 7 }),
    'another sub': () => es.makeProof({ sub: 'rs' }),
    'another iss': () => es.makeProof({ iss: 'rs' }),
    'no iss': () => es.makeProof({ iss: undefined, sub: undefined }),
    'an unknown client': () => es.makeProof({ iss: 'nobody', sub: 'nobody' }),
    'a public client': () => es.makeProof({ iss: 'public', sub: 'public' }),
    'the key of another client': () => rs.makeProof({ iss: 'es', sub: 'es' }),
    'another client_id beside it': () => ({ ...es.makeProof(), client_id: 'rs' }),
    'alg none': () => es.makeProof({}, { alg: 'none' }),
    'alg RS256': () => rs.makeProof({}, { alg: 'RS256' }),
    'alg HS384': () => es.makeProof({}, { alg: 'HS384' }),
    'alg of the other kind of key': () => es.makeProof({}, { alg: 'RS384' }),
    'no kid': () => es.makeProof({}, { kid: undefined }),
    'an unknown kid': () => es.makeProof({}, { kid: 'key-2' }),
    'two keys with the kid': () => es.makeProof({ iss: 'twins', sub: 'twins' }),
    'a client without keys': () => es.makeProof({ iss: 'empty', sub: 'empty' }),
    'a jku for inline keys': () => es.makeProof({}, { jku: 'https://evil.example/jwks' }),
    'typ of an access token': () => es.makeProof({}, { typ: 'at+jwt' }),
    crit: () => es.makeProof({}, { crit: ['x'], x: 1 }),
    'a signature of another key': () => ({
      ...es.makeProof(),
      client_assertion: es.signAssertion({}, {}, otherKey.privateKey),
    }),
    'a signature in DER': () => {
      const [head = '', body = ''] = es.signAssertion().split('.')
      const der = sign('sha384', Buffer.from(`${head}.${body}`), es.privateKey).toString('base64url')
      return { ...es.makeProof(), client_assertion: `${head}.${body}.${der}` }
    },
    'no signature': () => {
      const [head = '', body = ''] = es.signAssertion().split('.')
      return { ...es.makeProof(), client_assertion: `${head}.${body}.` }
    },
    'HMAC with the public key': () => {
      const input = es.signAssertion({}, { alg: 'HS384' }).split('.').slice(0, 2).join('.')
      const mac = createHmac('sha384', es.jwks).update(input).digest('base64url')
      return { ...es.makeProof(), client_assertion: `${input}.${mac}` }
    },
    'changed claims': () => {
      const [head = '', , signature = ''] = es.signAssertion().split('.')
      const body = encode({
        iss: 'es',
        sub: 'es',
        aud: 'http://localhost:9000',
        exp: seconds() + 60,
        jti: 'x',
      })
      return { ...es.makeProof(), client_assertion: `${head}.${body}.${signature}` }
    },
    'claims that are a list': () => ({ ...es.makeProof(), client_assertion: 'e30.W10.AAAA' }),
    'no JWT': () => ({ ...es.makeProof(), client_assertion: 'nonsense' }),
    'an assertion of 10 kB': () => es.makeProof({ more: 'x'.repeat(10_000) }),
  }
  it('returns the reason for a refusal to the client (CLIENT-7)', async () => {
    const findReason = async (proof: Record<string, string>) => (await ask(proof)).json().error_description
    const reasons: Record<string, Record<string, string>> = {
      'kid is missing': es.makeProof({}, { kid: undefined }),
      'exp is more than five minutes ahead': es.makeProof({ exp: seconds() + 3600 }),
      'exp is in the past': es.makeProof({ exp: seconds() }),
      'alg is neither RS384 nor ES384': rs.makeProof({}, { alg: 'RS256' }),
      'aud is not this server': es.makeProof({ aud: 'https://elsewhere.example' }),
      'jti is missing or longer than 1024 characters': es.makeProof({ jti: undefined }),
      'no key of the client has this kid and alg': es.makeProof({}, { kid: 'key-2' }),
      'the client is not registered for private_key_jwt': es.makeProof({ iss: 'nobody', sub: 'nobody' }),
      'the signature does not match': {
        ...es.makeProof(),
        client_assertion: es.signAssertion({}, {}, otherKey.privateKey),
      },
    }
    for (const [reason, proof] of Object.entries(reasons))
      assert.equal(await findReason(proof), `The client assertion was refused: ${reason}.`)
  })

  for (const [name, proof] of Object.entries(refused))
    it(`refuses ${name} as invalid_client (CLIENT-6)`, async () => {
      const response = await ask(proof())
      assert.equal(response.statusCode, 401)
      assert.deepEqual(Object.keys(response.json()), ['error', 'error_description'])
      assert.equal(response.json().error, 'invalid_client')
      assert.equal(response.headers['cache-control'], 'no-store')
    })

  it('refuses another assertion type, a missing assertion, and a second method, as invalid_request', async () => {
    const proof = es.makeProof()
    for (const [form, headers] of [
      [{ ...proof, client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:saml2-bearer' }, {}],
      [{ client_assertion_type: proof.client_assertion_type ?? '' }, {}],
      [{ client_assertion: proof.client_assertion ?? '' }, {}],
      [{ ...proof, client_secret: 'x' }, {}],
      [proof, { authorization: 'Basic ZXM6eA==' }],
    ] as const) {
      const response = await ask({ ...form }, { ...headers })
      assert.equal(response.statusCode, 400)
      assert.equal(response.json().error, 'invalid_request')
    }
    assert.equal((await ask(proof)).statusCode, 200, 'none of them used the assertion up')
  })

  it('accepts an assertion once, and the same jti of another client', async () => {
    const proof = es.makeProof({ jti: 'shared' })
    assert.equal((await ask(proof)).statusCode, 200)
    const again = await ask(proof)
    assert.equal(again.json().error, 'invalid_client')
    assert.equal(again.json().error_description, 'The client assertion was refused: jti was used before.')
    assert.equal((await ask(es.makeProof({ jti: 'shared' }))).json().error, 'invalid_client')
    assert.equal((await ask(rs.makeProof({ jti: 'shared' }))).statusCode, 200)
  })

  it('is required for the exchange of a code and of a refresh token', async () => {
    await auth.addClient({
      client_id: 'keyed',
      auth_method: 'private_key_jwt',
      jwks: es.jwks,
      scope: 'launch openid offline_access patient/*.rs',
    })
    const keyed = new SigningClient('keyed', auth.time)
    const redirect_uri = 'https://keyed.example/callback'
    const code = await auth.getCode(await auth.logIn(), {
      client_id: 'keyed',
      redirect_uri,
      scope: 'launch openid offline_access patient/*.rs',
    })
    assert.equal((await auth.exchange(code, { client_id: 'keyed', redirect_uri })).statusCode, 401)
    const exchanged = await auth.exchange(code, { client_id: 'keyed', redirect_uri, ...keyed.makeProof() })
    assert.equal(exchanged.statusCode, 200, exchanged.body)
    const { refresh_token: token } = exchanged.json()
    assert.equal((await auth.refresh(token, { client_id: 'keyed' })).statusCode, 401)
    assert.equal((await auth.refresh(token, { client_id: 'keyed', ...keyed.makeProof() })).statusCode, 200)
  })
})
