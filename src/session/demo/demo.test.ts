import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import { AppBrowser } from '../../../test/support/app-browser.ts'
import { bundle } from '../../../test/support/scripted-ehr.ts'
import { APP_SCOPE, launchBrowser, useSessionApp } from '../../../test/support/session-app.ts'

const SUBJECT = { reference: 'Patient/juniper' }
const PATIENT = {
  resourceType: 'Patient',
  id: 'juniper',
  name: [{ family: 'Juniper', given: ['Alba'], prefix: ['Ms'] }],
  birthDate: '1958-03-14',
  gender: 'female',
  identifier: [{ type: { coding: [{ code: 'MR' }] }, value: 'SYN-004127' }],
}

function condition(display: string, more: object = {}) {
  return {
    resourceType: 'Condition',
    subject: SUBJECT,
    code: { coding: [{ system: 'http://snomed.info/sct', code: '49436004', display }] },
    clinicalStatus: { coding: [{ code: 'active' }] },
    recordedDate: '2026-10-02',
    ...more,
  }
}

function medication(text: string | undefined, dosage?: string) {
  return {
    resourceType: 'MedicationRequest',
    subject: SUBJECT,
    status: 'active',
    authoredOn: '2026-06-17',
    ...(text === undefined ? {} : { medicationCodeableConcept: { text } }),
    ...(dosage === undefined ? {} : { dosageInstruction: [{ text: dosage }] }),
  }
}

function pressure(date: string, systolic: number, diastolic: number) {
  const part = (code: string, value: number) => ({
    code: { coding: [{ system: 'http://loinc.org', code }] },
    valueQuantity: { value, unit: 'mmHg', code: 'mm[Hg]' },
  })
  return {
    resourceType: 'Observation',
    subject: SUBJECT,
    status: 'final',
    effectiveDateTime: date,
    component: [part('8480-6', systolic), part('8462-4', diastolic)],
  }
}

