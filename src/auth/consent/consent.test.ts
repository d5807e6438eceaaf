import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { sha256 } from '../../store/index.ts'
import { AuthHouse, answerOf } from '../testing/auth-house.ts'
import { oneStore } from '../testing/one-store.ts'
import type { Visitor } from '../testing/visitor.ts'
import { meaningOf } from './meaning.ts'

const APP = {
  client_id: 'helio',
  redirect_uri: 'https://helio.example/callback',
  scope: 'launch openid patient/*.rs',
}

describe('/oauth2/consent', () => {
  const open = oneStore()
  let house: AuthHouse
  let visitor: Visitor
  before(async () => {
    house = await AuthHouse.open(await open())
    await house.addClient({ client_id: 'helio', name: 'Helio <Trends>', first_party: false })
    await house.addClinician('colleague')
    visitor = await house.loggedIn()
  })

  async function asked(browser = visitor) {
    const launch = await house.launch(browser, { clientId: 'helio' })
    const response = await house.authorize(browser, { ...APP, launch })
    assert.match(response.headers.location ?? '', /^\/oauth2\/consent\?interaction=/)
    const page = await browser.get(response.headers.location ?? '')
    const field = (name: string) => new RegExp(`name="${name}" value="([^"]*)"`).exec(page.body)?.[1] ?? ''
    return { page, launch, form: { interaction: field('interaction'), clinician: field('clinician') } }
  }

  it('names app, host, clinician, patient and what is asked for, and grants nothing by itself', async () => {
    const { page } = await asked()
    assert.equal(page.statusCode, 200)
    for (const text of [
      'Allow Helio &lt;Trends&gt;?',
      '>Juniper</span>, Alba',
      '14-Mar-1958',
      'helio.example',
      'Dr. Robin Ahmadi',
      'patient/*.rs',
    ])
      assert.ok(page.body.includes(text), text)
    assert.match(
      String(page.headers['content-security-policy']),
      /form-action 'self' https:\/\/helio\.example;/,
    )
    assert.equal((await house.store.db.selectFrom('grant').select('id').execute()).length, 0)
  })

  it('gives a code when it is allowed, once', async () => {
    const { form } = await asked()
    const allowed = answerOf(await visitor.post('/oauth2/consent', { ...form, decision: 'allow' }))
    const body = (await house.exchange(allowed.code ?? '', APP)).json()
    assert.equal(body.scope, APP.scope)
    assert.equal((await visitor.post('/oauth2/consent', { ...form, decision: 'allow' })).statusCode, 400)
  })

  it('answers access_denied when it is not allowed, and leaves the launch unused', async () => {
    const { form, launch } = await asked()
    const denied = answerOf(await visitor.post('/oauth2/consent', { ...form, decision: 'deny' }))
    assert.equal(denied.error, 'access_denied')
    assert.equal(denied.state, 'state-1')
    const token = house.store.db.selectFrom('launch_token').select('used_at')
    const { used_at } = await token.where('token_hash', '=', sha256(launch)).executeTakeFirstOrThrow()
    assert.equal(used_at, null)
    assert.equal((await visitor.post('/oauth2/consent', { ...form, decision: 'allow' })).statusCode, 400)
  })

  it('asks again when the form says neither', async () => {
    const { form } = await asked()
    const again = await visitor.post('/oauth2/consent', form)
    assert.equal(again.statusCode, 200)
    assert.match(again.body, /Do not allow/)
  })

  it('does not take the decision of another clinician', async () => {
    const response = await house.authorize(visitor, { ...APP, scope: 'openid' })
    const page = await visitor.get(response.headers.location ?? '')
    const clinician = /name="clinician" value="([^"]*)"/.exec(page.body)?.[1] ?? ''
    const { interaction = '' } = answerOf(response)
    const colleague = await house.loggedIn('colleague')
    const shown = await colleague.post('/oauth2/consent', { interaction, clinician, decision: 'allow' })
    assert.equal(shown.statusCode, 200)
    assert.match(shown.body, /Dr\. colleague/)
  })

  it('refuses a decision that another site sends', async () => {
    const { form } = await asked()
    const headers = { 'sec-fetch-site': 'cross-site' }
    const response = await visitor.post('/oauth2/consent', { ...form, decision: 'allow' }, headers)
    assert.equal(response.statusCode, 403)
  })

  it('sends to the login page whoever is not logged in', async () => {
    const { form } = await asked()
    const response = await house.visitor().post('/oauth2/consent', { ...form, decision: 'allow' })
    assert.match(response.headers.location ?? '', /^\/login\?interaction=/)
  })

  it('also asks for an app of ours when it wants to be asked', async () => {
    const response = await house.authorize(visitor, { prompt: 'consent' })
    assert.match(response.headers.location ?? '', /^\/oauth2\/consent\?interaction=/)
  })
})

describe('meaningOf', () => {
  const meanings: readonly (readonly [string, string | undefined])[] = [
    ['patient/Patient.rs', 'Read and search Patient records of this patient'],
    ['patient/*.read', 'Read and search all kinds of records, also kinds added later of this patient'],
    ['user/Observation.c', 'Add Observation records of every patient you may see'],
    ['patient/Condition.cruds', 'Read, search, add, change and delete Condition records of this patient'],
    [
      'patient/Observation.rs?category=laboratory',
      'Read and search Observation records (only where category is laboratory) of this patient',
    ],
    ['offline_access', 'Access while you are away, until you take it back'],
    ['frob', undefined],
  ]
  for (const [scope, meaning] of meanings) {
    it(`says what ${scope} means`, () => assert.equal(meaningOf(scope), meaning))
  }
})
