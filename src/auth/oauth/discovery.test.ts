import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { MCP_SCOPES } from '../../config/index.ts'
import { testSettings } from '../testing/settings.ts'
import { TestAuthServer } from '../testing/test-auth-server.ts'
import { openTestStore } from '../testing/test-store.ts'
import { buildResourceDocuments, buildSmartConfiguration } from './discovery.ts'

const ENDPOINTS = {
  introspection_endpoint: '/oauth2/introspect',
  revocation_endpoint: '/oauth2/revoke',
  registration_endpoint: '/oauth2/register',
}

describe('discovery documents', () => {
  const open = openTestStore()

  it('contain URLs below the issuer, whatever the Host header says (DISCOVERY-4)', async () => {
    const auth = await TestAuthServer.open(await open(), {
      settings: { issuerUrl: 'https://auth.example', bind: ['0.0.0.0'] },
    })
    for (const name of ['openid-configuration', 'oauth-authorization-server', 'smart-configuration']) {
      const response = await auth.app.inject({
        url: `/.well-known/${name}`,
        headers: { host: 'evil.example' },
      })
      assert.equal(response.statusCode, 200)
      assert.equal(response.headers['access-control-allow-origin'], '*')
      assert.match(String(response.headers['access-control-expose-headers']), /X-Request-Id/)
      const body = response.json()
      assert.equal(body.issuer, 'https://auth.example')
      assert.equal(body.authorization_endpoint, 'https://auth.example/oauth2/authorize')
      assert.equal(body.token_endpoint, 'https://auth.example/oauth2/token')
      assert.equal(body.jwks_uri, 'https://auth.example/oauth2/jwks')
      assert.deepEqual(body.code_challenge_methods_supported, ['S256'])
      assert.equal(body.authorization_response_iss_parameter_supported, true)
      for (const [field, path] of Object.entries(ENDPOINTS))
        assert.equal(body[field], `https://auth.example${path}`)
    }
  })

  it('contain the fields that OIDC Discovery requires (DISCOVERY-4)', async () => {
    const auth = await TestAuthServer.open(await open())
    const body = (await auth.openBrowser().get('/.well-known/openid-configuration')).json()
    assert.deepEqual(body.subject_types_supported, ['public'])
    assert.equal(body.userinfo_endpoint, 'http://localhost:9000/oauth2/userinfo')
    assert.equal(body.end_session_endpoint, 'http://localhost:9000/oauth2/logout')
    assert.deepEqual(body.id_token_signing_alg_values_supported, ['RS256'])
    assert.deepEqual(body.response_types_supported, ['code'])
  })
})

describe('buildSmartConfiguration', () => {
  it('has every required field, absolute URLs, and S256 without plain (DISCOVERY-2)', () => {
    const body = buildSmartConfiguration(testSettings)
    for (const name of ['issuer', 'jwks_uri', 'authorization_endpoint', 'token_endpoint'] as const)
      assert.ok(URL.canParse(body[name]), name)
    assert.deepEqual(body.grant_types_supported, [
      'authorization_code',
      'refresh_token',
      'client_credentials',
    ])
    assert.deepEqual(body.token_endpoint_auth_methods_supported, [
      'client_secret_basic',
      'client_secret_post',
      'private_key_jwt',
    ])
    assert.deepEqual(body.token_endpoint_auth_signing_alg_values_supported, ['RS384', 'ES384'])
    assert.deepEqual(body.code_challenge_methods_supported, ['S256'])
  })

  it('advertises only capabilities that work (DISCOVERY-3)', () => {
    assert.deepEqual(buildSmartConfiguration(testSettings).capabilities, [
      'launch-ehr',
      'launch-standalone',
      'authorize-post',
      'client-public',
      'client-confidential-symmetric',
      'client-confidential-asymmetric',
      'sso-openid-connect',
      'context-banner',
      'context-style',
      'context-ehr-patient',
      'context-ehr-encounter',
      'context-standalone-patient',
      'context-standalone-encounter',
      'permission-offline',
      'permission-online',
      'permission-v1',
      'permission-v2',
      'permission-patient',
      'permission-user',
    ])
  })

  it('lists the supported scopes', () => {
    assert.deepEqual(buildSmartConfiguration(testSettings).scopes_supported, [
      'openid',
      'fhirUser',
      'profile',
      'online_access',
      'offline_access',
      'launch',
      'launch/patient',
      'launch/encounter',
      'patient/*.rs',
      'patient/*.cruds',
      'user/*.rs',
      'user/*.cruds',
      'system/*.rs',
      'system/*.cruds',
    ])
  })

  it('has no registration endpoint if registration is closed', () => {
    const closed = { ...testSettings, openRegistration: false }
    assert.equal('registration_endpoint' in buildSmartConfiguration(closed), false)
    const byToken = { ...closed, registrationToken: 'an initial access token' }
    assert.equal('registration_endpoint' in buildSmartConfiguration(byToken), true)
  })

  it('omits scopes that the FHIR server does not honour (DISCOVERY-3)', () => {
    const body = buildSmartConfiguration({ ...testSettings, fhir: { scopeContexts: ['patient'] } })
    assert.equal(body.capabilities.includes('permission-user'), false)
    assert.equal(
      body.scopes_supported.some(scope => scope.startsWith('user/')),
      false,
    )
  })
})

describe('buildResourceDocuments', () => {
  const [fhir, mcp] = ['http://localhost:8080/fhir', 'http://localhost:8080/fhir/mcp'] as const
  const listResources = (documents: Readonly<Record<string, object>>) =>
    Object.entries(documents).map(([path, document]) => [path, 'resource' in document && document.resource])

  it('describes the endpoint of assistants and the FHIR base at their paths (AGENT-3)', () => {
    const documents = buildResourceDocuments(testSettings)
    assert.deepEqual(listResources(documents), [
      ['/.well-known/oauth-protected-resource', mcp],
      ['/.well-known/oauth-protected-resource/fhir', fhir],
      ['/.well-known/oauth-protected-resource/fhir/mcp', mcp],
    ])
    assert.deepEqual(documents['/.well-known/oauth-protected-resource/fhir/mcp'], {
      resource: mcp,
      authorization_servers: ['http://localhost:9000'],
      scopes_supported: MCP_SCOPES,
      bearer_methods_supported: ['header'],
    })
  })

  it('describes no endpoint of assistants that is off', () => {
    const agents = { ...testSettings.agents, enabled: false }
    assert.deepEqual(listResources(buildResourceDocuments({ ...testSettings, agents })), [
      ['/.well-known/oauth-protected-resource', fhir],
      ['/.well-known/oauth-protected-resource/fhir', fhir],
    ])
  })
})
