import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { AGENT, addAgent, askAsAgent, getAgentTokens, MCP } from '../../testing/agent.ts'
import { readForm } from '../../testing/read-form.ts'
import { testSettings } from '../../testing/settings.ts'
import { decodeClaims, readRedirect, TestAuthServer } from '../../testing/test-auth-server.ts'
import type { TestBrowser } from '../../testing/test-browser.ts'
import { openTestStore } from '../../testing/test-store.ts'
import { switchAgents } from '../grants/agents-switch.ts'
import { computeRevocationKey } from '../revocation/list.ts'

describe('the grant of an agent', () => {
  const open = openTestStore()
  let auth: TestAuthServer
  let browser: TestBrowser
  before(async () => {
    auth = await TestAuthServer.open(await open())
    await addAgent(auth)
    browser = await auth.logIn()
  })

  const allow = async (scope: string, ...more: readonly string[]) => {
    const { allow } = await askAsAgent(auth, browser, { scope })
    const { code = '' } = readRedirect(await allow(...more))
    return (await auth.exchange(code, AGENT)).json()
  }

  it('is asked for in words, of one patient whom the person picks (AGENT-7)', async () => {
    const { page } = await askAsAgent(auth, browser, { scope: 'patient/Observation.rs patient/Condition.rs' })
    const text = page.body.replace(/<[^>]+>/g, '')
    assert.match(
      text,
      /This assistant may read [a-z ,]+ of Juniper, Alba for 15 minutes\. It cannot change anything\./,
    )
    assert.match(text, /its access ends after 15 minutes/)
  })

  it('is to propose changes that the person signs, never to change something (AGENT-7)', async () => {
    const { page } = await askAsAgent(auth, browser, { scope: 'patient/Condition.cruds' })
    const text = page.body.replace(/<[^>]+>/g, '')
    assert.match(
      text,
      /It may propose changes that you sign, if you select that\. It cannot change anything itself\./,
    )
    assert.match(text, /Propose changes of conditions/)
    assert.match(text, /The assistant may propose changes that you sign\./)
    assert.doesNotMatch(text, /Writes to the record|may (create|change)/i)
  })

  it('changes nothing unless the person selects it (AGENT-7)', async () => {
    const scope = 'patient/Condition.cruds'
    assert.equal((await allow(scope)).scope, 'patient/Condition.rs')
    assert.equal((await allow(scope, 'patient/Condition.cud')).scope, scope)
  })

  it('has neither offline_access nor user/ scopes, unless settings allow them (AGENT-7)', async () => {
    const scope = 'offline_access user/Patient.rs patient/Patient.rs'
    assert.equal((await allow(scope, 'offline_access')).scope, 'patient/Patient.rs')
    const agents = {
      ...testSettings.agents,
      offlineAccess: true,
      scopeContexts: ['patient', 'user'] as const,
    }
    const other = await TestAuthServer.open(await open(), { settings: { agents } })
    await addAgent(other)
    const asked = await askAsAgent(other, await other.logIn(), { scope })
    const { code = '' } = readRedirect(await asked.allow('offline_access'))
    assert.equal((await other.exchange(code, AGENT)).json().scope, scope)
  })

  it('has at most what the client is registered for, and asks also for a first-party client', async () => {
    await auth.addClient({
      client_id: 'own',
      scope: 'patient/Condition.rs',
      redirect_uris: JSON.stringify([AGENT.redirect_uri]),
    })
    const asked = await askAsAgent(auth, browser, {
      client_id: 'own',
      scope: 'patient/Condition.rs patient/Patient.rs',
    })
    assert.match(asked.page.body, /This assistant<\/b> may read/)
    const { code = '' } = readRedirect(await asked.allow())
    const tokens = (await auth.exchange(code, { ...AGENT, client_id: 'own' })).json()
    assert.equal(tokens.scope, 'patient/Condition.rs')
  })

  it('lasts 15 minutes also without online_access, although an access token lasts 5 (AGENT-7)', async () => {
    const tokens = await allow('patient/Patient.rs')
    assert.deepEqual([tokens.scope, tokens.expires_in], ['patient/Patient.rs', 300])
    auth.time.now += 10 * 60_000
    const later = await auth.refresh(tokens.refresh_token, { client_id: AGENT.client_id })
    assert.equal(later.statusCode, 200)
    auth.time.now += 5 * 60_000 + 1
    const refused = await auth.refresh(later.json().refresh_token, { client_id: AGENT.client_id })
    assert.equal(refused.json().error, 'invalid_grant')
    browser = await auth.logIn()
  })

  it('ends 15 minutes after the consent, however often its token is refreshed (AGENT-7)', async () => {
    const tokens = await allow('online_access patient/Patient.rs')
    assert.ok(tokens.refresh_token_expires_in <= 900)
    auth.time.now += 14 * 60_000
    const refresh = (token: string) => auth.refresh(token, { client_id: AGENT.client_id })
    const late = (await refresh(tokens.refresh_token)).json()
    assert.ok(late.expires_in <= 60)
    const { exp, iat } = decodeClaims(late.access_token)
    assert.ok(Number(exp) - Number(iat) <= 60)
    auth.time.now += 60_001
    assert.equal((await refresh(late.refresh_token)).json().error, 'invalid_grant')
    browser = await auth.logIn()
  })

  it('is asked for again when the agent needs more, with what is added (AGENT-7)', async () => {
    await allow('patient/Observation.rs')
    const { page } = await askAsAgent(auth, browser, { scope: 'patient/Observation.rs patient/Condition.rs' })
    assert.match(page.body, /It asks for more\.<\/b> It already may read [a-z ]+\. This adds [a-z ]+\./)
  })

  it('is shown as that of an assistant, to its person and to administrators', async () => {
    await auth.addUser('boss', { admin: true })
    await allow('patient/Observation.rs')
    assert.match((await browser.get('/manage')).body, /Scribe[\s\S]*?<span class="badge[^>]*>Assistant</)
    const boss = await auth.logIn('boss')
    assert.match(
      (await boss.get('/admin/access')).body,
      /Scribe<\/a>&ensp;<span class="badge[^>]*>Assistant</,
    )
    assert.match((await boss.get('/admin/system')).body, /href="\/admin\/agents\/off"/)
  })

  it('leaves the consent page of apps as it is', async () => {
    const launch = await auth.launch(browser)
    const page = await browser.get(
      (await auth.authorize(browser, { launch, prompt: 'consent' })).headers.location ?? '',
    )
    assert.doesNotMatch(page.body, /assistant/i)
    assert.ok(readForm(page.body).has('scope'))
  })

  it('ends for every agent when they are switched off, and none gets a token until they are on (AGENT-8)', async () => {
    const list = async () => (await browser.get(`/oauth2/revocations?since=${auth.time.now}`)).json()
    const tokens = await allow('online_access patient/Patient.rs')
    const pending = await askAsAgent(auth, browser)
    const ofApp = (await auth.exchange(await auth.getCode(browser))).json()
    assert.deepEqual((await list()).refused, [])
    await switchAgents(auth.store.db, 'off', auth.time.now)
    auth.time.now += 1_000
    const [grantId = ''] = String(decodeClaims(tokens.access_token).jti).split('.')
    const { refused, revoked } = await list()
    assert.deepEqual(refused, [computeRevocationKey(MCP)])
    assert.ok(revoked.includes(computeRevocationKey(grantId)))
    const refresh = () => auth.refresh(tokens.refresh_token, { client_id: AGENT.client_id })
    assert.equal((await refresh()).json().error, 'invalid_grant')
    assert.equal(readRedirect(await pending.allow()).error, 'access_denied')
    const asked = await auth.authorize(browser, { ...AGENT, resource: MCP, scope: 'patient/Patient.rs' })
    assert.equal(readRedirect(asked).error, 'access_denied')
    assert.equal((await auth.refresh(ofApp.refresh_token)).statusCode, 200)
    await switchAgents(auth.store.db, 'on', auth.time.now)
    auth.time.now += 1_000
    assert.deepEqual((await list()).refused, [])
    assert.equal((await refresh()).json().error, 'invalid_grant')
    assert.ok((await getAgentTokens(auth, browser)).access_token)
  })
})
