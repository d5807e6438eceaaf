/** A hostile client with invalid tokens, at every endpoint that takes a token. The numbers are those of docs/internal/smart-conformance.md. */
import assert from 'node:assert/strict'
import { createHmac, generateKeyPairSync, sign } from 'node:crypto'
import { request } from 'node:http'
import { after, before, describe, it } from 'node:test'
import { openSigningKey } from '../src/auth/oauth/keys/signing-key.ts'
import { encode } from '../src/auth/testing/signing-client.ts'
import { ensureSecret } from '../src/config/index.ts'
import { createSealer } from '../src/store/index.ts'
import { HostileClient, json, send } from './support/hostile-client.ts'
import { type Stack, startStack } from './support/stack.ts'

type Part = Readonly<Record<string, unknown>>

let stack: Stack
let client: HostileClient
let tokens: Awaited<ReturnType<HostileClient['stolen']>>
let header: Part
let claims: Part
let privateKey: Parameters<typeof sign>[2]
before(async () => {
  stack = await startStack({ env: { SMART_SAMPLE_PATIENTS: '2' } })
  client = await HostileClient.register(stack)
  tokens = await client.stolen()
  const [head = '', body = ''] = tokens.access_token.split('.')
  header = JSON.parse(Buffer.from(head, 'base64url').toString())
  claims = JSON.parse(Buffer.from(body, 'base64url').toString())
  const [row] = await stack.store.db.selectFrom('signing_key').selectAll().execute()
  assert.ok(row)
  const seal = createSealer(ensureSecret(stack.settings))
  privateKey = openSigningKey(row.private_jwk_sealed, JSON.parse(row.public_jwk), seal).privateKey
})
after(() => stack?.close())

const own = generateKeyPairSync('rsa', { modulusLength: 2048 })
const parts = (head: Part, body: Part) =>
  `${encode({ ...header, ...head })}.${encode({ ...claims, ...body })}`
const signed = (head: Part, body: Part, key: Parameters<typeof sign>[2], hash = 'RSA-SHA256') => {
  const input = parts(head, body)
  return `${input}.${sign(hash, Buffer.from(input), key).toString('base64url')}`
}
/** An attacker with its own key. */
const forged = (head: Part, body: Part = {}) => signed(head, body, own.privateKey)
/** Signed with the server's own key, but not as an access token for this FHIR server. */
const misused = (body: Part, head: Part = {}) => signed(head, body, privateKey)
const hmac = async (key: (jwk: JsonWebKey) => string) => {
  const { keys } = JSON.parse((await send(client.at('/oauth2/jwks'))).body)
  const input = parts({ alg: 'HS256' }, {})
  return `${input}.${createHmac('sha256', key(keys[0])).update(input).digest('base64url')}`
}
const seconds = () => Math.floor(Date.now() / 1000)

const bad: Readonly<Record<string, () => string | Promise<string>>> = {
  '36 alg none without signature': () => `${parts({ alg: 'none' }, {})}.`,
  '36 alg None with the old signature': () =>
    `${parts({ alg: 'None' }, {})}.${tokens.access_token.split('.')[2]}`,
  '36 HS256 with the public key (BEARER-5)': () => hmac(jwk => JSON.stringify(jwk)),
  '36 HS256 with the modulus': () => hmac(jwk => String(jwk.n)),
  '36 RS512 of the right key': () => signed({ alg: 'RS512' }, {}, privateKey, 'RSA-SHA512'),
  '36 a signature of another key': () => forged({}),
  '36 a key in the header': () => forged({ jwk: own.publicKey.export({ format: 'jwk' }) }),
  '36 the address of a key set': () => forged({ jku: 'https://evil.example/jwks', kid: 'evil' }),
  '36 no kid': () => forged({ kid: undefined }),
  '36 a kid that is a path': () => forged({ kid: '../../etc/passwd' }),
  '36 another scope under the old signature': () =>
    `${parts({}, { scope: 'user/*.cruds' })}.${tokens.access_token.split('.')[2]}`,
  '36 no signature': () => tokens.access_token.split('.').slice(0, 2).join('.'),
  '36 a fourth part': () => `${tokens.access_token}.x`,
  '37 the id_token': () => tokens.id_token,
  '37 the refresh token': () => tokens.refresh_token,
  '37 an assertion': () => client.backEnd.signAssertion({ aud: stack.settings.fhirBaseUrl }),
  '37 a launch token': () => client.launch(),
  '37 an authorization code': () => client.code(),
  '37 typ JWT': () => misused({}, { typ: 'JWT' }),
  '38 aud of a client': () => misused({ aud: client.apps.victim }),
  '38 aud that begins like the FHIR base': () =>
    misused({ aud: `${stack.settings.fhirBaseUrl}.evil.example` }),
  '38 no aud': () => misused({ aud: undefined }),
  '38 another iss': () => misused({ iss: 'https://evil.example' }),
  '40 expired a second ago': () => misused({ exp: seconds() - 1 }),
  '40 exp that is a text': () => misused({ exp: String(seconds() + 300) }),
  '40 no exp': () => misused({ exp: undefined }),
}

