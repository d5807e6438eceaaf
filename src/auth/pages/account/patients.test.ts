import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type { Resource } from '../../../fhir/index.ts'
import { readForm } from '../../testing/read-form.ts'
import { decodeClaims, readRedirect, TestAuthServer } from '../../testing/test-auth-server.ts'
import type { TestBrowser } from '../../testing/test-browser.ts'
import { makeEncounter, patient } from '../../testing/test-fhir-server.ts'
import { openTestStore } from '../../testing/test-store.ts'

const STANDALONE = {
  client_id: 'tracker',
  redirect_uri: 'https://tracker.example/callback',
  scope: 'openid fhirUser launch/patient patient/*.rs user/*.rs',
}

const QUICK_URIS = JSON.stringify([STANDALONE.redirect_uri])
const WITH_ENCOUNTER = {
  ...STANDALONE,
  scope: STANDALONE.scope.replace('launch/patient', 'launch/encounter'),
}

const relatedPerson = (id: string, of: string, more: object = {}): Resource => ({
  resourceType: 'RelatedPerson',
  id,
  patient: { reference: `Patient/${of}` },
  ...more,
})

const RESOURCES: readonly Resource[] = [
  ...['juniper', 'ashlar', 'cedar', 'dale'].map(id => patient(id, id, 'Alba')),
  makeEncounter('enc-1', 'juniper', 'in-progress'),
  makeEncounter('enc-2', 'juniper', 'finished'),
  makeEncounter('enc-9', 'cedar', 'in-progress'),
  relatedPerson('r-cedar', 'cedar'),
  relatedPerson('r-dale', 'dale', {
    relationship: [
      { coding: [{ system: 'http://terminology.hl7.org/CodeSystem/v3-RoleCode', code: 'MTH' }] },
    ],
  }),
  relatedPerson('r-inactive', 'ashlar', { active: false }),
  relatedPerson('r-ended', 'ashlar', { period: { end: '2026-11-12' } }),
]

