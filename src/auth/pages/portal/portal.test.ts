import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { createLocalJWKSet, jwtVerify } from 'jose'
import { createUserFilter, parsePolicy } from '../../../smart/index.ts'
import { readForm } from '../../testing/read-form.ts'
import { testSettings } from '../../testing/settings.ts'
import { TestAuthServer } from '../../testing/test-auth-server.ts'
import type { TestBrowser } from '../../testing/test-browser.ts'
import { makeEncounter, patient } from '../../testing/test-fhir-server.ts'
import { openTestStore } from '../../testing/test-store.ts'

const crowd = Array.from({ length: 30 }, (_, at) =>
  patient(`p${at}`, `Family${String(29 - at).padStart(2, '0')}`, 'Given'),
)

const RESOURCES = [
  patient('juniper', 'Juniper', 'Alba', {
    identifier: [{ type: { coding: [{ code: 'MR' }] }, value: 'SYN-004127' }],
  }),
  patient('juniper2', 'Juniper', 'Alban', { birthDate: '1985-03-14', gender: 'male' }),
  patient('limestone', 'Limestone', 'Edith', { deceasedDateTime: '2025-02-02' }),
  { resourceType: 'Patient', id: 'nameless' },
  patient('evil', '<script>alert(1)</script>', '"onload="x'),
  makeEncounter('enc-old', 'juniper', 'finished', { period: { start: '2026-08-19T10:00:00Z' } }),
  makeEncounter('enc-now', 'juniper', 'in-progress', {
    participant: [{ individual: { display: 'Dr. Priya Quill' } }],
  }),
  makeEncounter('enc-new', 'juniper', 'finished', {
    period: { start: '2026-10-02T10:00:00Z', end: '2026-10-03T10:00:00Z' },
  }),
  makeEncounter('enc-other', 'juniper2', 'in-progress'),
]

function findLink(body: string, relation: 'next' | 'prev'): string {
  const [, href = ''] = new RegExp(`href="([^"]*)" rel="${relation}"`).exec(body) ?? []
  return href.replaceAll('&amp;', '&')
}

