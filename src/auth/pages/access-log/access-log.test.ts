import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { eachDatabaseIfThorough } from '../../../../test/support/databases.ts'
import { type AuditRecord, createAuditor } from '../../../audit/index.ts'
import type { Resource } from '../../../fhir/index.ts'
import { PORTAL_CLIENT } from '../../../smart/index.ts'
import { LIMITS } from '../../base/limits.ts'
import { PURPOSES, type PurposeText } from '../../base/purposes.ts'
import { testSettings } from '../../testing/settings.ts'
import { TestAuthServer } from '../../testing/test-auth-server.ts'
import type { TestBrowser } from '../../testing/test-browser.ts'
import { patient } from '../../testing/test-fhir-server.ts'
import { writeVisits } from './download.ts'

const RESOURCES: readonly Resource[] = [
  ...['juniper', 'ashlar', 'dale'].map(id => patient(id, id, 'Alba')),
  { resourceType: 'RelatedPerson', id: 'r-dale', patient: { reference: 'Patient/dale' } },
  {
    resourceType: 'Practitioner',
    id: 'kim',
    name: [{ prefix: ['Dr.'], given: ['Sun'], family: 'Kim' }],
  },
  {
    resourceType: 'PractitionerRole',
    id: 'former',
    active: false,
    practitioner: { reference: 'Practitioner/kim' },
    code: [{ text: 'Student' }],
  },
  {
    resourceType: 'PractitionerRole',
    id: 'current',
    practitioner: { reference: 'Practitioner/kim' },
    code: [{ coding: [{ display: 'Cardiologist' }] }],
    location: [{ display: 'Heart clinic' }],
    organization: { reference: 'Organization/north' },
  },
  { resourceType: 'Organization', id: 'north', name: 'North Hospital' },
]

const DAY_MS = 86_400_000
const NOON = Date.UTC(2026, 10, 13, 12)

const READ = {
  at: NOON,
  server: 'fhir',
  kind: 'fhir',
  interaction: 'search-type',
  allowed: true,
  status: 200,
  type: 'Condition',
  patient: 'juniper',
  client: 'tracker',
  by: 'user/*.rs',
} as const satisfies AuditRecord

/** What a request that names no category may have found. */
const ANY = 'measurements (such as vital signs or laboratory results)'

/** The entries of a page, each as its text. */
function listEntries(body: string): readonly string[] {
  return [...body.matchAll(/<li class="visit">(.*?)<\/li>/gs)].map(([, entry = '']) => toText(entry))
}

function toText(markup: string): string {
  return markup
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')
    .replaceAll(' .', '.')
    .trim()
}

