/** Tokens end, and keys change, while the servers run: the auth server and two FHIR instances, over HTTP. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { decodeProtectedHeader } from 'jose'
import * as oidc from 'openid-client'
import { LIFETIME } from '../src/auth/base/limits.ts'
import { makeNextSigningKey, withdrawSigningKey } from '../src/auth/index.ts'
import { SigningClient } from '../src/auth/testing/signing-client.ts'
import { ensureSecret } from '../src/config/index.ts'
import { createInterceptor, type Interceptor } from '../src/interceptor/index.ts'
import { AUTH_SERVER_TIMEOUT_MS, computeRenewalClaimMs } from '../src/session/limits.ts'
import { createSealer } from '../src/store/index.ts'
import { type Stack, startStack } from './support/stack.ts'

let stack: Stack
let second: Interceptor
let shift = 0
const clock = () => Date.now() + shift
before(async () => {
  stack = await startStack({ clock, env: { SMART_SAMPLE_PATIENTS: '2', SMART_LAB: 'false' } })
  const { issuerUrl: authUrl, fhirBaseUrl } = stack.settings
  // Another FHIR server in front of the same auth server, as far as tokens are concerned.
  second = createInterceptor({ authUrl, fhirBaseUrl, contexts: ['system'], clock })
  await second.start()
})
after(async () => {
  second?.close()
  await stack?.close()
})

describe('the retry window of a refresh token', () => {
  it('is longer than the time-out of the app and the renewal claim of a dead instance', () => {
    const latest = computeRenewalClaimMs(AUTH_SERVER_TIMEOUT_MS)
    assert.ok(latest >= 2 * AUTH_SERVER_TIMEOUT_MS)
    assert.ok(LIFETIME.refreshRetry >= latest + 10_000)
  })
})

async function register(metadata: Record<string, unknown>): Promise<Record<string, string>> {
  const response = await fetch(`${stack.settings.issuerUrl}/oauth2/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(metadata),
  })
  return (await response.json()) as Record<string, string>
}

async function backEnd() {
  const { publicKey, privateKey } = await crypto.subtle.generateKey(
    { name: 'ECDSA', namedCurve: 'P-384' },
    false,
    ['sign', 'verify'],
  )
  const jwk = { ...(await crypto.subtle.exportKey('jwk', publicKey)), kid: 'k', use: 'sig' }
  delete jwk.key_ops
  const { client_id: id = '' } = await register({
    token_endpoint_auth_method: 'private_key_jwt',
    grant_types: ['client_credentials'],
    scope: 'system/*.rs',
    jwks: { keys: [jwk] },
  })
  const proof = oidc.PrivateKeyJwt({ key: privateKey, kid: 'k' })
  return oidc.discovery(new URL(stack.settings.issuerUrl), id, undefined, proof, {
    execute: [oidc.allowInsecureRequests],
  })
}

/** The responses of both FHIR servers to a token. */
async function statuses(token: string): Promise<readonly number[]> {
  const authorization = `Bearer ${token}`
  const address = `${stack.settings.fhirBaseUrl}/Patient?_count=1`
  const first = await fetch(address, { headers: { authorization } })
  await first.arrayBuffer()
  const admitted = await second.authenticate(authorization)
  return [first.status, admitted.allowed ? 200 : admitted.status]
}

describe('a revoked token', () => {
  it("is refused by every FHIR server within 5 s, unlike the client's other tokens (BEARER-10)", async () => {
    const client = await backEnd()
    const [token, other] = [
      (await oidc.clientCredentialsGrant(client, { scope: 'system/*.rs' })).access_token,
      (await oidc.clientCredentialsGrant(client, { scope: 'system/*.rs' })).access_token,
    ]
    assert.deepEqual(await statuses(token), [200, 200])
    assert.equal((await oidc.tokenIntrospection(client, token)).active, true)
    await oidc.tokenRevocation(client, token)
    assert.equal((await oidc.tokenIntrospection(client, token)).active, false)
    await refusedInTime(token)
    assert.deepEqual(await statuses(other), [200, 200])
  })
})

/** Both refuse it in less than 5 s. */
async function refusedInTime(token: string): Promise<void> {
  const started = performance.now()
  let seen = await statuses(token)
  while (seen.some(status => status !== 401) && performance.now() - started < 5_000) {
    await new Promise(resolve => setTimeout(resolve, 100))
    seen = await statuses(token)
  }
  assert.deepEqual(seen, [401, 401])
  assert.ok(performance.now() - started < 5_000)
}

describe('a compromised key', () => {
  it('is withdrawn: every FHIR server refuses its tokens within 5 s, and a new key signs (BEARER-10)', async () => {
    const { store, settings } = stack
    const client = await backEnd()
    const buy = async () => (await oidc.clientCredentialsGrant(client, { scope: 'system/*.rs' })).access_token
    const token = await buy()
    assert.deepEqual(await statuses(token), [200, 200])
    const { kid = '' } = decodeProtectedHeader(token)
    assert.ok(await withdrawSigningKey(store, createSealer(ensureSecret(settings)), { kid, now: clock() }))
    await refusedInTime(token)
    assert.deepEqual(await statuses(await buy()), [200, 200])
  })
})

describe('a key rotation', () => {
  it('fails no request on any instance, and leads to tokens of the new key (KEY-3)', async () => {
    const { store, settings } = stack
    const time = {
      get now() {
        return clock()
      },
    }
    const signing = new SigningClient('', time)
    const { client_id: id = '' } = await register({
      token_endpoint_auth_method: 'private_key_jwt',
      grant_types: ['client_credentials'],
      scope: 'system/*.rs',
      jwks: { keys: [signing.jwk] },
    })
    const client = new SigningClient(id, time)
    const aud = `${settings.issuerUrl}/oauth2/token`
    const kids: string[] = []
    const step = async () => {
      const form = { grant_type: 'client_credentials', scope: 'system/*.rs', ...client.makeProof({ aud }) }
      const response = await fetch(aud, { method: 'POST', body: new URLSearchParams(form) })
      const { access_token: token } = (await response.json()) as { access_token: string }
      kids.push(JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()).kid)
      // An unknown key uses up the rate limit of key set fetches, which the new key needs too.
      const [, ...rest] = token.split('.')
      const junk = Buffer.from(JSON.stringify({ alg: 'RS256', typ: 'at+jwt', kid: `x-${kids.length}` }))
      await second.authenticate(`Bearer ${junk.toString('base64url')}.${rest.join('.')}`)
      assert.deepEqual(await statuses(token), [200, 200], `after ${shift} ms`)
      shift += 500
    }
    await step()
    const now = clock()
    const secret = createSealer(ensureSecret(settings))
    assert.ok(await makeNextSigningKey(store, secret, { now, signsFrom: now + 8_000 }))
    for (let i = 0; i < 24; i++) await step()
    assert.equal(new Set(kids).size, 2)
    assert.notEqual(kids.at(-1), kids[0])
    const { keys } = (await (await fetch(`${settings.issuerUrl}/oauth2/jwks`)).json()) as { keys: unknown[] }
    assert.equal(keys.length, 2)
    shift += 361_000
    const later = (await (await fetch(`${settings.issuerUrl}/oauth2/jwks`)).json()) as { keys: unknown[] }
    assert.equal(later.keys.length, 1)
  })
})
