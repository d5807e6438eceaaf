import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { eachDatabaseIfThorough } from '../../../../test/support/databases.ts'
import { readForm } from '../../testing/read-form.ts'
import { decodeClaims, readRedirect, TestAuthServer } from '../../testing/test-auth-server.ts'
import type { TestBrowser } from '../../testing/test-browser.ts'
import { makeEncounter, patient } from '../../testing/test-fhir-server.ts'
import { openTestStore } from '../../testing/test-store.ts'

const APP = { client_id: 'chart', redirect_uri: 'https://chart.example/callback' }
const STANDALONE = 'launch/patient openid patient/Patient.rs'

async function openHouse(auth: TestAuthServer): Promise<TestBrowser> {
  await auth.addClient({
    client_id: 'chart',
    launch_url: null,
    scope: 'openid offline_access patient/*.rs user/*.rs',
  })
  await auth.addUser('colleague')
  return auth.logIn()
}

/** The page of the picker and its completed form. */
async function picker(auth: TestAuthServer, browser: TestBrowser, scope = STANDALONE, more = {}) {
  const response = await auth.authorize(browser, { ...APP, scope, ...more })
  const address = response.headers.location ?? ''
  assert.match(address, /^\/oauth2\/pick\?interaction=/)
  const page = await browser.get(address)
  const send = (fields: Readonly<Record<string, string>>, from = page.body) =>
    browser.post('/oauth2/pick', `${readForm(from)}&${new URLSearchParams(fields)}`)
  return { page, address, send }
}

eachDatabaseIfThorough((_name, open) => {
  describe('a standalone launch', () => {
    let auth: TestAuthServer
    let browser: TestBrowser
    before(async () => {
      auth = await TestAuthServer.open(await open())
      browser = await openHouse(auth)
    })

    it('opens the selected patient', async () => {
      const { send } = await picker(auth, browser)
      const { code = '' } = readRedirect(await send({ patientId: 'ashlar' }))
      const body = (await auth.exchange(code, APP)).json()
      assert.equal(body.patient, 'ashlar')
      assert.equal(body.scope, STANDALONE)
      assert.equal(body.need_patient_banner, true)
      assert.equal(body.encounter, undefined)
      assert.equal(body.smart_style_url, undefined)
      assert.equal(decodeClaims(body.access_token).patient, 'ashlar')
    })

    it('warns of a similar name that the search did not find, and tells a first-party app (PICKER-5)', async () => {
      const alban = patient('alban', 'Juniper', 'Alban', { birthDate: '1985-03-14' })
      const resources = [patient('juniper', 'Juniper', 'Alba'), alban, patient('ashlar', 'Ashlar', 'Tobias')]
      const auth = await TestAuthServer.open(await open(), { resources })
      const browser = await openHouse(auth)
      const { address, send } = await picker(auth, browser)
      const warning = /names similar to others/
      const find = async (search: string) => (await browser.get(`${address}&search=${search}`)).body
      assert.match(await find('1985-03-14'), warning)
      assert.doesNotMatch(await find('ashlar'), warning)
      const { code = '' } = readRedirect(await send({ patientId: 'alban' }))
      assert.equal((await auth.exchange(code, APP)).json().similar_name, true)
      const other = await picker(auth, browser)
      const { code: second = '' } = readRedirect(await other.send({ patientId: 'ashlar' }))
      assert.equal((await auth.exchange(second, APP)).json().similar_name, undefined)
    })

    it('offers the encounters of this patient only (PICKER-2)', async () => {
      const scope = 'launch/patient launch/encounter patient/Encounter.rs'
      const { send } = await picker(auth, browser, scope)
      const next = await send({ patientId: 'juniper' })
      assert.equal(next.statusCode, 303)
      const page = await browser.get(next.headers.location ?? '')
      assert.match(page.body, /Visit enc-1[\s\S]*Visit enc-2[\s\S]*No encounter/)
      assert.doesNotMatch(page.body, /enc-9/)
      const form = readForm(page.body)
      form.set('encounterId', 'enc-2')
      const { code = '' } = readRedirect(await browser.post('/oauth2/pick', form.toString()))
      const body = (await auth.exchange(code, APP)).json()
      assert.deepEqual([body.patient, body.encounter, body.scope], ['juniper', 'enc-2', scope])
    })

    it('does not grant launch/encounter without an encounter', async () => {
      const { send } = await picker(auth, browser, 'launch/encounter patient/Encounter.rs')
      const next = await send({ patientId: 'juniper' })
      const form = readForm((await browser.get(next.headers.location ?? '')).body)
      form.set('encounterId', '')
      const { code = '' } = readRedirect(await browser.post('/oauth2/pick', form.toString()))
      const body = (await auth.exchange(code, APP)).json()
      assert.deepEqual(
        [body.patient, body.encounter, body.scope],
        ['juniper', undefined, 'patient/Encounter.rs'],
      )
    })

    it('shows the picker after the login and before consent, where the choice can still be changed (PICKER-1)', async () => {
      await auth.addClient({ client_id: 'third', scope: STANDALONE, first_party: false })
      const third = { client_id: 'third', redirect_uri: 'https://third.example/callback' }
      const browser = auth.openBrowser()
      const response = await auth.authorize(browser, { ...third, scope: STANDALONE })
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
      await auth.store.db
        .updateTable('client')
        .set({ approved: false })
        .where('client_id', '=', 'third')
        .execute()
      const marked = await browser.get(`/oauth2/pick?interaction=${readForm(page.body).get('interaction')}`)
      assert.match(marked.body, /Unverified app\.<\/b> It registered itself/)
      await auth.store.db
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
      const answer = readRedirect(
        await browser.post('/oauth2/consent', `${readForm(stale.body)}&decision=allow`),
      )
      assert.equal((await auth.exchange(answer.code ?? '', third)).json().patient, 'ashlar')
    })

    it('responds with access_denied after a cancellation, and ends (PICKER-3)', async () => {
      const { send, address } = await picker(auth, browser)
      const answer = readRedirect(await send({ cancel: '1' }))
      assert.deepEqual([answer.error, answer.state, answer.code], ['access_denied', 'state-1', undefined])
      assert.equal((await browser.get(address)).statusCode, 400)
      assert.equal((await send({ patientId: 'juniper' })).statusCode, 400)
    })

    it('issues one code if the choice is sent 20 times at once', async () => {
      const { send } = await picker(auth, browser)
      const responses = await Promise.all(Array.from({ length: 20 }, () => send({ patientId: 'juniper' })))
      const codes = responses.filter(({ headers }) => headers.location?.includes('code='))
      assert.equal(codes.length, 1)
    })
  })
})