eachDatabaseIfThorough((_name, open) => {
  describe('/account/access-log', () => {
    let auth: TestAuthServer
    let browser: TestBrowser
    let robin: string
    before(async () => {
      auth = await TestAuthServer.open(await open(), {
        resources: RESOURCES,
        settings: {
          brand: { ...testSettings.brand, patientContact: 'Privacy office, ask@north.example' },
        },
      })
      await auth.addUser('alba', { fhir_user_id: 'Patient/juniper', display_name: 'Alba Juniper' })
      await auth.addUser('robin', { fhir_user_id: 'kim', display_name: 'Dr. Robin Kim' })
      await auth.addClient({ client_id: 'tracker', name: 'Heart Tracker', first_party: false })
      browser = await auth.logIn('alba')
      robin = await findId('robin')
    })

    async function findId(username: string): Promise<string> {
      const query = auth.store.db.selectFrom('clinician').select('id').where('username', '=', username)
      return (await query.executeTakeFirstOrThrow()).id
    }

    /** Replaces all records, and returns the page. */
    async function show(records: readonly Partial<AuditRecord>[], query = ''): Promise<string> {
      await record(records)
      return (await browser.get(`/account/access-log${query}`)).body
    }

    async function record(records: readonly Partial<AuditRecord>[]): Promise<void> {
      const db = await auth.store.trail.read()
      await db.deleteFrom('audit_event').execute()
      const audit = createAuditor({ store: auth.store })
      const byRobin = { ...READ, subject: robin, fhirUser: 'Practitioner/kim' }
      await audit.record(...records.map(different => ({ ...byRobin, ...different })))
    }

    it('says who, with role and department, and what in words (PATIENTS-6)', async () => {
      const body = await show([
        { type: 'MedicationRequest' },
        { type: 'Observation', request: 'Observation?category=http://x|laboratory&patient=juniper' },
        { interaction: 'create', type: 'Observation', request: 'Observation' },
        { type: 'Practitioner' },
      ])
      assert.match(body, /<h1>Who looked at my record<\/h1>/)
      assert.match(body, /Today, <time datetime="2026-11-13">/)
      assert.deepEqual(listEntries(body), [
        '12:00 Dr. Robin Kim Cardiologist, Heart clinic, North Hospital Looked at your prescriptions and laboratory results. Added to your measurements (such as vital signs or laboratory results). Changed the record With Heart Tracker',
      ])
      assert.match(body, /Ask: Privacy office, <a href="mailto:ask@north.example">/)
    })

    it('has an entry for each access that an app was allowed (PATIENTS-6)', async () => {
      const own = { subject: await findId('alba'), fhirUser: 'Patient/juniper', by: 'patient/*.rs' }
      const body = await show([
        { ...own, launch: 'first', type: 'Goal' },
        { ...own, launch: 'first', at: NOON + 60_000, type: 'Goal' },
        { ...own, launch: 'second', at: NOON + 10 * 60_000, type: 'Device' },
      ])
      assert.deepEqual(
        listEntries(body).map(entry => entry.replace(/ .* (?=Looked)/, ' ')),
        ['12:10 Looked at your devices.', '12:00–12:01 Looked at your goals.'],
      )
    })

    it('has the days and times of the zone that the browser told, and says which it is (PATIENTS-6)', async () => {
      const records = [{ at: NOON - DAY_MS, type: 'Goal' }, { at: NOON + 8 * 3_600_000 }]
      const read = (body: string) => [
        ...[...body.matchAll(/id="day-\d+">(.*?)<\/h2>/g)].map(([, day = '']) => toText(day)),
        ...listEntries(body).map(entry => entry.slice(0, 5)),
      ]
      const utc = await show(records)
      assert.deepEqual(read(utc), ['Today, 13-Nov-2026', 'Yesterday, 12-Nov-2026', '20:00', '12:00'])
      assert.match(utc, /Days and times are in the zone UTC\./)
      browser.cookies.set('sallyport-zone', 'Asia/Tokyo')
      try {
        const tokyo = await show(records)
        assert.deepEqual(read(tokyo), ['Saturday, 14-Nov-2026', 'Yesterday, 12-Nov-2026', '05:00', '21:00'])
        assert.match(tokyo, /Days and times are in the zone Asia\/Tokyo\./)
        assert.deepEqual(read(await show(records, '?since=2026-11-14')), ['Saturday, 14-Nov-2026', '05:00'])
        assert.deepEqual(read(await show(records, '?until=2026-11-13')), ['Yesterday, 12-Nov-2026', '21:00'])
        assert.match((await browser.get('/account/access-log.csv')).body, /14-Nov-2026,05:00 GMT\+9/)
        assert.match((await browser.get('/home')).body, /14-Nov-2026<\/time> 05:00 GMT\+9/)
      } finally {
        browser.cookies.delete('sallyport-zone')
      }
    })

    it('has the entries before the filters, which are closed until one is used (PATIENTS-6)', async () => {
      assert.match(await show([{}]), /<details class="more narrow"><summary>Filter the entries/)
      assert.match(await show([{}], '?kind=opened'), /<details class="more narrow" open>/)
      assert.match(await show([{}], '?since=never'), /<details class="more narrow" open>/)
    })

    it('groups consecutive accesses of a person into a visit, in any app, and visits by day (PATIENTS-6)', async () => {
      const minute = 60_000
      const body = await show([
        { at: NOON - DAY_MS },
        { at: NOON, client: PORTAL_CLIENT, type: 'Patient', interaction: 'read' },
        { at: NOON + 20 * minute },
        { at: NOON + 25 * minute, subject: undefined, fhirUser: 'Practitioner/kim' },
        { at: NOON + 40 * minute, type: 'Procedure' },
        { at: NOON + 90 * minute, type: 'Goal' },
      ])
      assert.deepEqual(
        listEntries(body).map(entry => entry.replace(/Cardiologist, Heart clinic, North Hospital /, '')),
        [
          '13:30 Dr. Robin Kim Looked at your goals. With Heart Tracker',
          '12:00–12:40 Dr. Robin Kim With the patient list: looked at your personal details. With Heart Tracker: looked at your conditions and procedures.',
          '12:25 Dr. Sun Kim Looked at your conditions. With Heart Tracker',
          '12:00 Dr. Robin Kim Looked at your conditions. With Heart Tracker',
        ],
      )
      assert.match(body, /Today, [\s\S]*12:40[\s\S]*Yesterday, [\s\S]*12:00/)
    })

    it('names the same role for every request of a person, also by apps that do not know the user (PATIENTS-6)', async () => {
      const role = 'Cardiologist, Heart clinic, North Hospital'
      const without = { fhirUser: undefined, type: 'Goal' } as const
      assert.deepEqual(listEntries(await show([{ at: NOON - 60_000 }, without])), [
        `11:59–12:00 Dr. Robin Kim ${role} Looked at your conditions and goals. With Heart Tracker`,
      ])
      assert.deepEqual(listEntries(await show([without])), [
        `12:00 Dr. Robin Kim ${role} Looked at your goals. With Heart Tracker`,
      ])
    })

    it('knows an app of the patient that does not know the user (PATIENTS-6)', async () => {
      const own = { subject: await findId('alba'), fhirUser: undefined, by: 'patient/*.rs' }
      assert.deepEqual(listEntries(await show([own])), [
        '12:00 Heart Tracker An app that you allowed Looked at your conditions.',
      ])
    })

    it('tells looks of a person from what the server reads for itself or for an administrator (PATIENTS-6)', async () => {
      const role = 'Cardiologist, Heart clinic, North Hospital'
      for (const { use, note, place, act } of Object.values<PurposeText>(PURPOSES)) {
        const done = act?.('your record')
        const look = { client: PORTAL_CLIENT, type: 'RelatedPerson', interaction: 'read', reason: note }
        const expected = {
          look: [`12:00 Dr. Robin Kim ${role} ${done ?? 'Looked at your relatives.'} With ${place}`],
          administration: [`12:00 Dr. Robin Kim In the administration ${done}`],
          service: [],
        }
        assert.deepEqual(listEntries(await show([look])), expected[use], note)
      }
    })

    it('does not mix the visit of a clinician with checks of the same person in the administration (PATIENTS-6)', async () => {
      const check = { client: PORTAL_CLIENT, type: 'RelatedPerson', reason: PURPOSES.account.note }
      const command = { ...check, subject: PORTAL_CLIENT, fhirUser: undefined }
      const body = await show([{ at: NOON - 60_000 }, { at: NOON - 30_000, ...check }, command])
      assert.deepEqual(
        listEntries(body).map(entry => entry.replace(/^\S+ /, '')),
        [
          'An administrator In the administration Checked an account that may open your record.',
          'Dr. Robin Kim In the administration Checked an account that may open your record.',
          'Dr. Robin Kim Cardiologist, Heart clinic, North Hospital Looked at your conditions. With Heart Tracker',
        ],
      )
      assert.equal(listEntries((await browser.get('/account/access-log?kind=checked')).body).length, 2)
    })

    it('tells a record that was opened from one that appeared in a list (PATIENTS-6)', async () => {
      const search = { type: 'Patient', request: 'Patient?name=…' } as const
      const lists: readonly Partial<AuditRecord>[] = [
        search,
        { ...search, client: PORTAL_CLIENT, request: 'Patient?_id=juniper' },
        { ...search, patient: undefined, patients: ['juniper', 'ashlar'] },
        { patient: undefined, patients: ['juniper', '*'] },
      ]
      const body = await show(lists)
      assert.match(body, /Nobody opened the record. It appeared in a list</)
      assert.match(body, /In a list of patients and a list of the conditions of several patients\./)
      assert.doesNotMatch(body, /Looked at/)
      for (const opened of [
        { ...search, request: 'Patient?_id=juniper' },
        { ...search, by: 'patient/*.rs' },
        { ...search, interaction: 'read' },
        { interaction: 'operation', type: 'Patient', request: 'Patient/juniper/$everything' },
      ])
        assert.match(listEntries(await show([opened]))[0] ?? '', /Looked at your (?:personal|whole)/)
      const both = await show([...lists, { type: 'Goal' }])
      assert.match(both, /Looked at your goals[\s\S]*<summary>Appeared in a list</)
    })

    it('shows neither ids, nor other patients, nor refused requests, nor its own reads (PATIENTS-6)', async () => {
      const body = await show([
        { type: 'Condition', id: 'condition-77', launch: 'launch-77', requestId: 'request-77' },
        { type: 'Goal', patient: undefined, patients: ['juniper', 'ashlar'] },
        { type: 'Immunization', patient: 'ashlar' },
        { type: 'Procedure', allowed: false, status: 403 },
        { type: 'CarePlan', status: 404 },
        { type: 'RelatedPerson', client: PORTAL_CLIENT, subject: PORTAL_CLIENT, fhirUser: undefined },
        // Another record, which the patient opened.
        { type: 'Device', patient: 'dale', fhirUser: 'Patient/juniper', subject: await findId('alba') },
        {
          type: 'Coverage',
          client: 'removed-app',
          subject: 'removed-account',
          fhirUser: 'Practitioner/gone',
        },
      ])
      const text = toText(body)
      assert.match(
        text,
        /A member of staff Looked at your insurance. With an app that is no longer registered/,
      )
      for (const hidden of [/vaccin/, /procedures/, /care plans/, /relatives\b.*Looked/, /devices/])
        assert.doesNotMatch(text, hidden)
      for (const id of ['-77', robin, 'ashlar', 'Practitioner/', 'removed-account'])
        assert.ok(!body.includes(id), id)
    })

    it('names an app that the patient, or a relative, allowed, and a program without a person (PATIENTS-6)', async () => {
      await auth.addUser('aunt', { fhir_user_id: 'RelatedPerson/r-1', display_name: 'Ines Juniper' })
      const body = await show([
        { subject: await findId('alba'), fhirUser: 'Patient/juniper' },
        { subject: await findId('aunt'), fhirUser: 'RelatedPerson/r-1' },
        { subject: 'tracker', fhirUser: undefined, by: 'system/*.rs' },
      ])
      assert.deepEqual(listEntries(body).toSorted(), [
        '12:00 Heart Tracker A program that works without a person Looked at your conditions.',
        '12:00 Heart Tracker An app allowed by Ines Juniper, a relative Looked at your conditions.',
        '12:00 Heart Tracker An app that you allowed Looked at your conditions.',
      ])
    })

    it('does not say that somebody allowed an app of the hospital (PATIENTS-6)', async () => {
      await auth.addClient({ client_id: 'desk', name: 'Front Desk', first_party: true })
      await auth.addUser('ivo', { fhir_user_id: 'RelatedPerson/r-2', display_name: 'Ivo Juniper' })
      const body = await show([
        { client: 'desk', subject: await findId('alba'), fhirUser: 'Patient/juniper' },
        { client: 'desk', subject: await findId('ivo'), fhirUser: 'RelatedPerson/r-2' },
      ])
      assert.deepEqual(listEntries(body).toSorted(), [
        '12:00 Front Desk App of the hospital, used by Ivo Juniper, a relative Looked at your conditions.',
        '12:00 Front Desk App of the hospital, used by you Looked at your conditions.',
      ])
    })

    it('names an app and a member of staff that were removed (PATIENTS-6)', async () => {
      await auth.addClient({ client_id: 'gone', name: 'Sleep Diary', first_party: true })
      await auth.addUser('leaver', { fhir_user_id: 'unknown', display_name: 'Dr. Lea Ver' })
      const leaver = { subject: await findId('leaver'), fhirUser: 'Practitioner/unknown' }
      const alba = { subject: await findId('alba'), fhirUser: 'Patient/juniper' }
      await auth.store.db.deleteFrom('client').where('client_id', '=', 'gone').execute()
      await auth.store.db.deleteFrom('clinician').where('username', '=', 'leaver').execute()
      const body = await show([
        { ...leaver, client: 'gone' },
        { ...alba, client: 'gone' },
      ])
      assert.deepEqual(listEntries(body).toSorted(), [
        '12:00 Dr. Lea Ver Looked at your conditions. With Sleep Diary',
        '12:00 Sleep Diary App of the hospital, used by you Looked at your conditions.',
      ])
    })

    it('filters by person, app, kind and period (PATIENTS-6)', async () => {
      const body = await show([
        { type: 'Goal' },
        { type: 'Procedure', interaction: 'delete', at: NOON - DAY_MS },
        { type: 'Device', subject: undefined, fhirUser: undefined, client: 'other' },
        { type: 'Coverage', patient: undefined, patients: ['juniper', 'ashlar'] },
      ])
      const [, person = ''] = /<option value="([0-9a-f]{32})">Dr. Robin Kim \(Cardio/.exec(body) ?? []
      const find = async (query: string) =>
        listEntries((await browser.get(`/account/access-log?${query}`)).body).flatMap(
          entry => /goals|procedures|devices|insurance/.exec(entry) ?? [],
        )
      assert.deepEqual((await find('')).toSorted(), ['devices', 'goals', 'insurance', 'procedures'])
      assert.deepEqual((await find(`person=${person}`)).toSorted(), ['goals', 'insurance', 'procedures'])
      const chosen = (await browser.get(`/account/access-log?person=${person}`)).body
      assert.ok(chosen.includes(`<option value="${person}" selected>Dr. Robin Kim`))
      assert.deepEqual(await find('app=other'), ['devices'])
      assert.deepEqual(await find('app=%27%3B--'), [])
      assert.deepEqual(await find('kind=list'), ['insurance'])
      assert.deepEqual(await find('kind=changed'), ['procedures'])
      assert.deepEqual((await find('kind=opened')).toSorted(), ['devices', 'goals'])
      assert.deepEqual(await find('until=2026-11-12'), ['procedures'])
      assert.deepEqual((await find('since=2026-11-13')).toSorted(), ['devices', 'goals', 'insurance'])
      assert.deepEqual(await find('since=2026-11-12&until=2026-11-12'), ['procedures'])
      assert.match((await browser.get('/account/access-log?until=2020-01-01')).body, /Nothing found\./)
    })

    it('says what each of several apps read in a visit, also in the files (PATIENTS-6)', async () => {
      await auth.addClient({ client_id: 'growth', name: 'Growth Chart' })
      await record([
        { type: 'Goal', client: 'growth' },
        { type: 'Procedure' },
        { type: 'Goal', interaction: 'create' },
        { type: 'Device', client: 'growth' },
      ])
      const [{ what, apps } = { what: '', apps: '' }] = (await browser.get('/account/access-log.json')).json()
      assert.deepEqual(
        [what, apps],
        [
          'With Heart Tracker: looked at your procedures. Added to your goals. With Growth Chart: looked at your goals and devices.',
          'Growth Chart, Heart Tracker',
        ],
      )
      const { body } = await browser.get('/account/access-log')
      assert.match(toText(body), /With Heart Tracker: looked at your procedures\. Added to your goals\./)
    })

    it('names no category of data that the scope did not allow (PATIENTS-6)', async () => {
      const laboratory = 'Observation?category=laboratory&patient=juniper'
      const vitalSigns = 'patient/Observation.rs?category=http://x|vital-signs'
      for (const [by, request, noun] of [
        ['patient/Observation.rs', 'Observation?patient=juniper', ANY],
        ['patient/Observation.rs', laboratory, 'laboratory results'],
        [vitalSigns, 'Observation?patient=juniper', 'measurements'],
        [vitalSigns, laboratory, 'measurements'],
        [vitalSigns, laboratory.replace('laboratory', 'laboratory,vital-signs'), 'measurements'],
        [vitalSigns, laboratory.replace('laboratory', 'http://x|vital-signs'), 'vital signs'],
      ] as const) {
        const body = await show([{ type: 'Observation', by, request }])
        const sentence = `Looked at your ${noun}.`
        assert.ok(listEntries(body)[0]?.includes(sentence), `${by} ${request}`)
        const [entry] = (await browser.get('/account/access-log.json')).json()
        assert.equal(entry.what, sentence)
      }
    })

    it('names the categories of the grant, and none that was left out (PATIENTS-6)', async () => {
      const category = 'http://terminology.hl7.org/CodeSystem/observation-category'
      const limit = (permissions: string, code: string) =>
        `patient/Observation.${permissions}?category=${category}|${code}`
      const scope = [limit('rs', 'vital-signs'), limit('rs', 'survey'), limit('c', 'survey')].join(' ')
      await auth.addClient({
        client_id: 'diary',
        scope: 'launch patient/Observation.crs',
        redirect_uris: JSON.stringify(['https://tracker.example/callback']),
      })
      await auth.getCode(await auth.logIn(), {
        client_id: 'diary',
        redirect_uri: 'https://tracker.example/callback',
        scope: `launch ${scope}`,
      })
      const { id } = await auth.store.db
        .selectFrom('grant')
        .select('id')
        .where('client_id', '=', 'diary')
        .executeTakeFirstOrThrow()
      for (const [request, what] of [
        ['Observation?patient=juniper', 'Looked at your vital signs and questionnaires.'],
        ['Observation?category=laboratory,vital-signs', 'Looked at your vital signs.'],
        ['Observation?category=laboratory', 'Looked at your measurements.'],
        ['Observation', 'Added to your questionnaires.'],
      ] as const) {
        const changes = { ...(what.startsWith('Added') && { interaction: 'create' as const }) }
        const by = limit('rs', 'vital-signs')
        const body = await show([{ type: 'Observation', by, request, launch: id, ...changes }])
        assert.ok(listEntries(body)[0]?.includes(what), `${request}: ${listEntries(body)[0]}`)
        assert.match((await browser.get('/account/access-log.csv')).body, new RegExp(what))
        assert.match(toText((await browser.get('/home')).body), new RegExp(what))
      }
    })

    it('refuses a period that ends before it begins, or a day that it cannot read, at the field (PATIENTS-6)', async () => {
      await record([{}])
      for (const [query, field, sentence] of [
        ['since=2026-11-13&until=2026-11-12', 'until', 'This day is before “From”. Choose a later one.'],
        ['since=13.11.2026', 'since', 'Enter a day, such as 2026-11-30.'],
      ] as const) {
        const { statusCode, body } = await browser.get(`/account/access-log?${query}`)
        assert.equal(statusCode, 400)
        assert.ok(body.includes(`<p class="field__error" id="${field}-error">${sentence}</p>`), query)
        assert.match(
          body,
          new RegExp(`id="${field}"[^>]* aria-invalid="true" aria-describedby="${field}-error"`),
        )
        assert.doesNotMatch(body, /Nothing found|Nobody|Download/)
        const file = await browser.get(`/account/access-log.csv?${query}`)
        assert.equal(file.headers.location, `/account/access-log?${query}`)
      }
      assert.match(
        (await browser.get('/account/access-log?since=2026-11-13&until=2026-11-13')).body,
        /Looked at/,
      )
    })

    it('filters by no event of another record (PATIENTS-6)', async () => {
      const nurse = await auth.addUser('nurse').then(() => findId('nurse'))
      await auth.addUser('ash', { fhir_user_id: 'Patient/ashlar' })
      await record([{}, { patient: 'ashlar', subject: nurse }, { patient: 'ashlar' }])
      const other = (await (await auth.logIn('ash')).get('/account/access-log')).body
      const [, person = ''] = /<option value="([0-9a-f]{32})">Dr. nurse/.exec(other) ?? []
      const { body } = await browser.get(`/account/access-log?person=${person}`)
      assert.ok(person !== '' && !body.includes('Dr. nurse'))
    })

    it('shows whole days, and older ones on request (PATIENTS-6, AUDIT-23)', async () => {
      const records = Array.from({ length: 90 }, (_, at) => ({ at: NOON - at * DAY_MS }))
      const first = await show(records)
      assert.equal(listEntries(first).length, 40)
      assert.match(first, /Show older entries/)
      const follow = async (body: string) => {
        const [, href = ''] = /href="([^"]*before=[0-9a-f]{32})"/.exec(body) ?? []
        return (await browser.get(href.replaceAll('&amp;', '&'))).body
      }
      const second = await follow(first)
      const third = await follow(second)
      assert.deepEqual([listEntries(second).length, listEntries(third).length], [40, 10])
      assert.doesNotMatch(third, /Show older entries/)
      assert.match(third, /Back to the newest/)
    })

    it('divides a day with very many visits, and loses none of them (PATIENTS-6)', async () => {
      const records = Array.from({ length: 450 }, (_, at) => ({
        at: NOON - Math.floor(at / 3),
        subject: `s${at}`,
        type: at % 2 ? 'Goal' : 'Patient',
      }))
      let body = await show(records)
      const counts = [listEntries(body).length]
      for (let page = 0; page < 2; page++) {
        const [, href = ''] = /href="([^"]*before=[0-9a-f]{32})">Show older/.exec(body) ?? []
        body = (await browser.get(href.replaceAll('&amp;', '&'))).body
        counts.push(listEntries(body).length)
      }
      assert.deepEqual(counts, [200, 200, 50])
      assert.doesNotMatch(body, /Show older/)
      assert.equal((await browser.get('/account/access-log.json')).json().length, 450)
    })

    it('looks for a rare entry in a bounded number of records (PATIENTS-6)', async () => {
      const many = Array.from({ length: 10_001 }, (_, at) => ({ at: NOON - at }))
      await record([
        { at: NOON - 20_000, type: 'Goal', patients: ['juniper', 'x'], patient: undefined },
        ...many,
      ])
      const { body } = await browser.get('/account/access-log?kind=list')
      assert.match(body, /Nothing found back to 13-Nov-2026/)
      const [, href = ''] = /href="([^"]*before=[0-9a-f]{32})">Show older/.exec(body) ?? []
      assert.match((await browser.get(href.replaceAll('&amp;', '&'))).body, /a list of the goals/)
    })

    it('needs neither an account nor the FHIR server for the page (PATIENTS-6)', async () => {
      const other = await TestAuthServer.open(auth.store, { resources: RESOURCES })
      const reader = await other.logIn('alba')
      await record([{}, { subject: 'unknown', fhirUser: 'Practitioner/other' }])
      other.fhir.fail('no-response')
      const entries = listEntries((await reader.get('/account/access-log')).body)
      assert.deepEqual(entries.toSorted(), [
        '12:00 A member of staff Looked at your conditions. With Heart Tracker',
        '12:00 Dr. Robin Kim Looked at your conditions. With Heart Tracker',
      ])
      await other.app.close()
    })

    it('reads names and roles once for several pages (PATIENTS-6)', async () => {
      const other = await TestAuthServer.open(auth.store, { resources: RESOURCES })
      const reader = await other.logIn('alba')
      await record(
        Array.from({ length: 3 * LIMITS.staffNamed }, (_, at) => ({ fhirUser: `Practitioner/${at}` })),
      )
      const count = async () => {
        other.fhir.requests.length = 0
        await reader.get('/account/access-log')
        return other.fhir.requests.filter(({ url }) => url.pathname.includes('/Practitioner')).length
      }
      assert.equal(await count(), 2)
      assert.ok(other.fhir.requests.every(({ url }) => url.href.length < 4000))
      await count()
      await count()
      assert.equal(await count(), 0)
      await other.app.close()
    })

    it('shows related persons the records of their dependants, by name (PATIENTS-6)', async () => {
      await auth.addUser('uncle', { fhir_user_id: 'RelatedPerson/r-dale' })
      const related = { clinician_id: await findId('uncle'), related_person_id: 'r-dale' }
      await auth.store.db.insertInto('account_related_person').values(related).execute()
      await record([{ patient: 'dale' }, { type: 'Goal' }])
      const { body } = await (await auth.logIn('uncle')).get('/account/access-log?patient=juniper')
      assert.match(body, /<h1>Who looked at the record of Alba dale<\/h1>/)
      assert.match(toText(body), /Looked at Alba dale’s conditions\./)
      assert.doesNotMatch(body, /goals/)
    })

    it('is for patients and their relatives', async () => {
      for (const path of ['', '.csv', '.json'])
        assert.equal(
          (await (await auth.logIn()).get(`/account/access-log${path}`)).headers.location,
          '/manage',
          path,
        )
      assert.equal((await auth.openBrowser().get('/account/access-log.csv')).headers.location, '/login')
    })

    describe('its download', () => {
      it('has the chosen visits as CSV, without formulas (PATIENTS-6)', async () => {
        await auth.addUser('formula', { fhir_user_id: 'kim', display_name: '=HYPERLINK("http://x","y")' })
        const subject = await findId('formula')
        await record([{ subject }, { type: 'Goal', at: NOON - DAY_MS, interaction: 'create' }])
        const { headers, body } = await browser.get('/account/access-log.csv')
        assert.match(String(headers['content-type']), /^text\/csv/)
        assert.equal(headers['cache-control'], 'no-store')
        const [, name = ''] =
          /^attachment; filename="(.*)"$/.exec(String(headers['content-disposition'])) ?? []
        assert.match(name, /^who-looked-13-Nov-2026-[0-9a-f]{6}\.csv$/)
        assert.deepEqual(body.split('\r\n'), [
          '\ufeffDate,From,To,Who,Role,Apps,Kind,What',
          `13-Nov-2026,12:00 UTC,12:00 UTC,"'=HYPERLINK(""http://x"",""y"")","Cardiologist, Heart clinic, North Hospital",Heart Tracker,Opened the record,Looked at your conditions.`,
          '12-Nov-2026,12:00 UTC,12:00 UTC,Dr. Robin Kim,"Cardiologist, Heart clinic, North Hospital",Heart Tracker,Changed the record,Added to your goals.',
          '',
        ])
        const chosen = await browser.get('/account/access-log.csv?kind=changed')
        assert.equal(chosen.body.split('\r\n').length, 3)
      })

      it('has another name for each record, which names no patient (PATIENTS-6)', async () => {
        await auth.addUser('parent', { fhir_user_id: 'Patient/juniper' })
        const related = { clinician_id: await findId('parent'), related_person_id: 'r-dale' }
        await auth.store.db.insertInto('account_related_person').values(related).execute()
        const parent = await auth.logIn('parent')
        const names = await Promise.all(
          ['juniper', 'dale'].map(async id => {
            const { headers } = await parent.get(`/account/access-log.csv?patient=${id}`)
            return String(headers['content-disposition'])
          }),
        )
        assert.equal(new Set(names).size, 2)
        for (const name of names) assert.doesNotMatch(name, /juniper|dale|alba/i)
      })

      it('has all pages as JSON, and no ids (PATIENTS-6)', async () => {
        await record(Array.from({ length: 90 }, (_, at) => ({ at: NOON - at * DAY_MS, id: 'condition-77' })))
        const { body } = await browser.get('/account/access-log.json')
        const entries = JSON.parse(body)
        assert.equal(entries.length, 90)
        assert.deepEqual(entries[0], {
          from: '2026-11-13T12:00:00.000Z',
          to: '2026-11-13T12:00:00.000Z',
          who: 'Dr. Robin Kim',
          role: 'Cardiologist, Heart clinic, North Hospital',
          apps: 'Heart Tracker',
          kind: 'Opened the record',
          what: 'Looked at your conditions.',
        })
        for (const id of [robin, 'condition-77', 'juniper']) assert.ok(!body.includes(id), id)
        await record([])
        assert.deepEqual((await browser.get('/account/access-log.json')).json(), [])
      })

      it('says at its end that older entries are missing', async () => {
        await record([])
        const audit = createAuditor({ store: auth.store })
        const byRobin = { ...READ, subject: robin, fhirUser: 'Practitioner/kim' }
        const AT_ONCE = 500
        for (let first = 0; first < 1.2 * LIMITS.exportedRecords; first += AT_ONCE)
          // Each is a visit of its own.
          await audit.record(
            ...Array.from({ length: AT_ONCE }, (_, at) => ({
              ...byRobin,
              at: NOON - (first + at) * 3_600_000,
            })),
          )
        const csv = (await browser.get('/account/access-log.csv')).body.trimEnd().split('\r\n')
        assert.match(csv.at(-1) ?? '', /^"Incomplete: older entries are not in this file\./)
        const json = (await browser.get('/account/access-log.json')).json()
        assert.match(json.at(-1).incomplete, /^Incomplete: /)
        await record([])
      })

      it('is refused to a user whose others still run, and to nobody else (PATIENTS-6)', async () => {
        // Nothing of the rest is needed before the first line is read.
        const start = async (id: string) => {
          const parts = writeVisits({} as never, { id } as never, { format: 'csv' } as never)
          await parts?.next()
          return parts
        }
        const slow = [await start('slow'), await start('slow')]
        assert.equal(await start('slow'), undefined)
        const other = await start('other')
        assert.ok(other)
        for (const parts of [...slow, other]) await parts?.return(undefined)
        const again = await start('slow')
        assert.ok(again)
        await again.return(undefined)
      })
    })
  })
})