describe('the demo app page', () => {
  const setup = useSessionApp()
  let browser: AppBrowser
  beforeEach(async () => {
    const now = setup.clock()
    setup.ehr.records.push(
      PATIENT,
      condition('Atrial fibrillation'),
      condition('Hypothyroidism', {
        recordedDate: undefined,
        verificationStatus: { coding: [{ code: 'provisional' }] },
      }),
      medication('levothyroxine 75mcg tablet'),
      medication('Apixaban 5.0 mg tablet', '1 tablet, twice a day'),
      pressure(new Date(now).toISOString(), 142, 84),
      pressure(new Date(now - 30 * 86_400_000).toISOString(), 160, 92),
    )
    browser = await launchBrowser(setup.app, setup.ehr.fhirBaseUrl)
  })

  const page = async () => (await browser.get(browser.page)).body

  it('shows blood pressure with the digits that are recorded', async () => {
    const text = JSON.stringify(bundle([pressure(new Date(setup.clock()).toISOString(), 142, 84)]))
    setup.ehr.script.fhir = (url, reply) =>
      url.pathname.endsWith('/Observation')
        ? reply
            .type('application/fhir+json')
            .send(text.replace(':142,', ':142.50,').replace(':84,', ':84.0,'))
        : url.pathname.includes('/Patient/')
          ? PATIENT
          : bundle([])
    assert.match(await page(), /<b>142\.50\/84\.0<\/b>/)
  })

  it('shows blood pressure under the older LOINC code if there is none under the current one (DEMO-1)', async () => {
    const older = bundle([pressure(new Date(setup.clock()).toISOString(), 131, 79)])
    setup.ehr.script.fhir = url =>
      url.searchParams.get('code') === 'http://loinc.org|55284-4'
        ? older
        : url.pathname.includes('/Patient/')
          ? PATIENT
          : bundle([])
    assert.match(await page(), /<b>131\/79<\/b>/)
  })

  it('shows the patient, conditions, medicines, blood pressure and the session (DEMO-1)', async () => {
    const body = await page()
    assert.match(body, /<h1 class="patient__name"><span class="family">Juniper<\/span>, Alba/)
    assert.match(body, /14-Mar-1958/)
    assert.match(body, /SYN-004127/)
    assert.match(body, /2 active, newest first/)
    assert.match(body, /Atrial fibrillation<span class="sub">SNOMED CT 49436004/)
    assert.match(body, /2 active prescriptions/)
    assert.match(body, /<b>142\/84<\/b>/)
    assert.match(body, /<code>Practitioner\/prac-1<\/code>/)
    assert.match(body, /<title>Juniper, Alba \(Ms\): summary – Demo app<\/title>/)
  })

  it('names a medicine that is a reference, or says that it is not shared', async () => {
    const { medicationCodeableConcept: _, ...bare } = medication('x')
    setup.ehr.records.push(
      {
        ...bare,
        medicationReference: { reference: '#m' },
        contained: [{ id: 'm', code: { text: 'warfarin 3 mg' } }],
      },
      { ...bare, medicationReference: { reference: 'Medication/other' } },
    )
    const body = await page()
    assert.match(body, /<th role="rowheader" scope="row">Warfarin 3 mg<\/th>/)
    assert.match(body, /<th role="rowheader" scope="row">Not shared with this app<\/th>/)
  })

  it('says "Sample data" only for a generated patient', async () => {
    assert.doesNotMatch(await page(), /Sample data/)
    const tag = [{ system: 'http://terminology.hl7.org/CodeSystem/v3-ActReason', code: 'HTEST' }]
    setup.ehr.records[0] = { ...PATIENT, meta: { tag } }
    assert.match(await page(), /Sample data/)
  })

  it('marks missing values instead of leaving them blank', async () => {
    const body = await page()
    assert.match(body, /Hypothyroidism[\s\S]*?Provisional[\s\S]*?Not recorded/)
    assert.match(body, /Levothyroxine 75 microgram tablet[\s\S]*?Not recorded/)
    assert.match(body, /Allergies<\/dt><dd><span class="unknown">Not shared with this app/)
  })

  it('never shows a dosage without text as missing, nor a part of it (DEMO-3)', async () => {
    const dose = {
      sequence: 1,
      asNeededBoolean: true,
      doseAndRate: [{ doseQuantity: { value: 7, unit: 'mg' } }],
    }
    const add = (name: string, dosageInstruction: readonly object[]) =>
      setup.ehr.records.push({ ...medication(name), dosageInstruction })
    add('Coded', [dose])
    add('Both', [{ text: '1 tablet daily' }, dose])
    add('Empty', [{ sequence: 1 }])
    const body = await page()
    const find = (name: string) =>
      new RegExp(`>${name}<[\\s\\S]*?data-label="How to take it">(.*?)</td>`).exec(body)?.[1]
    assert.equal(find('Coded'), 'Recorded without text: check the full record.')
    assert.equal(find('Both'), '1 tablet daily<br>Recorded without text: check the full record.')
    assert.match(find('Empty') ?? '', /Not recorded/)
  })

  describe('with the scope of allergies', () => {
    const allergy = (text: string | undefined, more: object = {}) => ({
      resourceType: 'AllergyIntolerance',
      patient: SUBJECT,
      ...(text === undefined ? {} : { code: { text } }),
      ...more,
    })
    const showAllergies = async (...allergies: readonly object[]) => {
      setup.ehr.records.push(...allergies.map(one => ({ ...one })))
      setup.ehr.script.token = { scope: `${APP_SCOPE} patient/AllergyIntolerance.rs` }
      browser = await launchBrowser(setup.app, setup.ehr.fhirBaseUrl)
      return /Allergies<\/dt><dd>(.*?)<\/dd>/.exec(await page())?.[1]?.replace(/<[^>]*>/g, '')
    }

    it('shows all current allergies in the banner, and marks a high risk (DEMO-1)', async () => {
      const shown = await showAllergies(
        allergy('Penicillin', { criticality: 'high' }),
        allergy('Latex', { clinicalStatus: { coding: [{ code: 'resolved' }] } }),
        allergy('Aspirin', { verificationStatus: { coding: [{ code: 'entered-in-error' }] } }),
        allergy('nuts', { clinicalStatus: { coding: [{ code: 'active' }] } }),
        allergy(undefined),
        { ...allergy('Eggs'), patient: { reference: 'Patient/ashlar' } },
      )
      assert.equal(shown, 'Penicillin (high risk), Nuts, Name not recorded')
    })

    it('shows that no allergy is recorded, or that the allergies could not be loaded', async () => {
      assert.equal(await showAllergies(), 'None recorded')
      setup.ehr.script.fhir = (url, reply) =>
        url.pathname.endsWith('/AllergyIntolerance')
          ? reply.code(500).send({})
          : url.pathname.endsWith('/Patient/juniper')
            ? reply.send(PATIENT)
            : reply.send(bundle([]))
      assert.equal(await showAllergies(), 'Could not be loaded')
    })
  })

  it('writes strengths so that they cannot be misread', async () => {
    assert.match(await page(), /Apixaban 5 mg tablet/)
  })

  it('tells an open page by HEAD whether its record may still be shown, without a read of it (DEMO-4)', async () => {
    const ends = async () => (await browser.get('/api/session')).json().expiresAt
    const before = await ends()
    setup.clock.advance(60)
    setup.ehr.seen.length = 0
    assert.equal((await browser.head(browser.page)).statusCode, 200)
    const paths = setup.ehr.seen.map(({ path }) => path)
    assert.deepEqual(
      paths.filter(path => !path.includes('.well-known')),
      ['/userinfo'],
    )
    assert.equal(await ends(), before)
    // The token may only have expired.
    setup.ehr.expireAccessTokens()
    assert.equal((await browser.head(browser.page)).statusCode, 200)
    // As after a sign-out: the auth server rejects both tokens, and the FHIR server does not know of it yet.
    setup.ehr.expireAccessTokens()
    setup.ehr.script.tokenEndpoint = (_form, reply) => reply.code(400).send({ error: 'invalid_grant' })
    assert.equal((await browser.head(browser.page)).statusCode, 401)
    assert.equal((await browser.get(browser.page)).statusCode, 401)
  })

  it('ends a session without a refresh token when the auth server no longer accepts its token (DEMO-4)', async () => {
    setup.ehr.script.token = { refresh_token: undefined }
    browser = await launchBrowser(setup.app, setup.ehr.fhirBaseUrl)
    assert.equal((await browser.head(browser.page)).statusCode, 200)
    setup.ehr.expireAccessTokens()
    assert.equal((await browser.head(browser.page)).statusCode, 401)
    assert.match((await browser.get(browser.page)).body, /Your session has ended/)
  })

  it('keeps the record open while the auth server is away, or has no UserInfo endpoint', async () => {
    setup.ehr.script.openid = { userinfo_endpoint: undefined }
    setup.ehr.expireAccessTokens()
    assert.equal((await browser.head(browser.page)).statusCode, 200)
    setup.ehr.script.openid = { issuer: 'https://other.example' }
    setup.clock.advance(301)
    assert.equal((await browser.head(browser.page)).statusCode, 200)
  })

  describe('of a patient or relative', () => {
    const openAs = async (fhirUser: string) => {
      setup.ehr.script.claims = { fhirUser: `${setup.ehr.fhirBaseUrl}/${fhirUser}`, name: 'Alba Juniper' }
      setup.ehr.script.token = { encounter: undefined, similar_name: true }
      browser = await launchBrowser(setup.app, setup.ehr.fhirBaseUrl)
      return page()
    }
    const CLINICAL = /Staff identity|patient list|Patients<|Another patient|Encounter<|check the full record/

    it('speaks of your record, or of the person for whom you act (DEMO-8)', async () => {
      const own = await openAs('Patient/juniper')
      assert.match(own, /<dt>Signed in<\/dt><dd>(<bdi>)?Alba Juniper/)
      assert.match(own, /<dt>Record<\/dt><dd>Your record/)
      // The terms of FHIR and OAuth are in one place.
      const [before = '', details = ''] = own.split('<summary>Details for developers</summary>')
      assert.match(details, /FHIR base[\s\S]*Granted scopes/)
      assert.doesNotMatch(before, /SNOMED|FHIR base|Granted scopes|MRN/)
      assert.doesNotMatch(details.split('</details>')[1] ?? '', /FHIR base/)
      assert.doesNotMatch(own, CLINICAL)
      assert.match(own, /href="[^"]*\/manage">Apps with access</)
      const childs = await openAs('RelatedPerson/mother')
      assert.match(childs, /<dt>Record<\/dt><dd>(<bdi>)?You act for Alba Juniper/)
      assert.doesNotMatch(childs, CLINICAL)
      const staff = await openAs('Practitioner/prac-1')
      assert.match(staff, /Staff identity/)
      assert.match(staff, /Another patient has a similar name/)
    })

    it('says so on the other pages too, also after the session (DEMO-8)', async () => {
      await openAs('Patient/juniper')
      const list = (await browser.get('/')).body
      assert.match(list, /Choose another record/)
      const logout = `${browser.page}/logout`
      assert.match((await browser.get(logout)).body, /open the app again<\/b> and choose the record/)
      await browser.post(logout)
      const ended = (await browser.get(logout)).body
      assert.match(ended, /open the app again<\/b> and choose the record/)
      for (const body of [list, ended]) assert.doesNotMatch(body, CLINICAL)
      await openAs('Practitioner/prac-1')
      const staffLogout = `${browser.page}/logout`
      await browser.post(staffLogout)
      assert.match((await browser.get(staffLogout)).body, /launch the app again<\/b> from the patient list/)
    })
  })

  it('has a countdown that works without a script', async () => {
    const body = await page()
    assert.match(body, /Session ends <time/)
    assert.match(body, /<animate attributeName="width" from="100" to="0" dur="1800s" fill="freeze"\/>/)
  })

  it('has a strict content security policy, no style attribute and no token', async () => {
    const response = await browser.get(browser.page)
    const policy = String(response.headers['content-security-policy'])
    assert.match(policy, /default-src 'none'/)
    assert.doesNotMatch(policy, /unsafe|https?:|\*/)
    assert.doesNotMatch(response.body, / style=| on[a-z]+=/)
    for (const token of setup.ehr.issued) assert.ok(!response.body.includes(token))
    assert.equal(response.headers['cache-control'], 'no-store')
  })

  it('escapes recorded text', async () => {
    setup.ehr.records.length = 0
    const evil = '<img src=x onerror=alert(1)>'
    setup.ehr.records.push(
      { ...PATIENT, name: [{ family: evil, given: [evil] }] },
      condition(evil),
      medication(evil, evil),
    )
    assert.ok(!(await page()).includes('<img'))
  })

  describe('of a launch with an encounter', () => {
    const ENCOUNTER = {
      resourceType: 'Encounter',
      id: 'visit-1',
      subject: SUBJECT,
      status: 'in-progress',
      class: { code: 'AMB' },
      type: [{ text: 'Cardiology clinic' }],
      period: { start: '2026-11-13' },
    }
    const shown = async (scope: string, ...encounters: object[]) => {
      setup.ehr.records.push(...(encounters as Record<string, unknown>[]))
      setup.ehr.script.token = { scope: `launch patient/Patient.rs ${scope}` }
      browser = await launchBrowser(setup.app, setup.ehr.fhirBaseUrl)
      const [, rest = ''] = (await page()).split('<dt>Encounter</dt><dd>')
      const [said = ''] = rest.split('</dd>')
      assert.match(rest, /<summary>Encounter id<\/summary><p class="url url--block">visit-1<\/p>/)
      assert.doesNotMatch(said, /visit-1/)
      return said.replace(/<[^>]*>/g, '|').replace(/[| ]*\|[| ]*/g, '|')
    }

    it('shows its type, status, class and time', async () => {
      assert.equal(
        await shown('patient/Encounter.rs', ENCOUNTER),
        'Cardiology clinic&ensp;|In progress|Ambulatory,|13-Nov-2026|',
      )
    })

    it('says that it is not shared if its scope is not granted, and does not request it', async () => {
      assert.equal(await shown('', ENCOUNTER), 'Chosen at the launch|Not shared with this app|')
      assert(!setup.ehr.seen.some(({ path }) => path.includes('/Encounter')))
    })

    it('shows the rest if it cannot be loaded or belongs to another patient', async () => {
      assert.equal(await shown('patient/*.rs'), 'Chosen at the launch|Not found|')
      const other = { ...ENCOUNTER, subject: { reference: 'Patient/ashlar' } }
      assert.equal(await shown('patient/*.rs', other), 'Chosen at the launch|Could not be loaded|')
      assert.match(await page(), /Juniper/)
    })

    it('says that none was chosen', async () => {
      setup.ehr.script.token = { encounter: undefined }
      browser = await launchBrowser(setup.app, setup.ehr.fhirBaseUrl)
      const body = await page()
      assert.match(body, /<dt>Encounter<\/dt><dd>None chosen<span/)
      assert.doesNotMatch(body, /Encounter id/)
    })
  })

  it('says when nothing is recorded', async () => {
    setup.ehr.records.length = 1
    const body = await page()
    for (const text of [
      'No active condition recorded',
      'No active prescription recorded',
      'No blood pressure recorded',
    ])
      assert.ok(body.includes(text), text)
  })

  it('says which data is not shared, never that there is none (DEMO-3)', async () => {
    setup.ehr.script.token = { scope: 'launch patient/Patient.rs', id_token: undefined }
    browser = await launchBrowser(setup.app, setup.ehr.fhirBaseUrl)
    const body = await page()
    assert.equal(body.match(/<b>Not shared with this app\.<\/b>/g)?.length, 3)
    assert.doesNotMatch(body, /No active/)
  })

  it('shows the id if the name is not shared', async () => {
    setup.ehr.script.token = { scope: 'launch patient/Condition.rs', id_token: undefined }
    browser = await launchBrowser(setup.app, setup.ehr.fhirBaseUrl)
    const body = await page()
    assert.match(body, /<h1 class="patient__name">Name not shared with this app<\/h1>/)
    assert.match(body, /<dt>FHIR id<\/dt><dd>juniper<\/dd>/)
  })

  it('omits the banner if the EHR shows it, but names the patient on paper (DEMO-2)', async () => {
    setup.ehr.script.token = { need_patient_banner: false }
    browser = await launchBrowser(setup.app, setup.ehr.fhirBaseUrl)
    const body = await page()
    assert.doesNotMatch(body, /class="patient /)
    assert.match(body, /<p class="print"><b>Juniper, Alba \(Ms\)<\/b>, born 14-Mar-1958, MRN SYN-004127<\/p>/)
  })

  it('shows the other parts when one cannot be loaded (DEMO-3)', async () => {
    setup.ehr.script.fhir = (url, reply) => {
      if (url.pathname.endsWith('/Condition')) return reply.code(500).send()
      return url.pathname.includes('/Patient/') ? PATIENT : bundle([])
    }
    const response = await browser.get(browser.page)
    assert.equal(response.statusCode, 200)
    assert.match(response.body, /<b>Could not be loaded\.<\/b>/)
    assert.doesNotMatch(response.body, /No active condition/)
    assert.match(response.body, /No active prescription/)
  })

  it('says when fewer are shown than there are', async () => {
    setup.ehr.records.push(...Array.from({ length: 60 }, (_, at) => condition(`Condition ${at}`)))
    assert.match(await page(), /50 of 62 active, newest first/)
  })

  it('says since when the FHIR server has not responded', async () => {
    setup.ehr.script.fhir = (_url, reply) => reply.code(503).send()
    await browser.get('/api/patient')
    const since = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' }).format(
      setup.clock(),
    )
    setup.clock.advance(65)
    const response = await browser.get(browser.page)
    assert.equal(response.statusCode, 502)
    assert.match(response.body, /Patient records cannot be reached/)
    assert.match(
      response.body,
      new RegExp(`has not responded since <time [^>]*>(\\d\\d-\\w+-\\d+ )?${since}`),
    )
    assert.match(response.body, new RegExp(`href="${browser.page}">Try again`))
    setup.ehr.script.fhir = undefined
    assert.equal((await browser.get(browser.page)).statusCode, 200)
  })

  it('shows an error page if the record is refused or not found', async () => {
    for (const [sent, status, text] of [
      [403, 403, 'refuses this session access'],
      [404, 404, 'no longer has this record'],
      [410, 404, 'no longer has this record'],
    ] as const) {
      setup.ehr.script.fhir = (_url, reply) => reply.code(sent).send()
      const response = await browser.get(browser.page)
      assert.equal(response.statusCode, status)
      assert.match(response.body, /This record cannot be shown/)
      assert.ok(response.body.includes(text), String(sent))
    }
  })

  it('invites to launch if there is no session', async () => {
    const response = await new AppBrowser(setup.app).get('/')
    assert.equal(response.statusCode, 200)
    assert.match(response.body, /No record is open/)
    assert.match(response.body, /href="http:\/\/localhost:9000\/portal"/)
  })

  it('warns of a similar name if the auth server says so (DEMO-5)', async () => {
    assert.doesNotMatch(await page(), /similar name/i)
    for (const similar_name of [true, 'true']) {
      setup.ehr.script.token = { similar_name }
      browser = await launchBrowser(setup.app, setup.ehr.fhirBaseUrl)
      assert.equal((await page()).includes('Another patient has a similar name.'), similar_name === true)
    }
  })

  it('reads the patient that it shows, and of no other open session (DEMO-7)', async () => {
    const first = browser.page
    for (const id of ['other-1', 'other-2']) {
      setup.ehr.records.push({ ...PATIENT, id, name: [{ family: 'Juniper', given: ['Alban'] }] })
      setup.ehr.script.token = { patient: id }
      await browser.launch(setup.ehr.fhirBaseUrl)
    }
    const readPatients = () =>
      setup.ehr.seen.flatMap(({ path }) => /\/Patient\/([\w-]+)$/.exec(path)?.[1] ?? [])
    setup.ehr.seen.length = 0
    const shown = await browser.get(first)
    assert.deepEqual(readPatients(), ['juniper'])
    assert.match(shown.body, /Open sessions \(3\)/)
    assert.doesNotMatch(shown.body, /also open in this browser/)
    // A patient whose page was opened is known from then on.
    await browser.get(browser.page)
    setup.ehr.seen.length = 0
    assert.match((await browser.get(first)).body, /also open in this browser:<\/b> .*Juniper/)
    assert.deepEqual(readPatients(), ['juniper'])
    // The list shows all of them.
    setup.ehr.seen.length = 0
    await browser.get('/')
    assert.deepEqual(readPatients().toSorted(), ['juniper', 'other-1', 'other-2'])
  })

  it('links to the portal, and names the FHIR base and its state in the footer (DEMO-6)', async () => {
    const responding = await page()
    assert.match(responding, /<nav[^>]*>.*href="http:\/\/localhost:9000\/portal">Patients</)
    const footer = (body: string) => body.slice(body.indexOf('<footer')).replace(/<[^>]+>|&ensp;/g, ' ')
    assert.match(footer(responding), new RegExp(`FHIR base +${setup.ehr.fhirBaseUrl} .*Available`))
    setup.ehr.script.fhir = (url, reply) =>
      url.pathname.endsWith('/Condition')
        ? reply.code(503).send()
        : url.pathname.includes('/Patient/')
          ? PATIENT
          : bundle([])
    assert.match(footer(await page()), /Not available/)
  })

  describe('says when the session has ended, and why (DEMO-4)', () => {
    const ends: Readonly<Record<string, readonly [why: RegExp, end: () => unknown]>> = {
      'by disuse': [/<p>You did not use it for 30 minutes\. The record is/, () => setup.clock.advance(1800)],
      'at its maximum': [
        /<p>A session lasts 8 hours at most\. The record is/,
        () => {
          const idle_expires_at = setup.clock() + 9 * 3600_000
          setup.clock.advance(8 * 3600)
          return setup.store.db.updateTable('app_session').set({ idle_expires_at }).execute()
        },
      ],
      'by its user': [
        /<p>It was ended in this browser\. The record is/,
        () => browser.post(`${browser.page}/logout`),
      ],
      'by the auth server': [
        /<p>The app no longer has access: the sign-in has ended, or the access was removed\. The record is/,
        () => {
          setup.clock.advance(300)
          setup.ehr.script.tokenEndpoint = (_form, reply) => reply.code(400).send({ error: 'invalid_grant' })
        },
      ],
    }
    for (const [name, [why, end]] of Object.entries(ends))
      it(name, async () => {
        await end()
        const response = await browser.get(browser.page)
        assert.equal(response.statusCode, 401)
        assert.match(response.body, /Your session has ended/)
        assert.match(response.body, why)
        assert.ok(!response.body.includes('Juniper'))
      })
  })

  it('neither lists nor counts a session whose access has ended (SESSION-8)', async () => {
    setup.ehr.records.push({ ...PATIENT, id: 'other-1', name: [{ family: 'Alder', given: ['Kim'] }] })
    setup.ehr.script.token = { patient: 'other-1' }
    await browser.launch(setup.ehr.fhirBaseUrl)
    const second = browser.page
    assert.match((await browser.get(second)).body, /Open sessions \(2\)/)
    assert.match((await browser.get('/')).body, /As of <time [\s\S]*Juniper/)
    // The FHIR server learns of it later.
    setup.ehr.expireAccessTokens()
    setup.ehr.script.tokenEndpoint = (_form, reply) => reply.code(400).send({ error: 'invalid_grant' })
    const list = await browser.get('/')
    assert.equal(list.statusCode, 401)
    assert.doesNotMatch(list.body, /Juniper|Alder/)
  })

  it('names the user of each session if there are several (SESSION-8)', async () => {
    const list = async () => (await browser.get('/')).body
    await browser.launch(setup.ehr.fhirBaseUrl)
    assert.doesNotMatch(await list(), /Opened by/)
    setup.ehr.script.claims = { sub: 'second', name: 'Dr. Second' }
    await browser.launch(setup.ehr.fhirBaseUrl)
    assert.deepEqual([...(await list()).matchAll(/Opened by ([^<]+)/g)].map(([, name]) => name).toSorted(), [
      'Dr. Robin Ahmadi',
      'Dr. Robin Ahmadi',
      'Dr. Second',
    ])
  })

  it('warns on load only if the end cannot be extended', async () => {
    assert.match(await page(), /id="session-last" role="status" hidden>/)
    setup.ehr.script.token = { expires_in: 100, refresh_token_expires_in: 200 }
    browser = await launchBrowser(setup.app, setup.ehr.fhirBaseUrl)
    assert.match(await page(), /id="session-last" role="status">/)
  })

  it('has a print line with user, time, and a note that the record is not complete', async () => {
    assert.match(
      await page(),
      /Printed <time[^>]*>[^<]+<\/time> by Dr\. Robin Ahmadi .* Not the full record\./,
    )
  })
})
