/** As in hostile-client.test.ts: a back end whose assertions are wrong. */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { type Expected, refuses } from './support/hostile-cases.ts'
import { type Form, HostileClient } from './support/hostile-client.ts'
import { type Stack, startStack } from './support/stack.ts'

let stack: Stack
let client: HostileClient
before(async () => {
  stack = await startStack({ env: { SMART_SAMPLE_PATIENTS: '2' } })
  client = await HostileClient.register(stack)
})
after(() => stack?.close())

describe('an assertion', () => {
  const ask =
    (claims: Record<string, unknown>, header: Record<string, unknown> = {}, form: Form = {}) =>
    () =>
      client.clientCredentials(claims, header, form)
  const seconds = Math.floor(Date.now() / 1000)
  const never: Expected = [401, 'invalid_client']
  let hits = 0
  const trap = createServer((_request, response) => {
    hits += 1
    response.end(JSON.stringify({ keys: [client.backEnd.jwk] }))
  })
  before(() => new Promise<void>(done => trap.listen(0, '127.0.0.1', done)))
  after(() => trap.close())
  const trapUrl = () => `http://127.0.0.1:${(trap.address() as AddressInfo).port}/jwks`

  refuses({
    '56 aud of another server': [ask({ aud: 'https://evil.example/oauth2/token' }), ...never],
    '56 aud of the FHIR base': [
      () => client.clientCredentials({ aud: stack.settings.fhirBaseUrl }),
      ...never,
    ],
    '56 an hour ahead': [ask({ exp: seconds + 3600 }), ...never],
    '56 expired': [ask({ exp: seconds - 60 }), ...never],
    '56 no jti': [ask({ jti: undefined }), ...never],
    '56 iss of the victim': [() => client.clientCredentials({ iss: client.apps.victim }), ...never],
    '56 sub of the victim': [() => client.clientCredentials({ sub: client.apps.victim }), ...never],
    '56 the name of the victim beside it': [
      () => client.clientCredentials({}, {}, { client_id: client.apps.victim }),
      ...never,
    ],
    '56 alg none': [ask({}, { alg: 'none' }), ...never],
    '56 alg HS384': [ask({}, { alg: 'HS384' }), ...never],
    '56 alg of another kind of key': [ask({}, { alg: 'RS384' }), ...never],
    '56 a kid that nobody has': [ask({}, { kid: 'other' }), ...never],
    '56 another type of assertion': [
      ask({}, {}, { client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:saml2-bearer' }),
      400,
      'invalid_request',
    ],
    '58 no scope': [ask({}, {}, { scope: '' }), 400, 'invalid_scope'],
    '58 scopes of a user': [ask({}, {}, { scope: 'user/*.rs patient/*.rs openid' }), 400, 'invalid_scope'],
    '58 another scope than it may have': [
      ask({}, {}, { scope: 'system/Observation.rs' }),
      400,
      'invalid_scope',
    ],
    '56 the same assertion again': [
      async () => {
        const form = client.backEnd.makeProof({ aud: client.at('/oauth2/token') })
        assert.equal((await client.clientCredentials({}, {}, form)).status, 200)
        return client.clientCredentials({}, {}, form)
      },
      ...never,
    ],
  })

  it('56 does not cause a fetch of the key set that it names', async () => {
    const answer = await client.clientCredentials({}, { jku: trapUrl() })
    assert.deepEqual([answer.status, answer.error], never)
    assert.equal(hits, 0)
  })
})
