import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
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
