import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { AuthHouse } from '../testing/auth-house.ts'
import { oneStore } from '../testing/one-store.ts'
import type { Visitor } from '../testing/visitor.ts'
import { launchAddress } from './prepare.ts'

describe('POST /portal/launch', () => {
  const open = oneStore()
  let house: AuthHouse
  let visitor: Visitor
  before(async () => {
    house = await AuthHouse.open(await open())
    visitor = await house.loggedIn()
    await house.addClient({ client_id: 'helio', launch_url: 'https://helio.example/launch?tenant=a%20b' })
    await house.addClient({ client_id: 'backend', launch_url: null })
  })

  const tokens = async () =>
    (await house.store.db.selectFrom('launch_token').select('token_hash').execute()).length

  it('redirects to the launch address with iss and launch, in that order', async () => {
    const response = await visitor.post('/portal/launch', { patientId: 'juniper', encounterId: 'enc-1' })
    assert.equal(response.statusCode, 302)
    assert.match(
      response.headers.location ?? '',
      /^http:\/\/localhost:8081\/launch\?iss=http%3A%2F%2Flocalhost%3A8080%2Ffhir&launch=[\w-]{43}$/,
    )
  })

  it('launches without an encounter', async () => {
    for (const form of [{ patientId: 'juniper' }, { patientId: 'juniper', encounterId: '' }])
      assert.equal((await visitor.post('/portal/launch', form)).statusCode, 302)
  })

  it('launches another app, whose launch address keeps its query', async () => {
    const response = await visitor.post('/portal/launch', { patientId: 'juniper', clientId: 'helio' })
    assert.ok(response.headers.location?.startsWith('https://helio.example/launch?tenant=a%20b&iss='))
    const row = await house.store.db
      .selectFrom('launch_token')
      .select('client_id')
      .where('client_id', '=', 'helio')
      .executeTakeFirst()
    assert.ok(row)
  })

  const refused: readonly (readonly [string, Record<string, string> | string, number])[] = [
    ['no patientId', {}, 400],
    ['an empty patientId', { patientId: '' }, 400],
    ['two patientIds', 'patientId=juniper&patientId=ashlar', 400],
    ['an unknown patient', { patientId: 'nobody' }, 404],
    ['a patientId that is a path', { patientId: '../Patient/juniper' }, 404],
    ['a patientId with a query', { patientId: 'juniper?_elements=id' }, 404],
    ['an unknown encounter', { patientId: 'juniper', encounterId: 'nothing' }, 404],
    ['an encounter of someone else', { patientId: 'juniper', encounterId: 'enc-9' }, 404],
    ['an encounterId that is a path', { patientId: 'juniper', encounterId: 'enc-1/_history/1' }, 404],
    ['a patient as encounter', { patientId: 'juniper', encounterId: 'juniper' }, 404],
    ['an unknown app', { patientId: 'juniper', clientId: 'nobody' }, 400],
    ['an app without a launch address', { patientId: 'juniper', clientId: 'backend' }, 400],
  ]
  for (const [name, form, status] of refused) {
    it(`answers ${status} to ${name}, and makes no token`, async () => {
      const before = await tokens()
      const response = await visitor.post('/portal/launch', form)
      assert.equal(response.statusCode, status)
      assert.match(response.body, /No record was opened/)
      assert.equal(await tokens(), before)
    })
  }

  it('redirects whoever is not logged in to /login', async () => {
    const response = await house.visitor().post('/portal/launch', { patientId: 'juniper' })
    assert.equal(response.statusCode, 302)
    assert.equal(response.headers.location, '/login')
  })

  it('refuses a form of another site', async () => {
    const before = await tokens()
    for (const headers of [
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
      { origin: 'http://localhost:8081' },
      { origin: 'null' },
    ])
      assert.equal((await visitor.post('/portal/launch', { patientId: 'juniper' }, headers)).statusCode, 403)
    assert.equal(await tokens(), before)
  })

  it('answers 502 while the FHIR server is away', async () => {
    house.fhir.fail('no-answer')
    const response = await visitor.post('/portal/launch', { patientId: 'juniper' })
    house.fhir.fail(undefined)
    assert.equal(response.statusCode, 502)
    assert.match(response.body, /Patient records cannot be reached/)
  })

  it('reads the launch address and banner from the settings', async () => {
    const settings = { smartClientLaunchUrl: 'https://ehr.example/app', defaultNeedPatientBanner: false }
    const other = await AuthHouse.open(await open(), { settings })
    const response = await (await other.loggedIn()).post('/portal/launch', { patientId: 'juniper' })
    assert.ok(response.headers.location?.startsWith('https://ehr.example/app?iss='))
    const row = await other.store.db
      .selectFrom('launch_token')
      .select('need_patient_banner')
      .executeTakeFirst()
    assert.equal(row?.need_patient_banner, false)
  })

  it('launches the default client that the setting names, at its own address or the set one', async () => {
    const settings = { defaultClientId: 'mine' }
    const other = await AuthHouse.open(await open(), { settings })
    await other.addClient({ client_id: 'mine', launch_url: null })
    const browser = await other.loggedIn()
    const launch = () => browser.post('/portal/launch', { patientId: 'juniper' })
    assert.ok((await launch()).headers.location?.startsWith('http://localhost:8081/launch?'))
    await other.store.db
      .updateTable('client')
      .set({ launch_url: 'https://mine.example/go' })
      .where('client_id', '=', 'mine')
      .execute()
    assert.ok((await launch()).headers.location?.startsWith('https://mine.example/go?'))
  })
})

describe('launchAddress', () => {
  const rows: readonly (readonly [string, string])[] = [
    ['https://a.example/l', 'https://a.example/l?iss=I&launch=T'],
    ['https://a.example/l?x=1&y=%20', 'https://a.example/l?x=1&y=%20&iss=I&launch=T'],
    ['https://a.example/#/l', 'https://a.example/?iss=I&launch=T#/l'],
  ]
  for (const [launchUrl, address] of rows)
    it(`makes ${address} of ${launchUrl}`, () => assert.equal(launchAddress(launchUrl, 'I', 'T'), address))
})
