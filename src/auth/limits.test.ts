import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { before, describe, it } from 'node:test'
import { eachDatabaseIfThorough } from '../../test/support/databases.ts'
import { sha256 } from '../store/index.ts'
import { findSite } from '../web/http/index.ts'
import { SigningClient } from './testing/signing-client.ts'
import { readRedirect, TestAuthServer } from './testing/test-auth-server.ts'
import type { TestBrowser } from './testing/test-browser.ts'
import { openTestStore } from './testing/test-store.ts'

/** This many scopes, which differ only in their search parameters. */
function granular(count: number, context = 'patient'): string {
  return Array.from({ length: count }, (_, at) => `${context}/Observation.rs?code=x|${at}`).join(' ')
}

describe('limits of scopes', () => {
  const open = openTestStore()
  const APP = { client_id: 'app', redirect_uri: 'https://app.example/callback' }
  let auth: TestAuthServer
  let browser: TestBrowser
  before(async () => {
    auth = await TestAuthServer.open(await open())
    const signer = new SigningClient('signer', auth.time)
    await auth.addClient({ client_id: 'app', scope: `launch offline_access ${granular(98)}` })
    await auth.addClient({
      client_id: 'signer',
      scope: granular(100, 'system'),
      auth_method: 'private_key_jwt',
      jwks: signer.jwks,
    })
    browser = await auth.logIn()
  })

  it('allow a client to request, approve and refresh 100 scopes', async () => {
    const scope = `launch offline_access ${granular(98)}`
    const launch = await auth.launch(browser, { clientId: 'app' })
    const response = await auth.authorize(browser, { ...APP, scope, launch, prompt: 'consent' })
    const page = await browser.get(response.headers.location ?? '')
    assert.equal(page.body.match(/type="checkbox"/g)?.length, 99)
    const code = await auth.getCode(browser, { ...APP, scope })
    const tokens = (await auth.exchange(code, APP)).json()
    assert.equal(tokens.scope, scope)
    const renewed = await auth.refresh(tokens.refresh_token, { client_id: 'app', scope })
    assert.equal(renewed.json().scope, scope)
  })

  it('refuse a request for more than 100 at every endpoint that accepts scopes (LIMIT-2)', async () => {
    const error = /^The scope is invalid: it has more than 100 scopes\.$/
    const asked = readRedirect(await auth.authorize(browser, { ...APP, scope: granular(101) }))
    assert.equal(asked.error, 'invalid_scope')
    assert.match(asked.error_description ?? '', error)

    const code = await auth.getCode(browser, { ...APP, scope: `launch offline_access ${granular(1)}` })
    const tokens = (await auth.exchange(code, APP)).json()
    const refreshed = await auth.refresh(tokens.refresh_token, { client_id: 'app', scope: granular(101) })
    assert.match(refreshed.json().error_description, error)

    const signer = new SigningClient('signer', auth.time)
    const granted = await auth.requestToken({
      grant_type: 'client_credentials',
      scope: granular(101, 'system'),
      ...signer.makeProof(),
    })
    assert.match(granted.json().error_description, error)

    const registered = await auth.app.inject({
      method: 'POST',
      url: '/oauth2/register',
      payload: { redirect_uris: [APP.redirect_uri], scope: granular(101) },
    })
    assert.equal(registered.statusCode, 400)
    assert.match(registered.json().error_description, error)
  })

  it('refuse a scope with more than 6 search parameters, and combinations to more than 100 scopes', async () => {
    const long = `patient/Observation.rs?${Array.from({ length: 7 }, (_, at) => `p${at}=x`).join('&')}`
    assert.match(
      readRedirect(await auth.authorize(browser, { ...APP, scope: long })).error_description ?? '',
      /more than 6 search parameters/,
    )
    const combined = Array.from({ length: 26 }, (_, at) => `patient/Observation.rs?code=${at}&status=s${at}`)
    assert.match(
      readRedirect(await auth.authorize(browser, { ...APP, scope: combined.join(' ') })).error_description ??
        '',
      /more than 50 search parameters in scopes that combine several/,
    )
    const launch = await auth.launch(browser, { clientId: 'app' })
    const scope = 'launch patient/Observation.rs?status=final patient/Observation.rs?status=amended'
    assert.match(
      readRedirect(await auth.authorize(browser, { ...APP, scope, launch })).error_description ?? '',
      /combines with the registered granular scopes to more than 100 scopes/,
    )
  })
})