function rowsIn(body: string): readonly string[] {
  return [...body.matchAll(/class="prow"[^>]* href="[^"]*patient=([^"&]*)/g)].map(match => match[1] ?? '')
}

function idsIn(body: string): readonly string[] {
  return [...body.matchAll(/data-patient-id="([^"]*)"/g)].map(match => match[1] ?? '')
}

describe('GET /portal', () => {
  const open = openTestStore()
  let auth: TestAuthServer
  let browser: TestBrowser
  before(async () => {
    auth = await TestAuthServer.open(await open(), { resources: RESOURCES })
    browser = await auth.logIn()
  })

  it('redirects to /login without a login (PORTAL-2)', async () => {
    const response = await auth.openBrowser().get('/portal?search=x')
    assert.equal(response.statusCode, 302)
    assert.equal(response.headers.location, '/login')
  })

  it("requests 20 patients from the FHIR server with the portal's own token for the clinician (PORTAL-3, PORTAL-6)", async () => {
    auth.fhir.requests.length = 0
    await browser.get('/portal')
    const [asked] = auth.fhir.requests
    assert.equal(asked?.url.href, 'http://localhost:8080/fhir/Patient?_count=20&_sort=family,given')
    const keys = createLocalJWKSet((await browser.get('/oauth2/jwks')).json())
    const { payload } = await jwtVerify(asked?.authorization?.slice('Bearer '.length) ?? '', keys, {
      issuer: 'http://localhost:9000',
      audience: 'http://localhost:8080/fhir',
      typ: 'at+jwt',
      currentDate: new Date(auth.time.now),
    })
    assert.equal(payload.client_id, 'sallyport-portal')
    assert.equal(payload.scope, 'user/Patient.rs user/Encounter.rs')
    assert.equal(payload.fhirUser, 'http://localhost:8080/fhir/Practitioner/practitioner-1')
    assert.equal(Number(payload.exp) - Number(payload.iat), 60)
  })

  it('lists patients by family name, one element each, with the FHIR base URL (PORTAL-5)', async () => {
    const page = await browser.get('/portal')
    assert.deepEqual(idsIn(page.body), ['evil', 'juniper', 'juniper2', 'limestone', 'nameless'])
    for (const text of [
      'http://localhost:8080/fhir',
      'Dr. Robin Ahmadi',
      'SYN-004127',
      '14-Mar-1958',
      'No patient selected',
    ])
      assert.ok(page.body.includes(text), text)
  })

  it('lists at most 20 (PORTAL-3)', async () => {
    const many = await TestAuthServer.open(await open(), { resources: crowd })
    const browser = await many.logIn()
    const page = await browser.get('/portal')
    assert.equal(idsIn(page.body).length, 20)
    assert.match(page.body, /Patients 1 to 20 of 30, by family name\./)
    const found = await browser.get('/portal?search=family')
    assert.match(found.body, /Patients 1 to 20 of 30 match “family”</)
    // A server that does not sort may leave out patients at the beginning.
    many.fhir.refuse('_sort')
    many.fhir.refuseLinks()
    const unsorted = await browser.get('/portal')
    assert.match(unsorted.body, /Patients 1 to 20 of 30\. Search to find the others\./)
  })

  it('pages through the patients by family name, forwards and back (PORTAL-3)', async () => {
    const many = await TestAuthServer.open(await open(), { resources: crowd })
    const browser = await many.logIn()
    const first = await browser.get('/portal')
    assert.deepEqual([idsIn(first.body)[0], idsIn(first.body).at(-1)], ['p29', 'p10'])
    assert.doesNotMatch(first.body, /rel="prev"/)
    const second = await browser.get(findLink(first.body, 'next'))
    assert.deepEqual(idsIn(second.body), ['p9', 'p8', 'p7', 'p6', 'p5', 'p4', 'p3', 'p2', 'p1', 'p0'])
    assert.match(second.body, /Patients 21 to 30 of 30, by family name\./)
    assert.doesNotMatch(second.body, /rel="next"/)
    const back = await browser.get(findLink(second.body, 'prev'))
    assert.deepEqual(idsIn(back.body), idsIn(first.body))
    assert.match(back.body, /Patients 1 to 20 of 30, by family name\./)
    assert.doesNotMatch(back.body, /rel="prev"/)
    // A selected patient keeps its page.
    const [row = ''] = /href="[^"]*patient=p9"/.exec(second.body) ?? []
    assert.match(row, /page=21\.Patient%3F/)
  })

  it('lists one family by given name, over several pages (PORTAL-3)', async () => {
    const given = Array.from({ length: 25 }, (_, at) => `Given${String.fromCharCode(97 + ((at * 7) % 25))}`)
    const resources = given.map((name, at) => patient(`s${at}`, 'Smith', name))
    const browser = await (await TestAuthServer.open(await open(), { resources })).logIn()
    const first = await browser.get('/portal')
    const second = await browser.get(findLink(first.body, 'next'))
    const sorted = resources.toSorted((a, b) => JSON.stringify(a.name).localeCompare(JSON.stringify(b.name)))
    assert.deepEqual(
      [...idsIn(first.body), ...idsIn(second.body)],
      sorted.map(({ id }) => id),
    )
  })

  it('reads no other URL than a page of patients', async () => {
    for (const page of [
      'Encounter?_count=1',
      '../metadata',
      'Patient/juniper',
      'Patient?x#y',
      `Patient?${'x'.repeat(8000)}`,
    ]) {
      auth.fhir.requests.length = 0
      const { body } = await browser.get(`/portal?page=${encodeURIComponent(page)}`)
      assert.equal(idsIn(body).length, 5, page)
      assert.deepEqual(
        auth.fhir.requests.map(({ url }) => url.search),
        ['?_count=20&_sort=family,given'],
        page,
      )
    }
  })

  it('lists the patients and apps that the clinician opened last first (PORTAL-3)', async () => {
    const resources = [...RESOURCES, ...crowd]
    const other = await TestAuthServer.open(await open(), { resources })
    for (let at = 0; at < 12; at++)
      await other.addClient({ client_id: `app-${at}`, name: `App ${String(at).padStart(2, '0')}` })
    const clinician = await other.logIn()
    for (const patientId of ['limestone', 'p29', 'p1', 'limestone']) {
      other.time.now += 1000
      await other.launch(clinician, { patientId, clientId: 'app-11' })
    }
    const { body } = await clinician.get('/portal?patient=p1')
    const [recent, list] = [rowsIn(body).slice(0, 3), rowsIn(body).slice(3)]
    assert.deepEqual(recent, ['limestone', 'p1', 'p29'])
    assert.match(body, /Recent<[\s\S]*All by family name</)
    // Recent patients are a copy: the list has them as well.
    assert.deepEqual(list.slice(0, 3), ['evil', 'p29', 'p28'])
    assert.equal(list.length, 20)
    assert.match(body, /Patients 1 to 20 of 35, by family name\./)
    // Each patient has one element with the id (PORTAL-5).
    assert.equal(new Set(idsIn(body)).size, idsIn(body).length)
    const apps = [...body.matchAll(/choice--link" name="client" value="([^"]*)"/g)].map(match => match[1])
    assert.deepEqual(apps.slice(0, 2), ['app-11', 'app-0'])
    assert.equal(apps.length, 7)
    const found = await clinician.get('/portal?patient=p1&app=pp%2009')
    assert.match(found.body, /choice--link" href="[^"]*client=app-9"/)
    assert.doesNotMatch(found.body, /Launch Demo app/)
    const nobody = await (await other.logIn()).get('/portal?search=family')
    assert.doesNotMatch(nobody.body, />Recent</)
  })

  it('marks the picked patient alike among the recent ones and in the list (PORTAL-3)', async () => {
    const other = await TestAuthServer.open(await open(), { resources: RESOURCES })
    const clinician = await other.logIn()
    await other.launch(clinician, { patientId: 'limestone' })
    const rows = async (path: string) =>
      [...(await clinician.get(path)).body.matchAll(/<a class="prow"[^>]*href="([^"]*)"([^>]*)>/g)]
        .filter(([, href]) => href?.includes('patient=limestone'))
        .map(([, href = '', rest = '']) => ({
          href: href.replaceAll('&amp;', '&'),
          current: /current/.test(rest),
        }))
    const [recent, listed] = await rows('/portal')
    assert.ok(recent && listed)
    const current = async (path: string) => (await rows(path)).map(row => row.current)
    assert.deepEqual(await current('/portal'), [false, false])
    assert.equal(recent.href, listed.href)
    assert.deepEqual(await current(recent.href), [true, true])
    assert.deepEqual(await current('/portal?search=limestone&patient=limestone'), [true])
  })

  it('calls the list "My patients" where a policy limits the clinician', async () => {
    const policy = parsePolicy({ rules: [{ clinicians: 'all', patients: ['juniper'] }] })
    assert.ok('rules' in policy)
    const other = await TestAuthServer.open(await open(), { userFilter: createUserFilter(policy) })
    assert.match((await (await other.logIn()).get('/portal')).body, /<h1>My patients<\/h1>/)
    assert.match((await browser.get('/portal')).body, /<h1>Patients<\/h1>/)
  })

  it('marks patients with similar names and patients who died', async () => {
    const { body } = await browser.get('/portal')
    assert.equal(body.match(/Similar name/g)?.length, 2)
    assert.match(body, />Died</)
  })

  describe('similar names', () => {
    const far = Array.from({ length: 22 }, (_, at) => String.fromCharCode(98 + at).repeat(3 + at))
    const family = ['Alba', ...far, 'Xlba'].map((given, at) => patient(`s${at}`, 'Smith', given))
    const unknown = /Not all names could be compared/

    it('are marked wherever the other patient is (PORTAL-10)', async () => {
      const other = await (await TestAuthServer.open(await open(), { resources: family })).logIn()
      const first = await other.get('/portal')
      assert.match(first.body, /Smith<\/span>, Alba&ensp;<span class="badge badge--warn">Similar name/)
      assert.equal(first.body.match(/Similar name</g)?.length, 1)
      assert.doesNotMatch(first.body, unknown)
      const second = await other.get(findLink(first.body, 'next'))
      assert.match(second.body, /Smith<\/span>, Xlba&ensp;<span class="badge badge--warn">Similar name/)
      const found = await other.get('/portal?search=alba')
      assert.equal(found.body.match(/Similar name</g)?.length, 1)
    })

    it('are said to be unknown if the server cannot find them, or finds too many (PORTAL-10)', async () => {
      const few = await TestAuthServer.open(await open(), { resources: family })
      const browser = await few.logIn()
      few.fhir.refuse('family')
      assert.match((await browser.get('/portal')).body, unknown)
      const resources = [
        ...family,
        ...Array.from({ length: 180 }, (_, at) => patient(`t${at}`, 'Smith', `Zz${at}`)),
      ]
      const many = await TestAuthServer.open(await open(), { resources })
      assert.match((await (await many.logIn()).get('/portal')).body, unknown)
    })
  })

  it('marks records that are not in use (PORTAL-3)', async () => {
    const resources = [
      patient('x', 'Used', 'A', { active: true }),
      patient('y', 'Merged', 'B', { active: false }),
    ]
    const other = await (await TestAuthServer.open(await open(), { resources })).logIn()
    const { body } = await other.get('/portal')
    assert.equal(body.match(/Inactive record/g)?.length, 1)
    assert.match(body, /Merged[\s\S]{0,80}Inactive record/)
  })

  it('shows "Sample data" only if all patients on the page are fictitious', async () => {
    const tag = [{ system: 'http://terminology.hl7.org/CodeSystem/v3-ActReason', code: 'HTEST' }]
    const made = patient('made', 'Sample', 'A', { meta: { tag } })
    const resources = [made, patient('imported', 'Import', 'B'), makeEncounter('e', 'made', 'finished')]
    const other = await (await TestAuthServer.open(await open(), { resources })).logIn()
    const says = async (query: string) => /Sample data/.test((await other.get(`/portal?${query}`)).body)
    assert.equal(await says('search=sample'), true)
    assert.equal(await says('search=sample&patient=made'), true)
    assert.equal(await says('search=sample&patient=imported'), false)
    assert.equal(await says(''), false)
    assert.equal(await says('search=nobody'), false)
    const account = (await other.get('/account/sign-ins')).body
    assert.doesNotMatch(account, /Sample data|fictitious/, 'a page without patients')
    const fhir = { ...testSettings.fhir, upstreamUrl: 'https://fhir.example' }
    const gateway = await TestAuthServer.open(await open(), { resources, settings: { fhir } })
    assert.doesNotMatch((await (await gateway.logIn()).get('/portal?search=sample')).body, /Sample data/)
  })

  it('shows that there is no MRN, and labels the FHIR id', async () => {
    const { body } = await browser.get('/portal?search=limestone')
    assert.match(body, /<span class="unknown">No MRN<\/span> <span class="prow__id">FHIR id limestone</)
    assert.doesNotMatch(body, /<span class="prow__label">MRN/)
  })

  it('shows a record number as long as a UUID on its own line', async () => {
    const identifier = (value: string) => [{ type: { coding: [{ code: 'MR' }] }, value }]
    const resources = [
      patient('short', 'Short', 'A', { identifier: identifier('SYN-000001') }),
      patient('long', 'Long', 'B', { identifier: identifier('6f1c1f0e-5d53-4c0e-9d5b-0c8f2c7f4a11') }),
    ]
    const other = await TestAuthServer.open(await open(), { resources })
    const { body } = await (await other.logIn()).get('/portal')
    assert.match(body, /prow__fact--long"><span class="prow__label">MRN <\/span>6f1c1f0e/)
    assert.match(body, /prow__fact"><span class="prow__label">MRN <\/span>SYN-000001/)
  })

  it('shows markup in names as text', async () => {
    const { body } = await browser.get('/portal?patient=evil')
    assert.doesNotMatch(body, /<script>alert/)
    assert.match(body, /&lt;script&gt;alert\(1\)/)
  })

  it('explains an empty list', async () => {
    const empty = await TestAuthServer.open(await open(), { resources: [] })
    assert.match((await (await empty.logIn()).get('/portal')).body, /No patients/)
  })

  describe('with a selected patient', () => {
    it('shows the banner, and the encounters with the one in progress first and selected', async () => {
      const { body } = await browser.get('/portal?search=juniper&patient=juniper')
      assert.match(body, /<h2 class="patient__name" id="picked" tabindex="-1" autofocus>/)
      const values = [...body.matchAll(/name="encounterId" value="([^"]*)"( checked)?/g)]
      assert.deepEqual(
        values.map(([, id, checked]) => `${id}${checked ?? ''}`),
        ['enc-now checked', 'enc-new', 'enc-old', ''],
      )
      for (const text of [
        'In progress',
        'Finished',
        'Dr. Priya Quill',
        'name="patientId" value="juniper"',
        'Launch Demo app',
      ])
        assert.ok(body.includes(text), text)
      assert.match(
        body,
        /Similar name: <span class="family">Juniper<\/span>, Alban, born .*, <span class="number">FHIR id juniper2<\/span>/,
      )
      assert.match(body, /Opens for <b>.*Alba<\/b>, <span class="number">MRN SYN-004127<\/span>/)
      // One app: nothing to choose.
      assert.doesNotMatch(body, /name="clientId"/)
    })

    it('warns of a similar name that is not in the list', async () => {
      const resources = [...crowd, patient('z1', 'Zircon', 'Anna'), patient('z2', 'Zircon', 'Anne')]
      const other = await TestAuthServer.open(await open(), { resources })
      const { body } = await (await other.logIn()).get('/portal?patient=z1')
      assert.match(body, /Similar name: <span class="family">Zircon<\/span>, Anne/)
    })

    it('warns of a similar name if more patients share the family name than it reads at once (PICKER-5)', async () => {
      const family = Array.from({ length: 60 }, (_, at) => patient(`s${at}`, 'Smith', `Bob${'x'.repeat(at)}`))
      const resources = [...family, patient('z1', 'Smith', 'Xavier'), patient('z2', 'Smith', 'Xavior')]
      const other = await TestAuthServer.open(await open(), { resources })
      const { body } = await (await other.logIn()).get('/portal?patient=z1')
      assert.match(body, /Similar name: <span class="family">Smith<\/span>, Xavior/)
    })

    it('selects no encounter if several are in progress', async () => {
      const resources = [
        patient('x', 'X', 'Y'),
        makeEncounter('e1', 'x', 'finished'),
        makeEncounter('e2', 'x', 'finished'),
      ]
      const other = await TestAuthServer.open(await open(), { resources })
      const { body } = await (await other.logIn()).get('/portal?patient=x')
      assert.doesNotMatch(body, /name="encounterId"[^>]* checked/)
      const none = await browser.get('/portal?patient=limestone')
      assert.match(none.body, /name="encounterId" value="" checked/)
    })

    it('shows earlier encounters on the same page after one click', async () => {
      const visits = Array.from({ length: 7 }, (_, at) =>
        makeEncounter(`v${at}`, 'x', 'finished', { period: { start: `2026-0${at + 1}-01` } }),
      )
      const other = await TestAuthServer.open(await open(), {
        resources: [patient('x', 'X', 'Y'), ...visits],
      })
      const clinician = await other.logIn()
      const { body } = await clinician.get('/portal?patient=x')
      const ids = (text: string) =>
        [...text.matchAll(/name="encounterId" value="([^"]*)"/g)].map(match => match[1])
      assert.deepEqual(ids(body), ['v6', 'v5', 'v4', 'v3', 'v2', 'v1', 'v0', ''])
      const [, earlier = ''] = /id="earlier">([\s\S]*?)<\/div>/.exec(body) ?? []
      assert.deepEqual(ids(earlier), ['v2', 'v1', 'v0'])
      assert.match(body, /href="#earlier">Show 3 earlier encounters</)
    })

    it('lists the newest by start, counts all, and leads to the rest (PORTAL-8)', async () => {
      const visits = Array.from({ length: 120 }, (_, at) =>
        makeEncounter(`v${at}`, 'x', 'finished', {
          period: {
            start: new Date(Date.UTC(2020, 0, 1 + at)).toISOString(),
            ...(at % 2 ? {} : { end: '2026-01-01' }),
          },
        }),
      )
      const running = makeEncounter('now', 'x', 'in-progress', { period: { start: '2019-01-01' } })
      const other = await TestAuthServer.open(await open(), {
        resources: [patient('x', 'X', 'Y'), ...visits, running],
      })
      const clinician = await other.logIn()
      const ids = (text: string) =>
        [...text.matchAll(/name="encounterId" value="([^"]+)"/g)].map(match => match[1])
      const { body } = await clinician.get('/portal?patient=x')
      assert.deepEqual(ids(body).slice(0, 3), ['now', 'v119', 'v118'])
      assert.match(body, /Show 16 earlier encounters<\/a> of 117/)
      assert.match(
        body,
        /20 of 121 encounters\. <button [^>]*name="encounters" value="all" formaction="\/portal#earlier" formmethod="get">/,
      )
      const all = await clinician.get('/portal?patient=x&encounters=all')
      assert.equal(ids(all.body).length, 121)
      assert.doesNotMatch(all.body, /of 121 encounters/)
    })

    it('allows the form to redirect to the launch and redirect URIs of the app', async () => {
      const page = await browser.get('/portal?patient=juniper')
      assert.match(
        String(page.headers['content-security-policy']),
        /form-action 'self' http:\/\/localhost:8081/,
      )
    })

    it('reports a patient that does not exist, or an invalid id', async () => {
      for (const id of ['nobody', '..%2Fmetadata', 'a%2Fb', '%3Cscript%3E', 'x'.repeat(65)]) {
        auth.fhir.requests.length = 0
        const page = await browser.get(`/portal?patient=${id}`)
        assert.match(page.body, /Patient not found/, id)
        assert.ok(
          auth.fhir.requests.every(({ url }) =>
            /^\/fhir\/(Patient|Encounter)(\/nobody)?$/.test(url.pathname),
          ),
          id,
        )
      }
    })

    it('offers a choice of several apps, the default first, and launches the chosen one', async () => {
      const other = await TestAuthServer.open(await open(), { resources: RESOURCES })
      await other.addClient({
        client_id: 'aaa',
        name: 'Another app',
        description: 'Draws <charts>.',
        logo_url: 'https://aaa.example/logo.png',
      })
      await other.addClient({ client_id: 'backend', launch_url: null })
      const clinician = await other.logIn()
      const choices = (body: string) =>
        [
          ...body.matchAll(
            /class="choice choice--link"(?: aria-current="(true)"| name="client" value="([^"]*)")/g,
          ),
        ].map(([, current, id]) => (current === undefined ? id : 'chosen'))
      const page = await clinician.get('/portal?patient=juniper&search=Jun')
      assert.deepEqual(choices(page.body), ['chosen', 'aaa'])
      assert.ok(page.body.indexOf('value="aaa"') < page.body.indexOf('Launch Demo app'))
      assert.match(page.body, /Launch Demo app</)
      assert.equal(readForm(page.body).get('clientId'), null)
      assert.doesNotMatch(page.body, /Client id/)
      assert.match(page.body, /Another app[\s\S]*aaa\.example[\s\S]*Draws &lt;charts&gt;\./)
      assert.doesNotMatch(String(page.headers['content-security-policy']), /aaa\.example/)

      const chosen = await clinician.get('/portal?patient=juniper&client=aaa')
      assert.deepEqual(choices(chosen.body), ['chosen', 'sallyport-app'])
      assert.match(chosen.body, /Launch Another app</)
      assert.equal(readForm(chosen.body).get('clientId'), 'aaa')
      const policy = String(chosen.headers['content-security-policy'])
      assert.match(policy, /form-action 'self' https:\/\/aaa\.example;/)
      assert.match(policy, /img-src 'self' data: https:\/\/aaa\.example\/logo\.png;/)
    })

    it('has a policy that does not grow with the registered apps', async () => {
      const other = await TestAuthServer.open(await open(), { resources: RESOURCES })
      const clinician = await other.logIn()
      const policyOf = async () =>
        String((await clinician.get('/portal?patient=juniper')).headers['content-security-policy'])
      const alone = await policyOf()
      for (let at = 0; at < 30; at++)
        await other.addClient({ client_id: `app-${at}`, logo_url: `https://app-${at}.example/logo.png` })
      assert.equal(await policyOf(), alone)
    })
  })

  it('marks unverified apps, lists them after the others, and does not show their logos (CLIENT-3)', async () => {
    const other = await TestAuthServer.open(await open(), { resources: RESOURCES })
    const logo_url = 'https://zzz.example/logo.png'
    await other.addClient({ client_id: 'aaa', name: 'Demo app', approved: false, logo_url })
    await other.addClient({ client_id: 'zzz', logo_url })
    const clinician = await other.logIn()
    const { body } = await clinician.get('/portal?patient=juniper')
    const apps = [...body.matchAll(/class="choice choice--link"[\s\S]*?<\/(?:button|div)>/g)].map(
      ([app]) => app,
    )
    assert.deepEqual(
      apps.map(app => app.includes('badge--warn">Unverified<')),
      [false, false, true],
    )
    assert.doesNotMatch(body, /Unverified app/)
    const chosen = await clinician.get('/portal?patient=juniper&client=aaa')
    assert.match(chosen.body, /Unverified app\.<\/b> It registered itself/)
    // The launch button stays in sight where the list of apps does not.
    assert.match(chosen.body, /launch__after">.*badge--warn">Unverified<.*<\/p>/)
    assert.doesNotMatch(body, /launch__after">.*Unverified/)
    assert.doesNotMatch(chosen.body, /logo\.png/)
    assert.match(String(chosen.headers['content-security-policy']), /img-src 'self' data:;/)
  })

  it('distinguishes apps of the same name by their ids', async () => {
    const other = await TestAuthServer.open(await open(), { resources: RESOURCES })
    for (const client_id of ['aaa', 'bbb']) await other.addClient({ client_id, name: 'Charts' })
    const page = await (await other.logIn()).get('/portal?patient=juniper')
    assert.deepEqual(
      [...page.body.matchAll(/Client id <code>([^<]*)</g)].map(match => match[1]),
      ['aaa', 'bbb'],
    )
  })

  describe('while the FHIR server is unreachable', () => {
    for (const how of ['no-response', 'not-json', 500, 503, 401] as const) {
      it(`explains the outage to clinicians (${how}), and recovers (PORTAL-7)`, async () => {
        auth.fhir.fail(how)
        const page = await browser.get('/portal?search=x')
        assert.equal(page.statusCode, 502)
        for (const text of [
          'Patient records cannot be reached',
          'downtime procedure',
          'href="/portal?search=x"',
        ])
          assert.ok(page.body.includes(text), text)
        auth.fhir.fail(undefined)
        assert.equal((await browser.get('/portal')).statusCode, 200)
      })
    }

    it('shows since when', async () => {
      auth.fhir.fail('no-response')
      const first = await browser.get('/portal')
      const since = /has not responded since (<time [^>]*>\d\d:\d\d)/.exec(first.body)?.[1]
      auth.time.now += 7 * 60_000
      const later = await browser.get('/portal')
      assert.ok(since && later.body.includes(`has not responded since ${since}`))
      auth.fhir.fail(undefined)
    })
  })
})
