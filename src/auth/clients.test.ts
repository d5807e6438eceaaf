import assert from 'node:assert/strict'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import * as oauth from 'oauth4webapi'
import * as oidc from 'openid-client'
import { createSealer, sha256 } from '../store/index.ts'
import { initialize } from './initialize.ts'
import { createAuthServer } from './server.ts'
import { testSettings } from './testing/settings.ts'
import { TestBrowser } from './testing/test-browser.ts'
import { createTestFhirServer, makeEncounter, patient } from './testing/test-fhir-server.ts'
import { openTestStore } from './testing/test-store.ts'

const SCOPE = 'launch openid fhirUser offline_access patient/Patient.rs'
const REDIRECT = 'https://client.example/callback'

/** Certified client libraries, by their own strict checks, over real HTTP. */
describe('client libraries', () => {
  const open = openTestStore()
  let issuer: URL
  let browser: TestBrowser
  let close: () => Promise<void>
  before(async () => {
    const store = await open()
    const seal = createSealer('secret')
    const port = await freePort()
    issuer = new URL(`http://localhost:${port}`)
    const settings = { ...testSettings, issuerUrl: issuer.origin }
    await initialize({ settings, store, sealer: seal })
    const { fetch } = createTestFhirServer(settings.fhirBaseUrl, [
      patient('p1', 'Juniper', 'Alba'),
      makeEncounter('e1', 'p1', 'in-progress'),
    ])
    const app = await createAuthServer({ settings, store, sealer: seal, fetch })
    await app.listen({ port, host: 'localhost' })
    close = () => app.close()
    browser = new TestBrowser(app)
    await browser.login()
    for (const [client_id, auth_method] of [
      ['public', 'none'],
      ['secretive', 'client_secret'],
    ] as const)
      await store.db
        .insertInto('client')
        .values({
          client_id,
          name: client_id,
          description: null,
          logo_url: null,
          auth_method,
          secret_hash: auth_method === 'none' ? null : sha256('hush'),
          jwks: null,
          jwks_url: null,
          redirect_uris: JSON.stringify([REDIRECT]),
          launch_url: 'https://client.example/launch',
          scope: SCOPE,
          first_party: true,
          created_at: 0,
        })
        .execute()
  })
  after(() => close())

  async function launch(clientId: string): Promise<string> {
    const form = { patientId: 'p1', encounterId: 'e1', clientId }
    const { headers } = await browser.post('/portal/launch', form)
    return new URL(headers.location ?? '').searchParams.get('launch') ?? ''
  }

  const methods: readonly (readonly [string, string, oidc.ClientAuth])[] = [
    ['no authentication', 'public', oidc.None()],
    ['client_secret_basic', 'secretive', oidc.ClientSecretBasic('hush')],
    ['client_secret_post', 'secretive', oidc.ClientSecretPost('hush')],
  ]
  for (const [name, clientId, method] of methods) {
    it(`openid-client logs in and refreshes with ${name}`, async () => {
      const execute = [oidc.allowInsecureRequests]
      const client = await oidc.discovery(issuer, clientId, undefined, method, { execute })
      const pkceCodeVerifier = oidc.randomPKCECodeVerifier()
      const [expectedState, expectedNonce] = [oidc.randomState(), oidc.randomNonce()]
      const address = oidc.buildAuthorizationUrl(client, {
        redirect_uri: REDIRECT,
        scope: SCOPE,
        state: expectedState,
        nonce: expectedNonce,
        aud: testSettings.fhirBaseUrl,
        launch: await launch(clientId),
        code_challenge: await oidc.calculatePKCECodeChallenge(pkceCodeVerifier),
        code_challenge_method: 'S256',
      })
      const response = await browser.get(address.href)
      const checks = { pkceCodeVerifier, expectedState, expectedNonce, idTokenExpected: true, maxAge: 600 }
      const tokens = await oidc.authorizationCodeGrant(
        client,
        new URL(response.headers.location ?? ''),
        checks,
      )
      assert.equal(tokens.patient, 'p1')
      assert.equal(tokens.encounter, 'e1')
      assert.equal(tokens.need_patient_banner, true)
      assert.equal(tokens.claims()?.fhirUser, `${testSettings.fhirBaseUrl}/Practitioner/practitioner-1`)
      const renewed = await oidc.refreshTokenGrant(client, tokens.refresh_token ?? '')
      assert.equal(renewed.patient, 'p1')
      assert.equal(renewed.claims()?.sub, tokens.claims()?.sub)
    })
  }

  it('oauth4webapi accepts the discovery documents, the response with iss, and the access token (RFC 9068)', async () => {
    const insecure = { [oauth.allowInsecureRequests]: true }
    for (const algorithm of ['oidc', 'oauth2'] as const) {
      const discovered = await oauth.discoveryRequest(issuer, { algorithm, ...insecure })
      const server = await oauth.processDiscoveryResponse(issuer, discovered)
      const client = { client_id: 'public' }
      const verifier = oauth.generateRandomCodeVerifier()
      const query = new URLSearchParams({
        response_type: 'code',
        client_id: 'public',
        redirect_uri: REDIRECT,
        scope: 'launch patient/Patient.rs',
        state: 's',
        aud: testSettings.fhirBaseUrl,
        launch: await launch('public'),
        code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
      })
      const { headers } = await browser.get(`${server.authorization_endpoint}?${query}`)
      const answer = oauth.validateAuthResponse(server, client, new URL(headers.location ?? ''), 's')
      const response = await oauth.authorizationCodeGrantRequest(
        server,
        client,
        oauth.None(),
        answer,
        REDIRECT,
        verifier,
        insecure,
      )
      const { access_token: token } = await oauth.processAuthorizationCodeResponse(server, client, response)
      const request = new Request(testSettings.fhirBaseUrl, { headers: { authorization: `Bearer ${token}` } })
      const claims = await oauth.validateJwtAccessToken(server, request, testSettings.fhirBaseUrl, insecure)
      assert.equal(claims.patient, 'p1')
    }
  })

  it('openid-client reports an error response to the client', async () => {
    const execute = [oidc.allowInsecureRequests]
    const client = await oidc.discovery(issuer, 'public', undefined, oidc.None(), { execute })
    const address = oidc.buildAuthorizationUrl(client, {
      redirect_uri: REDIRECT,
      scope: SCOPE,
      state: 's',
      aud: 'https://elsewhere.example/fhir',
      code_challenge: await oidc.calculatePKCECodeChallenge(oidc.randomPKCECodeVerifier()),
      code_challenge_method: 'S256',
    })
    const { headers } = await browser.get(address.href)
    await assert.rejects(
      oidc.authorizationCodeGrant(client, new URL(headers.location ?? ''), { expectedState: 's' }),
      (error: unknown) =>
        error instanceof oidc.AuthorizationResponseError && error.error === 'invalid_request',
    )
  })
})

async function freePort(): Promise<number> {
  const { createServer } = await import('node:net')
  const server = createServer()
  await new Promise<void>(done => server.listen(0, 'localhost', done))
  const { port } = server.address() as AddressInfo
  await new Promise(done => server.close(done))
  return port
}