describe('limits of data that unauthenticated users store', () => {
  const open = openTestStore()
  let auth: TestAuthServer
  before(async () => {
    auth = await TestAuthServer.open(await open())
  })
  const stored = async () =>
    (await auth.store.db.selectFrom('authorization_request').select('request').execute()).map(
      it => it.request,
    )
  const pending = async () => (await stored()).length

  it('refuse a parameter that is too long, by a redirect or, for state, on a page', async () => {
    const longest = { nonce: 1_024, scope: 8_000, login_hint: 256, id_token_hint: 8_192, launch: 256 }
    for (const [name, limit] of Object.entries(longest)) {
      const response = await postAuthorize({ [name]: 'x'.repeat(limit + 1) })
      const { error, error_description, state } = readRedirect(response)
      assert.equal(error, 'invalid_request')
      assert.equal(error_description, `The parameter ${name} is longer than ${limit} characters.`)
      assert.equal(state, 'state-1')
    }
    for (const [name, limit] of [
      ['state', 4_096],
      ['redirect_uri', 2_000],
    ] as const) {
      const page = await postAuthorize({ [name]: 'x'.repeat(limit + 1) })
      assert.equal(page.statusCode, 400)
      assert.ok(page.body.includes(`The parameter ${name} is longer than ${limit} characters.`))
    }
    assert.equal(await pending(), 0)
  })

  it('accept parameters at their limits', async () => {
    const different = { state: 's'.repeat(4_096), nonce: 'n'.repeat(1_024), login_hint: 'l'.repeat(256) }
    assert.match((await postAuthorize(different)).headers.location ?? '', /^\/oauth2\/resume/)
    assert.equal(await pending(), 1)
  })

  it('keep a stored request small, however often a parameter is repeated', async () => {
    const size = async () => (await stored()).join('').length
    const before = await size()
    assert.ok((await postAuthorize({ prompt: 'login '.repeat(10_000) })).headers.location)
    const added = (await size()) - before
    assert.ok(added > 0 && added < 2_000, `${added} characters`)
  })

  it('store at most 2,000 requests without a login per network, and never refuse other networks (LIMIT-4)', async () => {
    await fillPending('10.9.9.9', 2_000)
    const from = (remoteAddress: string) =>
      auth.app.inject({
        method: 'GET',
        url: `/oauth2/authorize?${new URLSearchParams(auth.makeParameters())}`,
        remoteAddress,
      })
    const refused = await from('10.9.9.9')
    assert.equal(refused.statusCode, 503)
    assert.match(refused.body, /2000 requests from one network/)
    assert.match((await from('10.9.9.8')).headers.location ?? '', /^\/login\?interaction=/)
    for (let network = 0; network < 4; network++) await fillPending(`10.9.8.${network}`, 2_000)
    assert.match((await from('10.9.9.8')).headers.location ?? '', /^\/login\?interaction=/)
    // The limit does not apply to a logged-in user.
    const browser = await auth.logIn()
    assert.ok((await auth.authorize(browser, { launch: await auth.launch(browser) })).headers.location)
    auth.time.now += 600_000
    assert.match((await from('10.9.9.9')).headers.location ?? '', /^\/login\?interaction=/)
  })

  it('leave room for a browser in which somebody signed in before, whatever its network stores (LIMIT-4)', async () => {
    const browser = await auth.logIn()
    await browser.post('/logout', {})
    await fillPending('127.0.0.1', 2_000)
    const location = async (cookies: ReadonlyMap<string, string>) => {
      const url = `/oauth2/authorize?${new URLSearchParams(auth.makeParameters())}`
      return (await auth.app.inject({ method: 'GET', url, cookies: Object.fromEntries(cookies) })).headers
        .location
    }
    assert.equal(await location(new Map()), undefined)
    assert.equal(await location(new Map([['sallyport-last-user', 'planted']])), undefined)
    assert.match((await location(browser.cookies)) ?? '', /^\/login\?interaction=/)
    auth.time.now += 600_000
  })

  it('restrict the size and the characters of a registration (HTTP-14)', async () => {
    const app = { redirect_uris: ['https://app.example/callback'], scope: 'openid' }
    const urls = (count: number, length = 40) =>
      Array.from({ length: count }, (_, at) => `https://app.example/${at}/`.padEnd(length, 'x'))
    const signer = new SigningClient('any', auth.time)
    const keys = (count: number) => ({ keys: Array.from({ length: count }, () => signer.jwk) })
    const cases: readonly (readonly [object, RegExp])[] = [
      [{ redirect_uris: urls(21) }, /at most 20 URLs/],
      [{ redirect_uris: urls(1, 2_001) }, /at most 2000 characters/],
      [{ post_logout_redirect_uris: urls(21) }, /at most 20 strings/],
      [{ client_name: 'n'.repeat(201) }, /at most 200 characters/],
      [{ client_name: 'Evil\u202e?drocer' }, /without invisible characters that change its display/],
      [{ logo_uri: urls(1, 2_001)[0] }, /at most 2000 characters/],
      [{ jwks: keys(51) }, /at most 50 keys/],
      [{ redirect_uris: urls(17, 1_900) }, /32000 characters/],
    ]
    for (const [more, error] of cases) {
      const refused = await register({ ...app, ...more })
      assert.equal(refused.statusCode, 400)
      assert.match(refused.json().error_description, error)
    }
    assert.equal((await register({ ...app, redirect_uris: urls(20), jwks: keys(50) })).statusCode, 201)
  })

  it('refuse registrations while there are 10,000 unverified clients', async () => {
    const metadata = { redirect_uris: ['https://app.example/callback'], scope: 'openid' }
    await addMany(auth, 10_000)
    const refused = await register(metadata)
    assert.equal(refused.statusCode, 403)
    assert.match(refused.json().error_description, /10000 unapproved clients/)
    await auth.store.db.updateTable('client').set({ approved: true }).execute()
    assert.equal((await register(metadata)).statusCode, 201)
  })

  const postAuthorize = (different: Readonly<Record<string, string>>) =>
    auth.openBrowser().post('/oauth2/authorize', auth.makeParameters(different))

  const register = (metadata: object) =>
    auth.app.inject({ method: 'POST', url: '/oauth2/register', payload: metadata })

  /** Stores this many pending requests of one network. */
  async function fillPending(address: string, count: number): Promise<void> {
    const rows = Array.from({ length: count }, () => ({
      id_hash: randomUUID(),
      request: '{}',
      network_hash: sha256(findSite(address)),
      created_at: auth.time.now,
      expires_at: auth.time.now + 600_000,
    }))
    for (let at = 0; at < count; at += 500)
      await auth.store.db
        .insertInto('authorization_request')
        .values(rows.slice(at, at + 500))
        .execute()
  }
})

