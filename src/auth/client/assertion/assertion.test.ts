import assert from 'node:assert/strict'
import { createHmac, generateKeyPairSync, sign } from 'node:crypto'
import { before, describe, it } from 'node:test'
import { encode, SigningClient } from '../../testing/signing-client.ts'
import { TestAuthServer } from '../../testing/test-auth-server.ts'
import { openTestStore } from '../../testing/test-store.ts'

const SCOPE = 'system/Patient.rs'

describe('private_key_jwt', () => {
  const open = openTestStore()
  let house: TestAuthServer
  let rs: SigningClient
  let es: SigningClient
  before(async () => {
    house = await TestAuthServer.open(await open())
    rs = new SigningClient('rs', house.time, 'RS384')
    es = new SigningClient('es', house.time, 'ES384')
    for (const client of [rs, es])
      await house.addClient({
        client_id: client.id,
        auth_method: 'private_key_jwt',
        jwks: client.jwks,
        scope: 'system/*.rs',
      })
    await house.addClient({ client_id: 'public' })
    const twins = JSON.stringify({ keys: [es.jwk, { ...es.jwk, use: undefined }] })
    await house.addClient({ client_id: 'twins', auth_method: 'private_key_jwt', jwks: twins, scope: SCOPE })
    await house.addClient({
      client_id: 'empty',
      auth_method: 'private_key_jwt',
      jwks: '{"keys":[]}',
      scope: SCOPE,
    })
  })

  const ask = (form: Record<string, string>, headers: Record<string, string> = {}) =>
    house.token({ grant_type: 'client_credentials', scope: SCOPE, ...form }, headers)

  for (const alg of ['RS384', 'ES384'] as const)
    it(`accepts ${alg}, with and without client_id, for the token endpoint and for the issuer`, async () => {
      const client = alg === 'RS384' ? rs : es
      assert.equal((await ask(client.proof())).statusCode, 200)
      assert.equal((await ask({ ...client.proof(), client_id: client.id })).statusCode, 200)
      assert.equal((await ask(client.proof({ aud: 'http://localhost:9000' }))).statusCode, 200)
      assert.equal((await ask(client.proof({ aud: ['http://localhost:9000/oauth2/token'] }))).statusCode, 200)
      assert.equal((await ask(client.proof({}, { typ: undefined }))).statusCode, 200)
    })

  const seconds = () => Math.floor(house.time.now / 1000)
  const stranger = generateKeyPairSync('ec', { namedCurve: 'P-384' })
  const refused: Readonly<Record<string, () => Record<string, string>>> = {
    'aud of another server': () => es.proof({ aud: 'https://other.example/token' }),
    'aud that begins with ours': () => es.proof({ aud: 'http://localhost:9000/oauth2/token/x' }),
    'aud for others too': () => es.proof({ aud: ['http://localhost:9000', 'https://other.example'] }),
    'aud that is empty': () => es.proof({ aud: [] }),
    'no aud': () => es.proof({ aud: undefined }),
    'no exp': () => es.proof({ exp: undefined }),
    'exp as text': () => es.proof({ exp: `${seconds() + 60}` }),
    'exp that is over': () => es.proof({ exp: seconds() }),
    'exp an hour ahead': () => es.proof({ exp: seconds() + 3600 }),
    'nbf to come': () => es.proof({ nbf: seconds() + 60 }),
    'iat to come': () => es.proof({ iat: seconds() + 60 }),
    'no jti': () => es.proof({ jti: undefined }),
    'empty jti': () => es.proof({ jti: '' }),
    'jti that is no text': () => es.proof({ jti: 7 }),
    'another sub': () => es.proof({ sub: 'rs' }),
    'another iss': () => es.proof({ iss: 'rs' }),
    'no iss': () => es.proof({ iss: undefined, sub: undefined }),
    'an unknown client': () => es.proof({ iss: 'nobody', sub: 'nobody' }),
    'a public client': () => es.proof({ iss: 'public', sub: 'public' }),
    'the key of another client': () => rs.proof({ iss: 'es', sub: 'es' }),
    'another client_id beside it': () => ({ ...es.proof(), client_id: 'rs' }),
    'alg none': () => es.proof({}, { alg: 'none' }),
    'alg RS256': () => rs.proof({}, { alg: 'RS256' }),
    'alg HS384': () => es.proof({}, { alg: 'HS384' }),
    'alg of the other kind of key': () => es.proof({}, { alg: 'RS384' }),
    'no kid': () => es.proof({}, { kid: undefined }),
    'an unknown kid': () => es.proof({}, { kid: 'key-2' }),
    'two keys with the kid': () => es.proof({ iss: 'twins', sub: 'twins' }),
    'a client without keys': () => es.proof({ iss: 'empty', sub: 'empty' }),
    'a jku for inline keys': () => es.proof({}, { jku: 'https://evil.example/jwks' }),
    'typ of an access token': () => es.proof({}, { typ: 'at+jwt' }),
    crit: () => es.proof({}, { crit: ['x'], x: 1 }),
    'a signature by somebody else': () => ({
      ...es.proof(),
      client_assertion: es.assertion({}, {}, stranger.privateKey),
    }),
    'a signature in DER': () => {
      const [head = '', body = ''] = es.assertion().split('.')
      const der = sign('sha384', Buffer.from(`${head}.${body}`), es.privateKey).toString('base64url')
      return { ...es.proof(), client_assertion: `${head}.${body}.${der}` }
    },
    'no signature': () => {
      const [head = '', body = ''] = es.assertion().split('.')
      return { ...es.proof(), client_assertion: `${head}.${body}.` }
    },
    'HMAC with the public key': () => {
      const input = es.assertion({}, { alg: 'HS384' }).split('.').slice(0, 2).join('.')
      const mac = createHmac('sha384', es.jwks).update(input).digest('base64url')
      return { ...es.proof(), client_assertion: `${input}.${mac}` }
    },
    'changed claims': () => {
      const [head = '', , signature = ''] = es.assertion().split('.')
      const body = encode({
        iss: 'es',
        sub: 'es',
        aud: 'http://localhost:9000',
        exp: seconds() + 60,
        jti: 'x',
      })
      return { ...es.proof(), client_assertion: `${head}.${body}.${signature}` }
    },
    'claims that are a list': () => ({ ...es.proof(), client_assertion: 'e30.W10.AAAA' }),
    'no JWT': () => ({ ...es.proof(), client_assertion: 'nonsense' }),
    'an assertion of 10 kB': () => es.proof({ more: 'x'.repeat(10_000) }),
  }
  it('tells the client why an assertion is refused', async () => {
    const told = async (proof: Record<string, string>) => (await ask(proof)).json().error_description
    const reasons: Record<string, Record<string, string>> = {
      'kid is missing': es.proof({}, { kid: undefined }),
      'exp is more than five minutes ahead': es.proof({ exp: seconds() + 3600 }),
      'exp is in the past': es.proof({ exp: seconds() }),
      'alg is neither RS384 nor ES384': rs.proof({}, { alg: 'RS256' }),
      'aud is not this server': es.proof({ aud: 'https://elsewhere.example' }),
      'jti is missing or longer than 1024 characters': es.proof({ jti: undefined }),
      'no key of the client has this kid and alg': es.proof({}, { kid: 'key-2' }),
      'the client is not registered for private_key_jwt': es.proof({ iss: 'nobody', sub: 'nobody' }),
      'the signature does not match': {
        ...es.proof(),
        client_assertion: es.assertion({}, {}, stranger.privateKey),
      },
    }
    for (const [reason, proof] of Object.entries(reasons))
      assert.equal(await told(proof), `The client assertion was refused: ${reason}.`)
  })

  for (const [name, proof] of Object.entries(refused))
    it(`refuses ${name} as invalid_client`, async () => {
      const response = await ask(proof())
      assert.equal(response.statusCode, 401)
      assert.deepEqual(Object.keys(response.json()), ['error', 'error_description'])
      assert.equal(response.json().error, 'invalid_client')
      assert.equal(response.headers['cache-control'], 'no-store')
    })

  it('refuses another assertion type, a missing assertion, and a second method, as invalid_request', async () => {
    const proof = es.proof()
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
    const proof = es.proof({ jti: 'shared' })
    assert.equal((await ask(proof)).statusCode, 200)
    const again = await ask(proof)
    assert.equal(again.json().error, 'invalid_client')
    assert.equal(again.json().error_description, 'The client assertion was refused: jti was used before.')
    assert.equal((await ask(es.proof({ jti: 'shared' }))).json().error, 'invalid_client')
    assert.equal((await ask(rs.proof({ jti: 'shared' }))).statusCode, 200)
  })

  it('is exchanged with a code or refresh token, and required for both', async () => {
    await house.addClient({
      client_id: 'keyed',
      auth_method: 'private_key_jwt',
      jwks: es.jwks,
      scope: 'launch openid offline_access patient/*.rs',
    })
    const keyed = new SigningClient('keyed', house.time)
    const redirect_uri = 'https://keyed.example/callback'
    const code = await house.code(await house.loggedIn(), {
      client_id: 'keyed',
      redirect_uri,
      scope: 'launch openid offline_access patient/*.rs',
    })
    assert.equal((await house.exchange(code, { client_id: 'keyed', redirect_uri })).statusCode, 401)
    const exchanged = await house.exchange(code, { client_id: 'keyed', redirect_uri, ...keyed.proof() })
    assert.equal(exchanged.statusCode, 200, exchanged.body)
    const { refresh_token: token } = exchanged.json()
    assert.equal((await house.refresh(token, { client_id: 'keyed' })).statusCode, 401)
    assert.equal((await house.refresh(token, { client_id: 'keyed', ...keyed.proof() })).statusCode, 200)
  })
})
