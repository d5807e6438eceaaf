import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { eachDatabase } from '../../../test/support/databases.ts'
import { readForm } from '../testing/read-form.ts'
import { decodeClaims, readAnswer, TestAuthServer } from '../testing/test-auth-server.ts'
import type { TestBrowser } from '../testing/test-browser.ts'
import { encounter, patient } from '../testing/test-fhir-server.ts'
import { openTestStore } from '../testing/test-store.ts'

const APP = { client_id: 'chart', redirect_uri: 'https://chart.example/callback' }
const STANDALONE = 'launch/patient openid patient/Patient.rs'

async function openHouse(house: TestAuthServer): Promise<TestBrowser> {
  await house.addClient({
    client_id: 'chart',
    launch_url: null,
    scope: 'openid offline_access patient/*.rs user/*.rs',
  })
  await house.addClinician('colleague')
  return house.loggedIn()
}

/** The picker's page, and its form with what is filled in. */
async function picker(house: TestAuthServer, visitor: TestBrowser, scope = STANDALONE, more = {}) {
  const response = await house.authorize(visitor, { ...APP, scope, ...more })
  const address = response.headers.location ?? ''
  assert.match(address, /^\/oauth2\/pick\?interaction=/)
  const page = await visitor.get(address)
  const send = (fields: Readonly<Record<string, string>>, from = page.body) =>
    visitor.post('/oauth2/pick', `${readForm(from)}&${new URLSearchParams(fields)}`)
  return { page, address, send }
}

eachDatabase((_name, open) => {
  describe('a standalone launch', () => {
    let house: TestAuthServer
    let visitor: TestBrowser
    before(async () => {
      house = await TestAuthServer.open(await open())
      visitor = await openHouse(house)
    })

    it('opens the patient that was picked', async () => {
      const { send } = await picker(house, visitor)
      const { code = '' } = readAnswer(await send({ patientId: 'ashlar' }))
      const body = (await house.exchange(code, APP)).json()
      assert.equal(body.patient, 'ashlar')
      assert.equal(body.scope, STANDALONE)
      assert.equal(body.need_patient_banner, true)
      assert.equal(body.encounter, undefined)
      assert.equal(body.smart_style_url, undefined)
      assert.equal(decodeClaims(body.access_token).patient, 'ashlar')
    })

    it('asks for the encounter too, of this patient only', async () => {
      const scope = 'launch/patient launch/encounter patient/Encounter.rs'
      const { send } = await picker(house, visitor, scope)
      const next = await send({ patientId: 'juniper' })
      assert.equal(next.statusCode, 303)
      const page = await visitor.get(next.headers.location ?? '')
      assert.match(page.body, /Visit enc-1[\s\S]*Visit enc-2[\s\S]*No encounter/)
      assert.doesNotMatch(page.body, /enc-9/)
      const form = readForm(page.body)
      form.set('encounterId', 'enc-2')
      const { code = '' } = readAnswer(await visitor.post('/oauth2/pick', form.toString()))
      const body = (await house.exchange(code, APP)).json()
      assert.deepEqual([body.patient, body.encounter, body.scope], ['juniper', 'enc-2', scope])
    })

    it('grants no launch/encounter where none was chosen', async () => {
      const { send } = await picker(house, visitor, 'launch/encounter patient/Encounter.rs')
      const next = await send({ patientId: 'juniper' })
      const form = readForm((await visitor.get(next.headers.location ?? '')).body)
      form.set('encounterId', '')
      const { code = '' } = readAnswer(await visitor.post('/oauth2/pick', form.toString()))
      const body = (await house.exchange(code, APP)).json()
      assert.deepEqual(
        [body.patient, body.encounter, body.scope],
        ['juniper', undefined, 'patient/Encounter.rs'],
      )
    })

    it('comes after the login, and before consent, where the choice can still be changed', async () => {
      await house.addClient({ client_id: 'third', scope: STANDALONE, first_party: false })
      const third = { client_id: 'third', redirect_uri: 'https://third.example/callback' }
      const browser = house.visitor()
      const response = await house.authorize(browser, { ...third, scope: STANDALONE })
      assert.match(response.headers.location ?? '', /^\/login\?interaction=/)
      const login = await browser.get(response.headers.location ?? '')
      const fields = {
        ...Object.fromEntries(readForm(login.body)),
        username: 'clinician',
        password: 'sallyport',
      }
      const page = await browser.follow(await browser.post('/login', fields), 'http://localhost:9000')
      assert.match(page.body, /Choose a patient for third/)
      assert.doesNotMatch(page.body, /Unverified/)
      await house.store.db
        .updateTable('client')
        .set({ approved: false })
        .where('client_id', '=', 'third')
        .execute()
      const marked = await browser.get(`/oauth2/pick?interaction=${readForm(page.body).get('interaction')}`)
      assert.match(marked.body, /Unverified app\.<\/b> It registered itself/)
      await house.store.db
        .updateTable('client')
        .set({ approved: true })
        .where('client_id', '=', 'third')
        .execute()
      const pick = (patientId: string) =>
        browser.post('/oauth2/pick', `${readForm(page.body)}&patientId=${patientId}`)
      const consent = await browser.follow(await pick('juniper'), 'http://localhost:9000')
      assert.match(consent.body, /Allow third to use this record\?[\s\S]*>Juniper</)
      await pick('ashlar')
      // The page that was read named another patient: it decides nothing.
      const stale = await browser.post('/oauth2/consent', `${readForm(consent.body)}&decision=allow`)
      assert.match(stale.body, />Ashlar</)
      const answer = readAnswer(
        await browser.post('/oauth2/consent', `${readForm(stale.body)}&decision=allow`),
      )
      assert.equal((await house.exchange(answer.code ?? '', third)).json().patient, 'ashlar')
    })

    it('is access_denied when it is left without a choice, and over then', async () => {
      const { send, address } = await picker(house, visitor)
      const answer = readAnswer(await send({ cancel: '1' }))
      assert.deepEqual([answer.error, answer.state, answer.code], ['access_denied', 'state-1', undefined])
      assert.equal((await visitor.get(address)).statusCode, 400)
      assert.equal((await send({ patientId: 'juniper' })).statusCode, 400)
    })

    it('issues one code when the choice is sent 20 times at once', async () => {
      const { send } = await picker(house, visitor)
      const responses = await Promise.all(Array.from({ length: 20 }, () => send({ patientId: 'juniper' })))
      const codes = responses.filter(({ headers }) => headers.location?.includes('code='))
      assert.equal(codes.length, 1)
    })
  })
})