eachDatabaseIfThorough((_name, open) => {
  describe('the cost of many clients', () => {
    let auth: TestAuthServer
    before(async () => {
      auth = await TestAuthServer.open(await open())
    })
    const preflight = (origin: string, app = auth.app) =>
      app.inject({ method: 'OPTIONS', url: '/oauth2/token', headers: { origin } })
    const allows = async (origin: string, app = auth.app) =>
      (await preflight(origin, app)).headers['access-control-allow-origin'] === origin

    it('includes no delay for origins that another instance registered, changed or removed', async () => {
      const other = await TestAuthServer.open(auth.store)
      assert.equal(await allows('https://new.example'), false)
      const registered = await other.app.inject({
        method: 'POST',
        url: '/oauth2/register',
        payload: { redirect_uris: ['https://new.example/callback', 'com.example.new:/cb'], scope: 'openid' },
      })
      assert.equal(registered.statusCode, 201, registered.body)
      assert.equal(await allows('https://new.example'), true)
      assert.equal(await allows('null'), false)
      const { client_id: id } = registered.json()
      await auth.store.db.deleteFrom('client').where('client_id', '=', id).execute()
      assert.equal(await allows('https://new.example', other.app), false)
      await other.app.close()
    })

    it('is the same for a preflight, a launch and the portal with 3,000 clients as with 100', async () => {
      const browser = await auth.logIn()
      const acts = {
        preflight: () => preflight('https://nobody.example'),
        launch: () => browser.post('/portal/launch', { patientId: 'juniper' }),
        portal: () => browser.get('/portal?patient=juniper'),
      }
      const timeOf = async (act: () => Promise<unknown>) => {
        const times: number[] = []
        for (let round = 0; round < 15; round++) {
          // Processor time: other processes on the machine do not count.
          const start = process.cpuUsage()
          await act()
          const { user, system } = process.cpuUsage(start)
          times.push(user + system)
        }
        return Math.min(...times)
      }
      await addMany(auth, 100)
      const few = new Map<string, number>()
      for (const [name, act] of Object.entries(acts)) few.set(name, await timeOf(act))
      await addMany(auth, 2_900)
      for (const [name, act] of Object.entries(acts)) {
        const grown = (await timeOf(act)) / (few.get(name) ?? 0)
        assert.ok(grown < 5, `${name} took ${grown.toFixed(1)} times as long`)
      }
    })
  })
})

/** Adds unverified clients. */
async function addMany({ store, time }: TestAuthServer, count: number): Promise<void> {
  const clients = Array.from({ length: count }, () => {
    const id = randomUUID()
    return {
      client_id: id,
      name: `App ${id}`,
      auth_method: 'none' as const,
      redirect_uris: JSON.stringify([`https://${id}.example/callback`]),
      launch_url: `https://${id}.example/launch`,
      scope: 'launch openid patient/*.rs',
      first_party: false,
      approved: false,
      created_at: time.now,
    }
  })
  for (let at = 0; at < count; at += 500) {
    const some = clients.slice(at, at + 500)
    await store.db.insertInto('client').values(some).execute()
    await store.db
      .insertInto('client_origin')
      .values(some.map(({ client_id }) => ({ client_id, origin: `https://${client_id}.example` })))
      .execute()
  }
}
