import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { AGENT, addAgent, askAsAgent, getAgentTokens, MCP } from '../../testing/agent.ts'
import { addBackend } from '../../testing/backend.ts'
import { testSettings } from '../../testing/settings.ts'
import { SigningClient } from '../../testing/signing-client.ts'
import { decodeClaims, readRedirect, TestAuthServer } from '../../testing/test-auth-server.ts'
import type { TestBrowser } from '../../testing/test-browser.ts'
import { openTestStore } from '../../testing/test-store.ts'

const FHIR = 'http://localhost:8080/fhir'

describe('the resource of a request (RFC 8707)', () => {
  const open = openTestStore()
  let auth: TestAuthServer
  let browser: TestBrowser
  before(async () => {
    auth = await TestAuthServer.open(await open())
    await addAgent(auth)
    browser = await auth.logIn()
  })

  const getCode = async () => {
    const { allow } = await askAsAgent(auth, browser, { scope: 'online_access patient/Observation.rs' })
    return readRedirect(await allow()).code ?? ''
  }

  it('is the audience of the access token, at the code and at each refresh (AGENT-1)', async () => {
    const { access_token, refresh_token = '' } = (await auth.exchange(await getCode(), AGENT)).json()
    const { aud, scope, patient } = decodeClaims(access_token)
    assert.deepEqual([aud, scope, patient], [MCP, 'online_access patient/Observation.rs', 'juniper'])
    const refreshed = await auth.refresh(refresh_token, { client_id: AGENT.client_id, resource: MCP })
    assert.equal(decodeClaims(refreshed.json().access_token).aud, MCP)
  })

  it('may be named again with a slash at its end, and by aud', async () => {
    for (const named of [{ resource: `${MCP}/` }, { resource: undefined, aud: MCP }, { aud: FHIR }]) {
      const { access_token } = await getAgentTokens(auth, browser, named)
      assert.equal(decodeClaims(access_token).aud, MCP, JSON.stringify(named))
    }
  })

  it('is the FHIR base for an app, with aud or with resource', async () => {
    for (const named of [{ resource: FHIR }, { aud: undefined, resource: `${FHIR}/` }, {}]) {
      const { access_token } = (await auth.exchange(await auth.getCode(browser, named))).json()
      assert.equal(decodeClaims(access_token).aud, FHIR, JSON.stringify(named))
    }
  })

  for (const resource of [
    'https://other.example/fhir',
    `${MCP}2`,
    `${MCP}#x`,
    `${MCP}?x=1`,
    'http://localhost:8080',
    'HTTP://LOCALHOST:8080/fhir/mcp',
    'x',
  ])
    it(`refuses ${resource} in an authorization request with invalid_target`, async () => {
      const refused = readRedirect(await auth.authorize(browser, { resource }))
      assert.equal(refused.error, 'invalid_target')
      assert.equal(readRedirect(await auth.authorize(browser, { aud: resource })).error, 'invalid_request')
    })

  it('refuses two resources', async () => {
    const request = new URLSearchParams(auth.makeParameters({ resource: MCP }))
    request.append('resource', FHIR)
    const refused = readRedirect(await browser.get(`/oauth2/authorize?${request}`))
    assert.equal(refused.error, 'invalid_request')
  })

  it('refuses another resource at the token endpoint, which uses up neither code nor refresh token (AGENT-2)', async () => {
    const code = await getCode()
    assert.equal((await auth.exchange(code, { ...AGENT, resource: FHIR })).json().error, 'invalid_target')
    const exchanged = await auth.exchange(code, { ...AGENT, resource: MCP })
    assert.equal(exchanged.statusCode, 200)
    const { refresh_token = '' } = exchanged.json()
    const refresh = (resource: string) =>
      auth.refresh(refresh_token, { client_id: AGENT.client_id, resource })
    assert.equal((await refresh(FHIR)).json().error, 'invalid_target')
    assert.equal((await refresh(MCP)).statusCode, 200)
    const ofApp = await auth.getCode(browser)
    assert.equal((await auth.exchange(ofApp, { resource: MCP })).json().error, 'invalid_target')
    assert.equal((await auth.exchange(ofApp, { resource: FHIR })).statusCode, 200)
  })

  it('is no resource of this server while agents are off', async () => {
    const agents = { ...testSettings.agents, enabled: false }
    const off = await TestAuthServer.open(await open(), { settings: { agents } })
    await addAgent(off)
    const refused = await off.authorize(await off.logIn(), { ...AGENT, resource: MCP })
    assert.equal(readRedirect(refused).error, 'invalid_target')
  })

  it('is in the introspection response', async () => {
    await addBackend(auth, 'reader', 'system/*.rs')
    const { access_token = '' } = await getAgentTokens(auth, browser)
    const proof = new SigningClient('reader', auth.time).makeProof({
      aud: `${auth.settings.issuerUrl}/oauth2/token`,
    })
    const service = await auth.requestToken({
      grant_type: 'client_credentials',
      scope: 'system/*.rs',
      ...proof,
    })
    const response = await auth
      .openBrowser()
      .post(
        '/oauth2/introspect',
        { token: access_token },
        { authorization: `Bearer ${service.json().access_token}` },
      )
    assert.deepEqual([response.json().active, response.json().aud], [true, MCP])
  })

  for (const [scopeContexts, expected] of [
    [['patient'], 'invalid_target'],
    [['patient', 'system'], MCP],
  ] as const)
    it(`a backend service that names it gets ${expected} with smart.agents.scope-contexts ${scopeContexts} (AGENT-4)`, async () => {
      const agents = { ...testSettings.agents, scopeContexts }
      const other = await TestAuthServer.open(await open(), { settings: { agents } })
      await addBackend(other, 'rounds', 'system/Patient.rs')
      const proof = new SigningClient('rounds', other.time).makeProof({
        aud: `${other.settings.issuerUrl}/oauth2/token`,
      })
      const form = { grant_type: 'client_credentials', scope: 'system/Patient.rs', resource: MCP, ...proof }
      const body = (await other.requestToken(form)).json()
      assert.equal(body.error ?? decodeClaims(body.access_token).aud, expected)
    })
})
