import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { AuthHouse } from '../testing/auth-house.ts'
import { oneStore } from '../testing/one-store.ts'
import { testSettings } from '../testing/settings.ts'
import { smartConfiguration } from './smart-configuration.ts'

describe('discovery documents', () => {
  const open = oneStore()

  it('name the addresses below the issuer, whatever the Host header says', async () => {
    const house = await AuthHouse.open(await open(), { settings: { issuerUrl: 'https://auth.example' } })
    for (const name of ['openid-configuration', 'oauth-authorization-server']) {
      const response = await house.app.inject({
        url: `/.well-known/${name}`,
        headers: { host: 'evil.example' },
      })
      assert.equal(response.statusCode, 200)
      assert.equal(response.headers['access-control-allow-origin'], '*')
      const body = response.json()
      assert.equal(body.issuer, 'https://auth.example')
      assert.equal(body.authorization_endpoint, 'https://auth.example/oauth2/authorize')
      assert.equal(body.token_endpoint, 'https://auth.example/oauth2/token')
      assert.equal(body.jwks_uri, 'https://auth.example/oauth2/jwks')
      assert.deepEqual(body.code_challenge_methods_supported, ['S256'])
      assert.equal(body.authorization_response_iss_parameter_supported, true)
    }
  })

  it('have what OIDC Discovery requires', async () => {
    const house = await AuthHouse.open(await open())
    const body = (await house.visitor().get('/.well-known/openid-configuration')).json()
    assert.deepEqual(body.subject_types_supported, ['public'])
    assert.deepEqual(body.id_token_signing_alg_values_supported, ['RS256'])
    assert.deepEqual(body.response_types_supported, ['code'])
  })
})

describe('smartConfiguration', () => {
  it('has every required field, absolute addresses, and S256 without plain', () => {
    const body = smartConfiguration(testSettings)
    for (const name of ['issuer', 'jwks_uri', 'authorization_endpoint', 'token_endpoint'] as const)
      assert.ok(URL.canParse(body[name]), name)
    assert.deepEqual(body.grant_types_supported, ['authorization_code', 'refresh_token'])
    assert.deepEqual(body.code_challenge_methods_supported, ['S256'])
  })

  it('advertises what works now and nothing else', () => {
    assert.deepEqual(smartConfiguration(testSettings).capabilities, [
      'launch-ehr',
      'authorize-post',
      'client-public',
      'client-confidential-symmetric',
      'sso-openid-connect',
      'context-banner',
      'context-ehr-patient',
      'context-ehr-encounter',
      'permission-offline',
      'permission-online',
      'permission-v1',
      'permission-v2',
      'permission-patient',
      'permission-user',
    ])
  })

  it('names the scopes of an EHR launch, and none that would need a picker', () => {
    assert.deepEqual(smartConfiguration(testSettings).scopes_supported, [
      'openid',
      'fhirUser',
      'profile',
      'online_access',
      'offline_access',
      'launch',
      'patient/*.rs',
      'patient/*.cruds',
      'user/*.rs',
      'user/*.cruds',
    ])
  })

  it('leaves out what the FHIR server does not honour', () => {
    const body = smartConfiguration({ ...testSettings, fhir: { scopeContexts: ['patient'] } })
    assert.equal(body.capabilities.includes('permission-user'), false)
    assert.equal(
      body.scopes_supported.some(scope => scope.startsWith('user/')),
      false,
    )
  })
})
