import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, beforeEach, describe, it } from 'node:test'
import { isFailure } from '../../../core/index.ts'
import { LIMITS } from '../../base/limits.ts'
import { askAsAgent, MCP } from '../../testing/agent.ts'
import { testSettings } from '../../testing/settings.ts'
import { SigningClient } from '../../testing/signing-client.ts'
import { decodeClaims, readRedirect, TestAuthServer } from '../../testing/test-auth-server.ts'
import type { TestBrowser } from '../../testing/test-browser.ts'
import { openTestStore } from '../../testing/test-store.ts'
import { createDescribedClients } from './client-document.ts'

const CALLBACK = 'https://scribe.example/callback'

describe('a client ID metadata document', () => {
  const open = openTestStore()
  let auth: TestAuthServer
  let browser: TestBrowser
  let server: Server
  let origin: string
  const served = { document: {} as unknown, cacheControl: 'max-age=60', status: 200, requests: 0 }
  let id: string
  let count = 0

  before(async () => {
    auth = await TestAuthServer.open(await open())
    browser = await auth.logIn()
    server = createServer((_request, response) => {
      served.requests += 1
      response.writeHead(served.status, { 'cache-control': served.cacheControl, location: '/elsewhere' })
      response.end(JSON.stringify(served.document))
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  beforeEach(() => {
    id = `${origin}/client-${++count}.json`
    Object.assign(served, { document: makeDocument(), cacheControl: 'max-age=60', status: 200, requests: 0 })
  })
  after(() => server.close())

  const makeDocument = (more: Readonly<Record<string, unknown>> = {}) => ({
    client_id: id,
    client_name: 'Scribe',
    redirect_uris: [CALLBACK],
    ...more,
  })
  const identify = () => ({ client_id: id, redirect_uri: CALLBACK })
  const ask = () => auth.authorize(browser, { ...identify(), resource: MCP, scope: 'patient/Patient.rs' })
  const findClient = () =>
    auth.store.db.selectFrom('client').selectAll().where('client_id', '=', id).executeTakeFirst()

  it('is a registration: its client gets a token for the endpoint, after a consent (AGENT-5)', async () => {
    const { page, allow } = await askAsAgent(auth, browser, identify())
    assert.match(
      page.body,
      /Unverified app\.<\/b> 127\.0\.0\.1:\d+ describes it, it returns to scribe\.example/,
    )
    const { code = '' } = readRedirect(await allow())
    const { access_token } = (await auth.exchange(code, identify())).json()
    const { aud, client_id } = decodeClaims(access_token)
    assert.deepEqual([aud, client_id], [MCP, id])
    const { approved, first_party, launch_url } = (await findClient()) ?? {}
    assert.deepEqual([Boolean(approved), Boolean(first_party), launch_url], [false, false, null])
  })

  it('says that a program on this device may be any', async () => {
    const redirect_uri = 'http://127.0.0.1:7777/callback'
    served.document = makeDocument({ redirect_uris: ['http://127.0.0.1/callback', 'cursor://x'] })
    const { page } = await askAsAgent(auth, browser, { ...identify(), redirect_uri })
    assert.match(page.body, /it returns to a program on this device, which may be any/)
  })

  it('is fetched again only when it is no longer fresh, by its headers (AGENT-5)', async () => {
    for (let request = 0; request < 3; request++) await ask()
    assert.equal(served.requests, 1)
    auth.time.now += 60_001
    served.document = makeDocument({ client_name: 'Renamed' })
    await ask()
    assert.equal(served.requests, 2)
    assert.equal((await findClient())?.name, 'Renamed')
  })

  it('must be readable when it is no longer fresh', async () => {
    await ask()
    auth.time.now += 60_001
    served.status = 404
    assert.match((await ask()).body, /document of the app cannot be fetched/)
  })

  it('is fetched at most every five seconds while it is faulty', async () => {
    served.document = []
    for (let request = 0; request < 3; request++) assert.equal((await ask()).statusCode, 400)
    assert.equal(served.requests, 1)
    auth.time.now += 5_001
    served.document = makeDocument()
    assert.equal((await ask()).statusCode, 302)
  })

  it('does not redirect (AGENT-6)', async () => {
    served.status = 302
    assert.match((await ask()).body, /cannot be fetched/)
    assert.equal(served.requests, 1)
  })

  for (const [name, more] of [
    ['another client_id', { client_id: 'https://other.example/client' }],
    ['no name', { client_name: undefined }],
    ['a name with control characters', { client_name: 'Scribe\u202e' }],
    ['no redirect URIs', { redirect_uris: [] }],
    [
      'only redirect URIs that no app may have',
      { redirect_uris: ['http://scribe.example/', 'javascript:x'] },
    ],
    ['a secret', { client_secret: 'x' }],
    ['a method with a secret', { token_endpoint_auth_method: 'client_secret_post' }],
    ['a method without its keys', { token_endpoint_auth_method: 'private_key_jwt' }],
    ['scopes of backend services', { scope: 'system/*.rs' }],
    ['scopes of the administration', { scope: 'sallyport/admin __launch-contexts.c' }],
    ['too much', { client_name: 'x'.repeat(300_000) }],
  ] as const)
    it(`with ${name} is refused on a page, and stores nothing (AGENT-5)`, async () => {
      served.document = makeDocument(more)
      const response = await ask()
      assert.equal(response.statusCode, 400)
      assert.equal(response.headers.location, undefined)
      assert.equal(await findClient(), undefined)
    })

  it('may limit the scopes, and a scope that it no longer has ends the access', async () => {
    served.document = makeDocument({ scope: 'patient/Patient.rs' })
    const { allow } = await askAsAgent(auth, browser, {
      ...identify(),
      scope: 'patient/*.cruds online_access',
    })
    const { code = '' } = readRedirect(await allow())
    assert.equal((await auth.exchange(code, identify())).json().scope, 'patient/Patient.rs')
    const second = await askAsAgent(auth, browser, { ...identify(), scope: 'patient/Patient.rs' })
    const { code: other = '' } = readRedirect(await second.allow())
    served.document = makeDocument({ scope: 'patient/Condition.rs' })
    await auth.store.db.updateTable('client').set({ document_until: 0 }).execute()
    await ask()
    assert.equal((await auth.exchange(other, identify())).json().error, 'invalid_grant')
  })

  it('may name keys, which its client must sign with', async () => {
    const signer = new SigningClient(id, auth.time)
    served.document = makeDocument({
      token_endpoint_auth_method: 'private_key_jwt',
      jwks: JSON.parse(signer.jwks),
    })
    const { allow } = await askAsAgent(auth, browser, identify())
    const { code = '' } = readRedirect(await allow())
    assert.equal((await auth.exchange(code, identify())).json().error, 'invalid_client')
    const proof = signer.makeProof({ aud: `${auth.settings.issuerUrl}/oauth2/token` })
    assert.equal((await auth.exchange(code, { ...identify(), ...proof })).statusCode, 200)
  })

  it('gives no access to the FHIR base', async () => {
    const refused = await auth.authorize(browser, identify())
    assert.match(refused.body, /endpoint of assistants only/)
  })

  it('describes nobody whom an administrator disabled', async () => {
    await ask()
    await auth.store.db.updateTable('client').set({ disabled: true }).where('client_id', '=', id).execute()
    auth.time.now += 60_001
    assert.match((await ask()).body, /not registered/)
    assert.equal(served.requests, 1)
  })

  it('loses the approval of an administrator with another name or redirect URI', async () => {
    const isApproved = async () => {
      auth.time.now += 60_001
      await ask()
      return Boolean((await findClient())?.approved)
    }
    await ask()
    await auth.store.db.updateTable('client').set({ approved: true }).where('client_id', '=', id).execute()
    assert.equal(await isApproved(), true)
    served.document = makeDocument({ redirect_uris: [CALLBACK, 'https://elsewhere.example/'] })
    assert.equal(await isApproved(), false)
  })

  it('is not fetched for a client that is registered with a URL as its id', async () => {
    await auth.addClient({ client_id: id, redirect_uris: JSON.stringify([CALLBACK]), first_party: false })
    await ask()
    assert.equal(served.requests, 0)
  })

  it('is accepted off loopback only from hosts that the settings name (AGENT-6)', async () => {
    const read = async (clientHosts: readonly string[], url: string) => {
      let requests = 0
      const clients = createDescribedClients({
        store: await open(),
        settings: {
          ...testSettings,
          onLoopback: false,
          agents: { ...testSettings.agents, clientHosts },
        },
        clock: () => 0,
        fetchDocument: async () => {
          requests += 1
          return undefined
        },
      })
      const refused = await clients.refresh(url)
      return [isFailure(refused) && refused.reason, requests]
    }
    const url = 'https://agent.example/client'
    assert.deepEqual(await read([], url), ['client-host-not-allowed', 0])
    assert.deepEqual(await read(['other.example'], url), ['client-host-not-allowed', 0])
    assert.deepEqual(await read(['agent.example'], url), ['client-document-unavailable', 1])
    assert.deepEqual(await read(['agent.example'], 'https://sub.agent.example/x'), [
      'client-host-not-allowed',
      0,
    ])
  })

  it('of a known agent is fetched while those of made-up URLs keep their share of fetches busy (AGENT-5)', async () => {
    const store = await open()
    let now = 0
    const known = 'https://agent.example/known'
    const document = { client_id: known, client_name: 'Scribe', redirect_uris: [CALLBACK] }
    const clients = createDescribedClients({
      store,
      settings: testSettings,
      clock: () => now,
      fetchDocument: url =>
        url === known ? Promise.resolve({ json: document, freshForMs: 0 }) : new Promise(() => {}),
    })
    assert.equal(await clients.refresh(known), undefined)
    now += 60_000
    for (let at = 0; at < LIMITS.keySetFetchesOfStrangers; at++)
      void clients.refresh(`https://agent.example/${at}`)
    while (!isFailure(await clients.refresh('https://agent.example/one-more'))) now += 1
    assert.equal(await clients.refresh(known), undefined)
  })

  for (const url of [
    'https://agent.example',
    'https://agent.example/',
    'https://agent.example/a/../b',
    'https://AGENT.example/a',
    'https://agent.example/a#b',
    'https://me@agent.example/a',
    'ftp://agent.example/a',
    'agent.example/a',
  ])
    it(`has another URL than ${url}`, async () => {
      let requests = 0
      const clients = createDescribedClients({
        store: auth.store,
        settings: auth.settings,
        clock: () => 0,
        fetchDocument: async () => {
          requests += 1
          return undefined
        },
      })
      assert.deepEqual([await clients.refresh(url), requests], [undefined, 0])
    })

  it('is announced where documents of some host are accepted (AGENT-6)', async () => {
    const read = async (settings: object) => {
      const other = await TestAuthServer.open(await open(), { settings })
      const response = await other.openBrowser().get('/.well-known/oauth-authorization-server')
      return response.json().client_id_metadata_document_supported
    }
    const agents = (more: object) => ({ agents: { ...testSettings.agents, ...more } })
    assert.equal(await read({}), true)
    assert.equal(await read(agents({ enabled: false })), undefined)
    const remote = { onLoopback: false, issuerUrl: 'https://auth.example' }
    assert.equal(await read({ ...remote, ...agents({}) }), undefined)
    assert.equal(await read({ ...remote, ...agents({ clientHosts: ['agent.example'] }) }), true)
  })
})