describe('/oauth2/pick', () => {
  const open = openTestStore()
  let house: TestAuthServer
  let visitor: TestBrowser
  before(async () => {
    const resources = [patient('juniper', 'Juniper', 'Alba'), patient('juniper-2', 'Juniper', 'Alban')]
    house = await TestAuthServer.open(await open(), { resources })
    visitor = await openHouse(house)
  })

  it('keeps earlier encounters one click away, on the same page', async () => {
    const visits = Array.from({ length: 6 }, (_, at) => encounter(`v${at}`, 'x', 'finished'))
    const other = await TestAuthServer.open(await open(), { resources: [patient('x', 'X', 'Y'), ...visits] })
    const clinician = await openHouse(other)
    const { send } = await picker(other, clinician, 'launch/encounter patient/Encounter.rs')
    const address = (await send({ patientId: 'x' })).headers.location ?? ''
    const { body } = await clinician.get(address)
    assert.equal(body.match(/name="encounterId"/g)?.length, 7)
    const [, earlier = ''] = /id="earlier">([\s\S]*?)<\/div>/.exec(body) ?? []
    assert.equal(earlier.match(/name="encounterId"/g)?.length, 2)
    assert.match(body, /href="#earlier">Show 2 earlier encounters</)
  })

  it('lists patients as the portal does, none of them chosen', async () => {
    const { page } = await picker(house, visitor)
    assert.deepEqual(
      [...page.body.matchAll(/data-patient-id="([^"]*)"/g)].map(match => match[1]),
      ['juniper', 'juniper-2'],
    )
    assert.doesNotMatch(page.body, /type="radio"[^>]*checked/)
    assert.match(page.body, /Similar name/)
    assert.doesNotMatch(page.body, /Sample patients are made up/)
    assert.match(page.body, /The app at <b>chart\.example<\/b> will have access to this record only/)
    const wider = await picker(house, visitor, 'launch/patient patient/Patient.rs user/Condition.rs')
    assert.doesNotMatch(wider.page.body, /no other/)
    assert.match(wider.page.body, /also requests access to every patient you may see/)
  })

  it('searches by name', async () => {
    const { address } = await picker(house, visitor)
    const found = await visitor.get(`${address}&search=alban`)
    assert.match(found.body, /juniper-2/)
    assert.doesNotMatch(found.body, /data-patient-id="juniper"/)
    assert.match((await visitor.get(`${address}&search=nobody`)).body, /No patient matches/)
    const long = await visitor.get(`${address}&search=${'x'.repeat(201)}`)
    assert.equal(long.statusCode, 400)
    assert.match(long.body, /at most 200 characters and 20 words/)
  })

  it('shows the list again when nothing was chosen, and says so', async () => {
    const { send } = await picker(house, visitor)
    const again = await send({})
    assert.equal(again.statusCode, 400)
    assert.match(again.body, /No patient selected/)
  })

  it('refuses a patient or encounter that is not there', async () => {
    const { send } = await picker(house, visitor)
    assert.equal((await send({ patientId: 'nobody' })).statusCode, 404)
    assert.equal((await send({ patientId: '../Patient/juniper' })).statusCode, 404)
    const other = await picker(house, visitor, 'launch/encounter')
    assert.equal((await other.send({ patientId: 'juniper', encounterId: 'none' })).statusCode, 404)
  })

  it('takes no choice of another clinician, nor one from another site', async () => {
    const { page, address } = await picker(house, visitor)
    const colleague = await house.loggedIn('colleague')
    const body = `${readForm(page.body)}&patientId=juniper`
    assert.match((await colleague.post('/oauth2/pick', body)).body, /Signed in as Dr\. colleague/)
    const foreign = await visitor.post('/oauth2/pick', body, { 'sec-fetch-site': 'cross-site' })
    assert.equal(foreign.statusCode, 403)
    // Picked by one, finished by another: it is picked anew.
    const third = await house.visitor().get(address)
    assert.match(third.headers.location ?? '', /^\/login\?interaction=/)
  })

  it('keeps the choice from whoever logs in after it', async () => {
    await house.addClient({ client_id: 'slow', scope: STANDALONE, first_party: false })
    const slow = { client_id: 'slow', redirect_uri: 'https://slow.example/callback', scope: STANDALONE }
    const { send } = await picker(house, visitor, STANDALONE, slow)
    const consent = (await send({ patientId: 'juniper' })).headers.location ?? ''
    const colleague = await house.loggedIn('colleague')
    assert.match((await colleague.get(consent)).headers.location ?? '', /^\/oauth2\/pick\?/)
  })

  it('says so while the FHIR server is away, and goes on afterwards', async () => {
    const { address, send } = await picker(house, visitor)
    house.fhir.fail('no-answer')
    assert.equal((await visitor.get(address)).statusCode, 502)
    assert.equal((await send({ patientId: 'juniper' })).statusCode, 502)
    house.fhir.fail(undefined)
    assert.ok(readAnswer(await send({ patientId: 'juniper' })).code)
  })

  it('is not shown for what asks no patient, and not in an EHR launch', async () => {
    assert.ok(readAnswer(await house.authorize(visitor, { ...APP, scope: 'openid user/Patient.rs' })).code)
    const launch = await house.launch(visitor)
    const scope = 'launch launch/patient patient/Patient.rs'
    assert.ok(readAnswer(await house.authorize(visitor, { launch, scope })).code)
  })

  it('is what prompt=none cannot show', async () => {
    const answer = readAnswer(await house.authorize(visitor, { ...APP, scope: STANDALONE, prompt: 'none' }))
    assert.equal(answer.error, 'interaction_required')
  })

  it('brings a patient for a role that is not known (SMART 2.2, launch/patient?role=)', async () => {
    const scope = 'launch/patient?role=x patient/Patient.rs'
    const { send } = await picker(house, visitor, scope)
    const { code = '' } = readAnswer(await send({ patientId: 'juniper' }))
    assert.equal((await house.exchange(code, APP)).json().scope, scope)
  })
})
