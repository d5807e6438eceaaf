import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { createAuditor } from '../../../audit/index.ts'
import type { Resource } from '../../../fhir/index.ts'
import { LIMITS } from '../../base/limits.ts'
import { readRedirect, TestAuthServer } from '../../testing/test-auth-server.ts'
import type { TestBrowser } from '../../testing/test-browser.ts'
import { patient } from '../../testing/test-fhir-server.ts'
import { openTestStore } from '../../testing/test-store.ts'

const DEPENDANTS = Array.from({ length: LIMITS.homeRecords + 2 }, (_, at) => `child-${at}`)

const RESOURCES: readonly Resource[] = [
  patient('juniper', 'Juniper', 'Alba'),
  ...DEPENDANTS.map(id => patient(id, id, 'Zoë')),
  ...DEPENDANTS.map(id => ({
    resourceType: 'RelatedPerson',
    id: `r-${id}`,
    patient: { reference: `Patient/${id}` },
  })),
  ...['father', 'inactive', 'disabled', 'alone'].map(id => ({
    resourceType: 'RelatedPerson',
    id,
    active: id !== 'inactive',
    patient: { reference: 'Patient/child-0' },
    relationship: [{ text: id }],
  })),
]

const APP = { client_id: 'tracker', redirect_uri: 'https://tracker.example/callback' }