describe('a patient who signs in', () => {
  const open = openTestStore()
  let auth: TestAuthServer
  let browser: TestBrowser
  before(async () => {
    auth = await TestAuthServer.open(await open(), { resources: RESOURCES })
    await auth.addUser('alba', { fhir_user_id: 'Patient/juniper' })
    await auth.addClient({ client_id: 'tracker', scope: STANDALONE.scope, first_party: false })
    browser = await auth.logIn('alba')
    await auth.addClient({ client_id: 'quick', scope: STANDALONE.scope, redirect_uris: QUICK_URIS })
  })

  it('needs no page where nothing is to choose, so that prompt=none works (PATIENTS-2)', async () => {
    const silent = { ...STANDALONE, client_id: 'quick', prompt: 'none' }
    const { code = '' } = readRedirect(await auth.authorize(browser, silent))
    const { redirect_uri } = STANDALONE
    assert.equal((await auth.exchange(code, { client_id: 'quick', redirect_uri })).json().patient, 'juniper')
    const several = { ...silent, scope: WITH_ENCOUNTER.scope }
    assert.equal(readRedirect(await auth.authorize(browser, several)).error, 'interaction_required')
  })

  it('chooses only the encounter, if there are several (PATIENTS-2)', async () => {
    const asked = await auth.authorize(browser, WITH_ENCOUNTER)
    assert.match(asked.headers.location ?? '', /^\/oauth2\/pick\?/)
    const { body } = await browser.get(asked.headers.location ?? '')
    assert.match(body, /value="enc-1"[\s\S]*value="enc-2"/)
    assert.doesNotMatch(body, /another patient|data-patient-id/)
    assert.match(
      body,
      /<h1>Choose a visit for tracker<\/h1>[\s\S]*<legend class="legend">Visit<[\s\S]*No visit/,
    )
    assert.doesNotMatch(body, /[Ee]ncounter<|MRN/)
  })

  it('opens an app for their own record, without a picker (PATIENTS-2, PATIENTS-9)', async () => {
    const asked = await auth.authorize(browser, STANDALONE)
    assert.match(asked.headers.location ?? '', /^\/oauth2\/consent\?/)
    const page = await browser.get(asked.headers.location ?? '')
    assert.match(page.body, /<h1>Allow tracker to use your record\?<\/h1>/)
    assert.match(page.body, />juniper<\/span>, Alba/)
    assert.match(page.body, /Your name and identity/)
    const form = new URLSearchParams(
      [...page.body.matchAll(/<input type="(?:hidden|checkbox)"[^>]* name="([^"]*)" value="([^"]*)"/g)].map(
        ([, name = '', value = '']) => [name, value],
      ),
    )
    const sent = await browser.post('/oauth2/consent', `${form}&decision=allow`)
    const { code = '' } = readRedirect(sent)
    const { client_id, redirect_uri } = STANDALONE
    const tokens = (await auth.exchange(code, { client_id, redirect_uri })).json()
    assert.equal(tokens.patient, 'juniper')
    for (const token of [tokens.access_token, tokens.id_token])
      assert.equal(decodeClaims(token).fhirUser, 'http://localhost:8080/fhir/Patient/juniper')
  })

  it('is told the truth about a request that was answered before, in plain words', async () => {
    const asked = await auth.authorize(browser, STANDALONE)
    const url = asked.headers.location ?? ''
    const form = readForm((await browser.get(url)).body)
    await browser.post('/oauth2/consent', `${form}&decision=allow`)
    const { body, statusCode } = await browser.get(url)
    assert.equal(statusCode, 400)
    assert.match(body, /already answered[\s\S]*apps that you allowed keep their access until it expires/)
    assert.doesNotMatch(body, /has none/)
    assert.match(body, /href="\/manage"/)
    assert.doesNotMatch(body, /No record was opened|patient list|invalid_request|href="\/activity/)
  })

  it('reads plain words on the account pages, and beforehand what a new password ends', async () => {
    const account = (await browser.get('/account')).body
    assert.match(account, /Two-step sign-in/)
    assert.doesNotMatch(account, /command line|Second factors/)
    const steps = (await browser.get('/account/factors')).body
    assert.match(steps, /<title>Two-step sign-in –[\s\S]*<h1>Two-step sign-in<\/h1>/)
    assert.match(steps, /Ask the organization that gave you your account/)
    assert.doesNotMatch(steps, /second factor/i)
    const password = (await browser.get('/account/password')).body
    assert.match(
      password,
      /you are signed out in all other browsers, and apps lose the access that you gave them/,
    )
    assert.doesNotMatch(password, /bytes/)
    assert.match((await auth.openBrowser().get('/login')).body, /name="username"[^>]* autofocus/)
  })

  it('reads the FHIR server as that patient (PATIENTS-2)', async () => {
    auth.fhir.requests.length = 0
    await browser.get('/manage')
    await browser.get((await auth.authorize(browser, STANDALONE)).headers.location ?? '')
    assert.ok(auth.fhir.requests.length > 0)
    for (const { authorization } of auth.fhir.requests)
      assert.equal(decodeClaims(authorization).fhirUser, 'http://localhost:8080/fhir/Patient/juniper')
  })

  it('is redirected from the pages about all patients (PATIENTS-3)', async () => {
    for (const path of ['/portal', '/portal?patient=ashlar', '/portal?search=a'])
      assert.equal((await browser.get(path)).headers.location, '/home', path)
    const launched = await browser.post('/portal/launch', { patientId: 'juniper' })
    assert.equal(launched.headers.location, '/home')
    assert.equal((await browser.get('/activity')).statusCode, 403)
    const { body } = await browser.get('/manage')
    assert.doesNotMatch(body, /href="\/portal">Patients|href="\/activity"/)
    assert.match(body, /href="\/account"/)
  })
})

describe('a related person who signs in', () => {
  const open = openTestStore()
  let auth: TestAuthServer
  let browser: TestBrowser
  before(async () => {
    auth = await TestAuthServer.open(await open(), { resources: RESOURCES })
    await auth.addClient({
      client_id: 'quick',
      scope: `${STANDALONE.scope} offline_access`,
      redirect_uris: QUICK_URIS,
    })
  })

  /** Adds a user who acts as these RelatedPersons, and signs in. */
  async function signIn(username: string, fhirUserId: string, relatedPersons: readonly string[]) {
    await auth.addUser(username, { fhir_user_id: fhirUserId })
    const { db } = auth.store
    const { id } = await db
      .selectFrom('clinician')
      .select('id')
      .where('username', '=', username)
      .executeTakeFirstOrThrow()
    for (const related_person_id of relatedPersons)
      await db.insertInto('account_related_person').values({ clinician_id: id, related_person_id }).execute()
    browser = await auth.logIn(username)
    return { id }
  }

  const QUICK = { ...STANDALONE, client_id: 'quick', scope: `${STANDALONE.scope} offline_access` }
  const exchange = async (response: Awaited<ReturnType<TestBrowser['get']>>) => {
    const { client_id, redirect_uri } = QUICK
    return (await auth.exchange(readRedirect(response).code ?? '', { client_id, redirect_uri })).json()
  }
  const pick = async (patientId: string) => {
    const { location = '' } = (await auth.authorize(browser, QUICK)).headers
    const form = readForm((await browser.get(location)).body)
    return browser.post('/oauth2/pick', `${form}&patientId=${patientId}`)
  }

  /** The claims of the token that the last list of patients was read with. */
  const findListClaims = () => {
    const search = auth.fhir.requests.findLast(({ url }) => url.pathname.endsWith('/Patient'))
    return decodeClaims(search?.authorization)
  }

  it('opens an app for the only patient they act for, as the RelatedPerson (PATIENTS-4)', async () => {
    await signIn('ines', 'RelatedPerson/r-cedar', ['r-cedar'])
    const tokens = await exchange(await auth.authorize(browser, QUICK))
    assert.equal(tokens.patient, 'cedar')
    const claims = decodeClaims(tokens.access_token)
    assert.deepEqual(
      [claims.fhirUser, claims.user_patients],
      ['http://localhost:8080/fhir/RelatedPerson/r-cedar', ['cedar']],
    )
    assert.equal((await browser.get('/portal')).headers.location, '/home')
  })

  it('reads whose record an app would use (PATIENTS-9)', async () => {
    await auth.addClient({ client_id: 'tracker', scope: STANDALONE.scope, first_party: false })
    await signIn('aunt', 'RelatedPerson/r-dale', ['r-dale'])
    const { location = '' } = (await auth.authorize(browser, STANDALONE)).headers
    const { body } = await browser.get(location)
    assert.match(body, /<h1>Allow tracker to use the record of Alba dale\?<\/h1>/)
    assert.match(body, /Every record you may open/)
    await signIn('grandmother', 'Patient/juniper', ['r-dale', 'r-cedar'])
    const choice = await browser.get((await auth.authorize(browser, QUICK)).headers.location ?? '')
    assert.match(choice.body, /<h1>Whose record should quick use\?<\/h1>/)
  })

  it('sees each record once, with who it is, in the picker, on the start page and in the log (PATIENTS-9)', async () => {
    await signIn('mother', 'Patient/juniper', ['r-dale', 'r-cedar'])
    await exchange(await pick('dale'))
    const { location = '' } = (await auth.authorize(browser, QUICK)).headers
    const { body } = await browser.get(location)
    assert.deepEqual(
      [...body.matchAll(/value="([a-z]+)"><span class="choice__main">(.*?)<\/span><\/span>/g)].map(
        ([, id, text]) => [id, text?.replace(/<[^>]*>|&ensp;/g, ' ').trim()],
      ),
      [
        ['juniper', 'Alba juniper  You'],
        ['cedar', 'Alba cedar  You act for this person'],
        ['dale', 'Alba dale  Your child'],
      ],
    )
    assert.doesNotMatch(body, /Recent|MRN/)
    const home = (await browser.get('/home')).body
    assert.match(home, /Your own record[\s\S]*You act for this person[\s\S]*Your child/)
    const log = (await browser.get('/account/access-log?patient=dale')).body
    assert.match(log, /patient=dale" aria-current="page">Alba dale \(your child\)/)
    assert.match(log, /patient=juniper">Alba juniper \(you\)/)
  })

  it('ends the access of an app to one record, and keeps that to another (REVOKE-3)', async () => {
    const app = { client_id: 'diary', redirect_uri: STANDALONE.redirect_uri }
    const scope = 'launch/patient patient/Condition.rs offline_access'
    await auth.addClient({ client_id: 'diary', name: 'Diary', scope, redirect_uris: QUICK_URIS })
    await signIn('father', 'Patient/juniper', ['r-dale'])
    const allow = async (patientId: string) => {
      const { location = '' } = (await auth.authorize(browser, { ...app, scope })).headers
      const form = readForm((await browser.get(location)).body)
      const picked = await browser.post('/oauth2/pick', `${form}&patientId=${patientId}`)
      return (await auth.exchange(readRedirect(picked).code ?? '', app)).json().refresh_token
    }
    const [own, ofChild] = [await allow('juniper'), await allow('dale')]
    const [, url = ''] =
      /href="([^"]+patient=dale)">End for this record/.exec((await browser.get('/manage')).body) ?? []
    const page = (await browser.get(url.replaceAll('&amp;', '&'))).body
    assert.match(page, /<h1>End Diary’s access to the record of Alba dale\?<\/h1>/)
    assert.match(page, /keeps its access to another record/)
    assert.match((await browser.get('/manage/remove?client=diary')).body, /End access to both records/)
    const response = await browser.post('/manage/remove', readForm(page).toString())
    const after = (await browser.get(response.headers.location ?? '')).body
    assert.match(after, /Diary can no longer use the record of Alba dale on your behalf/)
    assert.match(after, /data-label="Records">Alba juniper</)
    const refresh = async (token: string) => (await auth.refresh(token, { client_id: 'diary' })).statusCode
    assert.deepEqual([await refresh(own), await refresh(ofChild)], [200, 400])
    assert.equal((await browser.get(url.replaceAll('&amp;', '&'))).headers.location, '/manage')
    const again = await browser.post('/manage/remove', readForm(page).toString())
    assert.equal(again.headers.location, '/manage')
  })

  it('shows what an app may do with each record, if that differs (REVOKE-3)', async () => {
    const app = { client_id: 'ledger', redirect_uri: STANDALONE.redirect_uri }
    const scopes = ['patient/Condition.rs', 'patient/Goal.rs']
    const scope = `launch/patient offline_access ${scopes.join(' ')}`
    await auth.addClient({ client_id: 'ledger', name: 'Ledger', scope, redirect_uris: QUICK_URIS })
    await signIn('stepfather', 'Patient/juniper', ['r-dale'])
    const allow = async (patientId: string, granted: string) => {
      const wanted = { ...app, scope: `launch/patient offline_access ${granted}` }
      const { location = '' } = (await auth.authorize(browser, wanted)).headers
      const form = readForm((await browser.get(location)).body)
      const picked = await browser.post('/oauth2/pick', `${form}&patientId=${patientId}`)
      await auth.exchange(readRedirect(picked).code ?? '', app)
      // The newest is first.
      auth.time.now += 1000
    }
    const read = async (url: string) =>
      (await browser.get(url)).body.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ')
    await allow('juniper', 'patient/Condition.rs')
    await allow('dale', 'patient/Condition.rs')
    assert.match(await read('/home'), /May use the record of Alba dale and your record\. Reads conditions\./)
    assert.match(await read('/manage'), /Ledger App of the hospital tracker\.example Reads conditions/)
    await allow('dale', 'patient/Goal.rs')
    assert.match(
      await read('/home'),
      /Ledger App of the hospital tracker\.example May use the record of Alba dale: reads goals and conditions\. May use your record: reads conditions\. Until/,
    )
    for (const url of ['/manage', '/manage/remove?client=ledger'])
      assert.match(
        await read(url),
        /Different for each record .*Alba dale Born [^ ]+ Reads goals and conditions .*Alba juniper Born [^ ]+ Reads conditions /,
      )
    assert.match(
      await read('/manage/remove?client=ledger&patient=juniper'),
      /Permissions Reads conditions Record/,
    )
  })

  it('does not end the access to one record if the app opens every record (REVOKE-3)', async () => {
    await signIn('uncle', 'Patient/juniper', ['r-dale'])
    const { refresh_token } = await exchange(await pick('dale'))
    assert.match((await browser.get('/manage')).body, /All you may see/)
    const one = { client: 'quick', patient: 'dale' }
    assert.equal((await browser.post('/manage/remove', one)).headers.location, '/manage')
    assert.doesNotMatch((await browser.get('/manage?removed=quick&patient=dale')).body, /Access ended/)
    assert.equal((await auth.refresh(refresh_token, { client_id: 'quick' })).statusCode, 200)
  })

  it('selects themselves what an app may change, and whether it keeps access (CONSENT-6)', async () => {
    const app = { client_id: 'notes', redirect_uri: STANDALONE.redirect_uri }
    const scope = 'launch/patient offline_access patient/Observation.cruds patient/Goal.c'
    await auth.addClient({ client_id: app.client_id, scope, redirect_uris: QUICK_URIS, first_party: false })
    for (const [username, fhirUser, relatedPersons] of [
      ['own', 'Patient/juniper', []],
      ['niece', 'RelatedPerson/r-dale', ['r-dale']],
    ] as const) {
      await signIn(username, fhirUser, relatedPersons)
      const ask = async () => {
        const { location = '' } = (await auth.authorize(browser, { ...app, scope })).headers
        return (await browser.get(location)).body
      }
      const allow = async (form: URLSearchParams) => {
        const { code = '' } = readRedirect(await browser.post('/oauth2/consent', `${form}&decision=allow`))
        return (await auth.exchange(code, app)).json()
      }
      const page = await ask()
      assert.match(page, /It may change the record or keep access while you are away only if you select that/)
      assert.match(page, /If you leave this out, the app cannot add, change or delete such entries/)
      assert.match(
        page,
        /If you leave this out, its access ends after 5 minutes\. The app then asks you again/,
      )
      const untouched = await allow(readForm(page))
      assert.equal(untouched.scope, 'launch/patient patient/Observation.rs')
      assert.equal(untouched.refresh_token, undefined)
      const form = readForm(await ask())
      for (const box of ['offline_access', 'patient/Observation.cud', 'patient/Goal.c'])
        form.append('scope', box)
      const all = await allow(form)
      assert.equal(all.scope, scope)
      assert.ok(all.refresh_token)
    }
  })

  it('is told in place if nothing is selected (CONSENT-6)', async () => {
    const app = { client_id: 'writer', redirect_uri: STANDALONE.redirect_uri }
    const scope = 'launch/patient offline_access patient/Goal.c'
    await auth.addClient({ client_id: app.client_id, scope, redirect_uris: QUICK_URIS, first_party: false })
    await signIn('grandfather', 'RelatedPerson/r-dale', ['r-dale'])
    const { location = '' } = (await auth.authorize(browser, { ...app, scope })).headers
    const form = readForm((await browser.get(location)).body)
    assert.deepEqual(form.getAll('scope'), [])
    const sent = await browser.post('/oauth2/consent', `${form}&decision=allow`)
    assert.equal(sent.statusCode, 400)
    assert.match(sent.body, /role="alert"[\s\S]*Nothing is selected\.[\s\S]*Nothing has been shared yet/)
    form.append('scope', 'patient/Goal.c')
    assert.ok(readRedirect(await browser.post('/oauth2/consent', `${form}&decision=allow`)).code)
  })

  it('chooses among themselves and their dependants (PATIENTS-4)', async () => {
    await signIn('parent', 'Patient/juniper', ['r-dale', 'r-cedar'])
    const { location = '' } = (await auth.authorize(browser, QUICK)).headers
    assert.match(location, /^\/oauth2\/pick\?/)
    assert.doesNotMatch((await browser.get(location)).body, /name="search"/)
    assert.deepEqual(findListClaims().user_patients, ['juniper', 'cedar', 'dale'])
    for (const [patientId, fhirUser] of [
      ['dale', 'RelatedPerson/r-dale'],
      ['juniper', 'Patient/juniper'],
    ] as const) {
      const tokens = await exchange(await pick(patientId))
      assert.equal(tokens.patient, patientId)
      for (const token of [tokens.access_token, tokens.id_token])
        assert.equal(decodeClaims(token).fhirUser, `http://localhost:8080/fhir/${fhirUser}`)
      assert.deepEqual(decodeClaims(tokens.access_token).user_patients, ['juniper', 'cedar', 'dale'])
    }
  })

  it('has no access by a RelatedPerson that is inactive, has ended or does not exist (PATIENTS-4)', async () => {
    await signIn('former', 'RelatedPerson/r-inactive', ['r-inactive', 'r-ended', 'r-unknown'])
    const { location = '' } = (await auth.authorize(browser, QUICK)).headers
    assert.match(location, /^\/oauth2\/pick\?/)
    await browser.get(location)
    assert.equal(findListClaims().user_patients, undefined)
  })

  it('gets no new token once they no longer act for the patient, or while that is unknown (PATIENTS-5)', async () => {
    const { id } = await signIn('brief', 'RelatedPerson/r-dale', ['r-dale'])
    const { refresh_token } = await exchange(await auth.authorize(browser, QUICK))
    auth.fhir.fail('no-response')
    const meanwhile = await auth.refresh(refresh_token, { client_id: 'quick' })
    assert.equal(meanwhile.json().error, 'temporarily_unavailable')
    auth.fhir.fail(undefined)
    const again = (await auth.refresh(refresh_token, { client_id: 'quick' })).json()
    assert.equal(again.patient, 'dale')
    await auth.store.db.deleteFrom('account_related_person').where('clinician_id', '=', id).execute()
    const later = await auth.refresh(again.refresh_token, { client_id: 'quick' })
    assert.equal(later.json().error, 'invalid_grant')
  })
})