describe('an invalid token', () => {
  for (const [name, make] of Object.entries(bad))
    it(name, async () => {
      const authorization = `Bearer ${await make()}`
      const order = { client_id: client.apps.victim, username: 'clinician', patient: 'patient-1' }
      const doors = [
        await send(`${stack.settings.fhirBaseUrl}/Patient/patient-1`, { headers: { authorization } }),
        await send(client.at('/oauth2/userinfo'), { headers: { authorization } }),
        await send(client.at('/launch-contexts'), {
          ...json(order),
          headers: { 'content-type': 'application/json', authorization },
        }),
        await client.post('/oauth2/introspect', { token: tokens.access_token }, { authorization }),
      ]
      const [issue] = JSON.parse(doors[0]?.body ?? '').issue
      if (issue.code !== 'expired')
        assert.match(
          issue.diagnostics,
          /^The access token is not valid on this FHIR server\. The token is not accepted: ./,
        )
      for (const { status, headers, body } of doors) {
        assert.equal(status, 401, body)
        assert.match(headers.get('www-authenticate') ?? '', /^Bearer\b.*error="invalid_token"/)
        assert.doesNotMatch(body, /patient-1|"active"|launch_url/)
      }
    })
})

describe('a valid token', () => {
  const read = (headers: Record<string, string | string[]>, query = '') =>
    new Promise<number | undefined>((resolve, reject) => {
      const url = `${stack.settings.fhirBaseUrl}/Patient/patient-1${query}`
      request(url, { headers }, response => resolve(response.resume().statusCode))
        .on('error', reject)
        .end()
    })

  it('gives access to the patient and the encounter of the token response', async () => {
    const response: Record<string, unknown> = await client.stolen({ encounterId: 'encounter-1-1' })
    const { patient, encounter, need_patient_banner, smart_style_url, access_token } = response
    assert.deepEqual([patient, encounter, need_patient_banner], ['patient-1', 'encounter-1-1', true])
    const headers = { authorization: `Bearer ${access_token}` }
    for (const path of [`Patient/${patient}`, `Encounter/${encounter}`])
      assert.equal((await send(`${stack.settings.fhirBaseUrl}/${path}`, { headers })).status, 200, path)
    assert.match((await send(String(smart_style_url))).body, /"color_background"/)
  })

  it('41 works with any case of Bearer, and not in a query, as Basic, or twice (BEARER-2)', async () => {
    const { access_token: token } = tokens
    assert.equal(await read({ authorization: `bEARER ${token}` }), 200)
    assert.equal(await read({}, `?access_token=${token}`), 401)
    assert.equal(await read({ authorization: `Basic ${token}` }), 401)
    assert.equal(await read({ authorization: token }), 401)
    assert.equal(await read({ authorization: [`Bearer ${token}`, `Bearer ${token}`] }), 401)
  })

  it('42 gets 403, not 401, if its scope is insufficient', async () => {
    const headers = { authorization: `Bearer ${tokens.access_token}` }
    const created = await send(`${stack.settings.fhirBaseUrl}/Observation`, { ...json({}), headers })
    assert.equal(created.status, 403)
    assert.match(created.headers.get('www-authenticate') ?? '', /error="insufficient_scope"/)
    const introspection = await client.post('/oauth2/introspect', { token: 'x' }, headers)
    assert.equal(introspection.status, 401)
  })
})