describe('/home', () => {
  const open = openTestStore()
  let auth: TestAuthServer
  let browser: TestBrowser
  before(async () => {
    const store = await open()
    auth = await TestAuthServer.open(store, { resources: RESOURCES, audit: createAuditor({ store }) })
    await addAccount('alba', 'Patient/juniper')
    await auth.addClient({
      client_id: 'tracker',
      name: 'Heart Tracker',
      scope: 'launch/patient patient/*.rs offline_access',
    })
    browser = await auth.logIn('alba')
  })

  async function addAccount(username: string, fhirUserId: string, related: readonly string[] = []) {
    await auth.addUser(username, { fhir_user_id: fhirUserId, display_name: `Name of ${username}` })
    const { db } = auth.store
    const find = db.selectFrom('clinician').select('id').where('username', '=', username)
    const { id } = await find.executeTakeFirstOrThrow()
    for (const related_person_id of related)
      await db.insertInto('account_related_person').values({ clinician_id: id, related_person_id }).execute()
  }

  it('is where patients arrive after the sign-in, and clinicians do not (PATIENTS-8)', async () => {
    const signedIn = await auth.openBrowser().login('alba')
    assert.equal(signedIn.headers.location, '/portal')
    assert.equal((await browser.get('/portal')).headers.location, '/home')
    assert.equal((await (await auth.logIn()).get('/home')).headers.location, '/portal')
    assert.equal((await auth.openBrowser().get('/home')).headers.location, '/login')
  })

  it('says whose record it is, that no app has access, that nobody looked, and whom to ask (PATIENTS-8)', async () => {
    const { body } = await browser.get('/home')
    assert.match(body, /signed in as <b>Name of alba<\/b>/)
    assert.match(body, />Alba Juniper<\/h2>[\s\S]*Your own record/)
    assert.match(body, /No app that you allowed has access now\. When you allow an app/)
    assert.match(body, /Nobody else has opened your record lately/)
    assert.match(body, /Ask the hospital or practice that keeps the record/)
    assert.match(body, /<a href="\/home" aria-current="page">Start/)
  })

  it('lists the apps with access, with a link that ends it, and the last visits (PATIENTS-8)', async () => {
    const scope = 'launch/patient patient/Condition.rs offline_access'
    const { code = '' } = readRedirect(await auth.authorize(browser, { ...APP, scope }))
    await auth.exchange(code, APP)
    const { id: subject } = await auth.store.db
      .selectFrom('clinician')
      .select('id')
      .where('username', '=', 'clinician')
      .executeTakeFirstOrThrow()
    const read = { server: 'fhir', kind: 'fhir', interaction: 'read', allowed: true, status: 200 } as const
    const types = ['Goal', 'Device', 'Procedure', 'Coverage']
    const hour = 3_600_000
    const { id: own } = await auth.store.db
      .selectFrom('clinician')
      .select('id')
      .where('username', '=', 'alba')
      .executeTakeFirstOrThrow()
    await createAuditor({ store: auth.store }).record(
      ...['Account', 'Immunization', 'CarePlan'].map((type, at) => ({
        ...read,
        type,
        at: auth.time.now - at * hour,
        patient: 'juniper',
        subject: own,
        fhirUser: 'Patient/juniper',
        client: 'tracker',
        launch: type,
      })),
      ...types.map((type, at) => ({
        ...read,
        type,
        at: auth.time.now - at * hour,
        patient: 'juniper',
        subject,
        client: 'tracker',
      })),
    )
    const { body } = await browser.get('/home')
    assert.match(
      body,
      /Heart Tracker[\s\S]*May use your record\. Reads conditions\. Until you end it, also while you are away\./,
    )
    assert.match(body, /href="\/manage\/remove\?client=tracker">End access/)
    assert.match(
      body,
      /13-Nov-2026<\/time> 14:00 UTC[\s\S]*Dr\. Robin Ahmadi[\s\S]*your goals[\s\S]*your devices[\s\S]*your procedures/,
    )
    assert.doesNotMatch(body, /insurance|vaccinations|care plans/)
    assert.match(body, /href="\/account\/access-log\?patient=juniper">Everyone who looked at your record/)
    await browser.post('/manage/remove', { client: 'tracker' })
    assert.match(
      (await browser.get('/home')).body,
      /No app that you allowed has access now\. When you allow an app/,
    )
  })

  it('says who else may act for a person: other accounts that open the record (PATIENTS-11)', async () => {
    await addAccount('z-mum', 'RelatedPerson/r-child-0', ['r-child-0'])
    await addAccount('z-father', 'RelatedPerson/father', ['father', 'r-child-1'])
    await addAccount('z-former', 'RelatedPerson/inactive', ['inactive'])
    await addAccount('z-disabled', 'RelatedPerson/disabled', ['disabled'])
    await auth.store.db
      .updateTable('clinician')
      .set({ disabled: true })
      .where('username', '=', 'z-disabled')
      .execute()
    await addAccount('z-self', 'Patient/child-0')
    const listRepresentatives = async (username: string) => {
      const { body } = await (await auth.logIn(username)).get('/home')
      return [...body.matchAll(/Who else may act for ([^<]*)<\/h3>\s*([\s\S]*?)<\/section>/g)].map(
        ([, whom, rest = '']) => [
          whom,
          ...[...rest.matchAll(/<li>(.*?)<\/li>/g)].map(([, one = '']) => one.replace(/<[^>]+>/g, '')),
        ],
      )
    }
    assert.deepEqual(await listRepresentatives('z-mum'), [
      ['Zoë child-0', 'Name of z-father, father', 'Name of z-self (has an account)'],
    ])
    assert.deepEqual(await listRepresentatives('z-self'), [
      ['you', 'Name of z-father, father', 'Name of z-mum'],
    ])
    assert.match((await browser.get('/home')).body, /Nobody else has an account that opens this record\./)
  })

  it('leads to the apps of the setting that have a launch URL, and to no other (PATIENTS-10)', async () => {
    const settings = { patientApps: ['growth', 'nowhere', 'tracker', 'stranger', 'sallyport-app'] }
    const other = await TestAuthServer.open(await open(), { resources: RESOURCES, settings })
    await other.addUser('alba', { fhir_user_id: 'Patient/juniper' })
    await other.addUser('orphan', { fhir_user_id: 'RelatedPerson/nobody' })
    const launch_url = 'https://growth.example/launch?theme=1'
    await other.addClient({
      client_id: 'growth',
      name: 'Growth <chart>',
      launch_url,
      description: 'For children',
    })
    await other.addClient({ client_id: 'tracker', launch_url: null })
    await other.addClient({ client_id: 'stranger', launch_url, approved: false })
    await other.addClient({ client_id: 'clinical', launch_url })
    const { body } = await (await other.logIn('alba')).get('/home')
    assert.deepEqual(
      [...body.matchAll(/href="([^"]*)">Open<span class="sr"> (.*?)<\/span>/g)].map(([, ...found]) => found),
      [
        [
          'https://growth.example/launch?theme=1&amp;iss=http%3A%2F%2Flocalhost%3A8080%2Ffhir',
          'Growth &lt;chart&gt;',
        ],
        ['http://localhost:8081/launch', 'Demo app'],
      ],
    )
    assert.match(body, /For children[\s\S]*<b>Use another app<\/b>/)
    assert.match(body, /Apps of the hospital do not ask what they may use\.<\/p>/)
    assert.match(body, /sign in here when it asks\. It asks you what it may use/)
    assert.doesNotMatch((await (await other.logIn('orphan')).get('/home')).body, /Open an app/)
  })

  it('names the patients for whom a relative acts, a bounded number of them (PATIENTS-8)', async () => {
    await addAccount('mother', 'RelatedPerson/r-child-0', ['r-child-0'])
    const { body } = await (await auth.logIn('mother')).get('/home')
    assert.match(body, />Zoë child-0<\/h2>[\s\S]*You act for this person/)
    assert.match(
      body,
      /let use the record of Zoë child-0, and see which apps other people use for it and who looked at it/,
    )
    assert.doesNotMatch(body, /your health record|On this page/)
    await addAccount(
      'carer',
      'RelatedPerson/r-child-0',
      DEPENDANTS.map(id => `r-${id}`),
    )
    const many = (await (await auth.logIn('carer')).get('/home')).body
    assert.equal(many.match(/You act for this person/g)?.length, LIMITS.homeRecords)
    assert.match(many, /2 more records/)
    const contents = /aria-label="On this page">([\s\S]*?)<\/nav>/.exec(many)?.[1] ?? ''
    const links = [...contents.matchAll(/href="#([\w-]+)"/g)].map(([, id = '']) => id)
    assert.deepEqual(links.slice(0, 2), ['s-open', 's-apps'])
    assert.equal(links.length, LIMITS.homeRecords + 2)
    for (const id of links) assert.match(many, new RegExp(`<h2 id="${id}">`))
    assert.equal(many.match(/Staff may also use apps/g)?.length, 1)
    assert.equal(many.match(/If somebody should not be able to open a record/g)?.length, 1)
  })

  it('shows apps of other people that have access to the record now (PATIENTS-8)', async () => {
    await addAccount('father', 'RelatedPerson/r-child-1', ['r-child-1'])
    await addAccount('aunt', 'RelatedPerson/r-child-1', ['r-child-1'])
    const [father, aunt] = [await auth.logIn('father'), await auth.logIn('aunt')]
    assert.match((await aunt.get('/home')).body, /Nobody else has allowed an app to use this record/)
    const { code = '' } = readRedirect(
      await auth.authorize(father, { ...APP, scope: 'launch/patient patient/Condition.rs offline_access' }),
    )
    await auth.exchange(code, APP)
    const { body } = await aunt.get('/home')
    assert.match(
      body,
      /Apps of other people[\s\S]*Heart Tracker[\s\S]*App of the hospital, used by Name of father\. Reads conditions/,
    )
    assert.match(body, /Apps with access[\s\S]*No app that you allowed has access now/)
    assert.doesNotMatch((await father.get('/home')).body, /App of the hospital, used by/)
    assert.doesNotMatch((await browser.get('/home')).body, /App of the hospital, used by/)
    await father.post('/manage/remove', { client: 'tracker' })
    assert.doesNotMatch((await aunt.get('/home')).body, /App of the hospital, used by/)
  })

  it('says that an account opens no record, or that records cannot be reached (PATIENTS-8)', async () => {
    await addAccount('former', 'RelatedPerson/r-unknown', ['r-unknown'])
    const former = await auth.logIn('former')
    assert.equal((await former.get('/account/access-log')).headers.location, '/home')
    assert.match((await former.get('/home')).body, /Your account opens no record/)
    auth.fhir.fail('no-response')
    assert.match((await former.get('/home')).body, /Health records cannot be reached now/)
    const own = (await browser.get('/home')).body
    assert.match(own, /Name temporarily unavailable[\s\S]*Your own record/)
    auth.fhir.fail(undefined)
  })
})