describe('/oauth2/pick', () => {
  const open = openTestStore()
  let auth: TestAuthServer
  let browser: TestBrowser
  before(async () => {
    const resources = [patient('juniper', 'Juniper', 'Alba'), patient('juniper-2', 'Juniper', 'Alban')]
    auth = await TestAuthServer.open(await open(), { resources })
    browser = await openHouse(auth)
  })

  it('shows earlier encounters on the same page after one click', async () => {
    const visits = Array.from({ length: 6 }, (_, at) => makeEncounter(`v${at}`, 'x', 'finished'))
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

  it('lists patients as the portal does, with none selected (PICKER-1)', async () => {
    const { page } = await picker(auth, browser)
    assert.deepEqual(
      [...page.body.matchAll(/data-patient-id="([^"]*)"/g)].map(match => match[1]),
      ['juniper', 'juniper-2'],
    )
    assert.doesNotMatch(page.body, /type="radio"[^>]*checked/)
    assert.match(page.body, /Similar name/)
    assert.doesNotMatch(page.body, /Sample patients are made up/)
    assert.match(
      page.body,
      /The app at <b>chart\.example<\/b> will have access to the record that you choose/,
    )
    const wider = await picker(auth, browser, 'launch/patient patient/Patient.rs user/Condition.rs')
    assert.doesNotMatch(wider.page.body, /no other/)
    assert.match(wider.page.body, /also requests access to every record you may open/)
  })

  it('searches by name', async () => {
    const { address } = await picker(auth, browser)
    const found = await browser.get(`${address}&search=alban`)
    assert.match(found.body, /juniper-2/)
    assert.doesNotMatch(found.body, /data-patient-id="juniper"/)
    assert.match((await browser.get(`${address}&search=nobody`)).body, /No patient matches/)
    const long = await browser.get(`${address}&search=${'x'.repeat(201)}`)
    assert.equal(long.statusCode, 400)
    assert.match(long.body, /at most 200 characters and 20 words/)
  })

  it('shows the list again with a message if nothing was selected', async () => {
    const { send } = await picker(auth, browser)
    const again = await send({})
    assert.equal(again.statusCode, 400)
    assert.match(again.body, /No patient selected/)
  })

  it('keeps the typed search (PICKER-6)', async () => {
    const scope = 'launch/patient launch/encounter patient/Encounter.rs'
    const { address } = await picker(auth, browser, scope)
    const found = await browser.get(`${address}&search=alban`)
    const send = (fields: string) => browser.post('/oauth2/pick', `${readForm(found.body)}&${fields}`)
    const again = await send('')
    assert.match(again.body, /No patient selected/)
    assert.match(again.body, /name="search"[^>]* value="alban"/)
    assert.doesNotMatch(again.body, /data-patient-id="juniper"/)
    const encounters = await browser.get((await send('patientId=juniper-2')).headers.location ?? '')
    const [, back = ''] =
      /href="([^"]*)">(?:<svg[\s\S]*?<\/svg>)?Choose another patient/.exec(encounters.body) ?? []
    assert.match((await browser.get(back.replaceAll('&amp;', '&'))).body, /name="search"[^>]* value="alban"/)
  })

  it('refuses a patient or encounter that does not exist (PICKER-2)', async () => {
    const { send } = await picker(auth, browser)
    assert.equal((await send({ patientId: 'nobody' })).statusCode, 404)
    assert.equal((await send({ patientId: '../Patient/juniper' })).statusCode, 404)
    const other = await picker(auth, browser, 'launch/encounter')
    assert.equal((await other.send({ patientId: 'juniper', encounterId: 'none' })).statusCode, 404)
  })

  it('refuses a choice of another clinician or from another site', async () => {
    const { page, address } = await picker(auth, browser)
    const colleague = await auth.logIn('colleague')
    const body = `${readForm(page.body)}&patientId=juniper`
    assert.match((await colleague.post('/oauth2/pick', body)).body, /Signed in as Dr\. colleague/)
    const foreign = await browser.post('/oauth2/pick', body, { 'sec-fetch-site': 'cross-site' })
    assert.equal(foreign.statusCode, 403)
    // Another browser must log in first.
    const third = await auth.openBrowser().get(address)
    assert.match(third.headers.location ?? '', /^\/login\?interaction=/)
  })

  it('discards the choice if another clinician logs in (PICKER-3)', async () => {
    await auth.addClient({ client_id: 'slow', scope: STANDALONE, first_party: false })
    const slow = { client_id: 'slow', redirect_uri: 'https://slow.example/callback', scope: STANDALONE }
    const { send } = await picker(auth, browser, STANDALONE, slow)
    const consent = (await send({ patientId: 'juniper' })).headers.location ?? ''
    const colleague = await auth.logIn('colleague')
    assert.match((await colleague.get(consent)).headers.location ?? '', /^\/oauth2\/pick\?/)
  })

  it('reports an unreachable FHIR server, and continues afterwards', async () => {
    const { address, send } = await picker(auth, browser)
    auth.fhir.fail('no-response')
    assert.equal((await browser.get(address)).statusCode, 502)
    assert.equal((await send({ patientId: 'juniper' })).statusCode, 502)
    auth.fhir.fail(undefined)
    assert.ok(readRedirect(await send({ patientId: 'juniper' })).code)
  })

  it('is not shown without a patient scope, nor in an EHR launch (PICKER-4)', async () => {
    assert.ok(readRedirect(await auth.authorize(browser, { ...APP, scope: 'openid user/Patient.rs' })).code)
    const launch = await auth.launch(browser)
    const scope = 'launch launch/patient patient/Patient.rs'
    assert.ok(readRedirect(await auth.authorize(browser, { launch, scope })).code)
  })

  it('is not available to prompt=none', async () => {
    const answer = readRedirect(await auth.authorize(browser, { ...APP, scope: STANDALONE, prompt: 'none' }))
    assert.equal(answer.error, 'interaction_required')
  })

  it('offers a patient for an unknown role (SMART 2.2, launch/patient?role=)', async () => {
    const scope = 'launch/patient?role=x patient/Patient.rs'
    const { send } = await picker(auth, browser, scope)
    const { code = '' } = readRedirect(await send({ patientId: 'juniper' }))
    assert.equal((await auth.exchange(code, APP)).json().scope, scope)
  })
})
