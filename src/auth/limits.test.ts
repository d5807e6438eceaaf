import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { before, describe, it } from 'node:test'
import { eachDatabase } from '../../test/support/databases.ts'
import { AuthHouse, answerOf } from './testing/auth-house.ts'
import { oneStore } from './testing/one-store.ts'
import { SigningClient } from './testing/signing-client.ts'
import type { Visitor } from './testing/visitor.ts'

/** As many scopes as asked for, which differ only in their search parameters. */
function granular(count: number, context = 'patient'): string {
  return Array.from({ length: count }, (_, at) => `${context}/Observation.rs?code=x|${at}`).join(' ')
}

describe('the limits of scopes', () => {
  const open = oneStore()
  const APP = { client_id: 'app', redirect_uri: 'https://app.example/callback' }
  let house: AuthHouse
  let visitor: Visitor
  before(async () => {
    house = await AuthHouse.open(await open())
    const signer = new SigningClient('signer', house.time)
    await house.addClient({ client_id: 'app', scope: `launch offline_access ${granular(98)}` })
    await house.addClient({
      client_id: 'signer',
      scope: granular(100, 'system'),
      auth_method: 'private_key_jwt',
      jwks: signer.jwks,
    })
    visitor = await house.loggedIn()
  })

  it('lets a client of 100 scopes ask for all of them, by way of the consent page, and refresh them', async () => {
    const scope = `launch offline_access ${granular(98)}`
    const launch = await house.launch(visitor, { clientId: 'app' })
    const response = await house.authorize(visitor, { ...APP, scope, launch, prompt: 'consent' })
    const page = await visitor.get(response.headers.location ?? '')
    assert.equal(page.body.match(/type="checkbox"/g)?.length, 99)
    const code = await house.code(visitor, { ...APP, scope })
    const tokens = (await house.exchange(code, APP)).json()
    assert.equal(tokens.scope, scope)
    const renewed = await house.refresh(tokens.refresh_token, { client_id: 'app', scope })
    assert.equal(renewed.json().scope, scope)
  })

  it('refuses a request for more than 100, at every endpoint that takes scopes', async () => {
    const error = /^The scope has more than 100 scopes\.$/
    const asked = answerOf(await house.authorize(visitor, { ...APP, scope: granular(101) }))
    assert.equal(asked.error, 'invalid_scope')
    assert.match(asked.error_description ?? '', error)

    const code = await house.code(visitor, { ...APP, scope: `launch offline_access ${granular(1)}` })
    const tokens = (await house.exchange(code, APP)).json()
    const refreshed = await house.refresh(tokens.refresh_token, { client_id: 'app', scope: granular(101) })
    assert.match(refreshed.json().error_description, error)

    const signer = new SigningClient('signer', house.time)
    const granted = await house.token({
      grant_type: 'client_credentials',
      scope: granular(101, 'system'),
      ...signer.proof(),
    })
    assert.match(granted.json().error_description, error)

    const registered = await house.app.inject({
      method: 'POST',
      url: '/oauth2/register',
      payload: { redirect_uris: [APP.redirect_uri], scope: granular(101) },
    })
    assert.equal(registered.statusCode, 400)
    assert.match(registered.json().error_description, error)
  })

  it('refuses a scope with more than 6 search parameters, and what combines to more than 100 scopes', async () => {
    const long = `patient/Observation.rs?${Array.from({ length: 7 }, (_, at) => `p${at}=x`).join('&')}`
    assert.match(
      answerOf(await house.authorize(visitor, { ...APP, scope: long })).error_description ?? '',
      /more than 6 search parameters/,
    )
    const launch = await house.launch(visitor, { clientId: 'app' })
    const scope = 'launch patient/Observation.rs?status=final patient/Observation.rs?status=amended'
    assert.match(
      answerOf(await house.authorize(visitor, { ...APP, scope, launch })).error_description ?? '',
      /combines with the registered granular scopes to more than 100 scopes/,
    )
  })
})

eachDatabase((_name, open) => {
  describe('the cost of many clients', () => {
    let house: AuthHouse
    before(async () => {
      house = await AuthHouse.open(await open())
    })
    const preflight = (origin: string, app = house.app) =>
      app.inject({ method: 'OPTIONS', url: '/oauth2/token', headers: { origin } })
    const allows = async (origin: string, app = house.app) =>
      (await preflight(origin, app)).headers['access-control-allow-origin'] === origin

    it('knows the origins of a client that another instance registered, changed or removed, at once', async () => {
      const other = await AuthHouse.open(house.store)
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
      await house.store.db.deleteFrom('client').where('client_id', '=', id).execute()
      assert.equal(await allows('https://new.example', other.app), false)
      await other.app.close()
    })

    it('is the same for a preflight, a launch and the portal with 3,000 clients as with 100', async () => {
      const visitor = await house.loggedIn()
      const acts = {
        preflight: () => preflight('https://nobody.example'),
        launch: () => visitor.post('/portal/launch', { patientId: 'juniper' }),
        portal: () => visitor.get('/portal?patient=juniper'),
      }
      const timeOf = async (act: () => Promise<unknown>) => {
        const times: number[] = []
        for (let round = 0; round < 15; round++) {
          const start = performance.now()
          await act()
          times.push(performance.now() - start)
        }
        return Math.min(...times)
      }
      await addMany(house, 100)
      const few = new Map<string, number>()
      for (const [name, act] of Object.entries(acts)) few.set(name, await timeOf(act))
      await addMany(house, 2_900)
      for (const [name, act] of Object.entries(acts)) {
        const grown = (await timeOf(act)) / (few.get(name) ?? 0)
        assert.ok(grown < 5, `${name} took ${grown.toFixed(1)} times as long`)
      }
    })
  })
})

/** Adds clients that have nothing in common but that anybody could have registered them. */
async function addMany({ store, time }: AuthHouse, count: number): Promise<void> {
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
