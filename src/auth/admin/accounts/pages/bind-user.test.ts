import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type { Resource } from '../../../../fhir/index.ts'
import { readForm } from '../../../testing/read-form.ts'
import { TestAuthServer } from '../../../testing/test-auth-server.ts'
import type { TestBrowser } from '../../../testing/test-browser.ts'
import { patient } from '../../../testing/test-fhir-server.ts'
import { openTestStore } from '../../../testing/test-store.ts'

const identifier = [{ type: { coding: [{ code: 'MR' }] }, value: 'SYN-004127' }]

function relatedPerson(id: string, more: object = {}): Resource {
  return {
    resourceType: 'RelatedPerson',
    id,
    name: [{ family: 'Juniper', given: ['Nora'] }],
    relationship: [{ coding: [{ code: 'MTH', display: 'mother' }] }],
    patient: { reference: 'Patient/juniper' },
    ...more,
  }
}

const RESOURCES: readonly Resource[] = [
  patient('juniper', 'Juniper', 'Alba', { identifier }),
  patient('other', 'Juniper', 'Albert', { birthDate: '1990-01-02', gender: 'male' }),
  relatedPerson('r1'),
  relatedPerson('ended', { active: false }),
  {
    resourceType: 'Practitioner',
    id: 'valcourt',
    name: [{ family: 'Valcourt', given: ['Inès'], prefix: ['Dr.'] }],
  },
  { resourceType: 'Practitioner', id: 'hopper', name: [{ family: 'Hopper', given: ['Grace'] }] },
]

const NEW = '/admin/clinicians/new'
const ALBA = { kind: 'account', username: 'alba', displayName: 'Alba', fhirUser: 'Patient/juniper' }

describe('the resource of an account', () => {
  const open = openTestStore()
  let auth: TestAuthServer
  let admin: TestBrowser
  before(async () => {
    auth = await TestAuthServer.open(await open(), { resources: RESOURCES })
    await auth.addUser('ada', { admin: true })
    admin = await auth.logIn('ada')
  })

  const findAccount = (username: string) =>
    auth.store.db
      .selectFrom('clinician')
      .select(['id', 'fhir_user_id'])
      .where('username', '=', username)
      .executeTakeFirst()
  const findPath = async (username: string) => `/admin/clinicians/${(await findAccount(username))?.id}`
  const addAccount = (entries: Readonly<Record<string, string>>) =>
    admin.post(NEW, { ...entries, confirmed: entries.fhirUser ?? '' })

  it('is confirmed by name, birth date and MRN before the account is added (ADMIN-30)', async () => {
    const { body } = await admin.post(NEW, ALBA)
    assert.match(body, /<h1>Is this the right person\?<\/h1>/)
    assert.match(body, /<dt>Name<\/dt><dd><bdi>Juniper, Alba<\/bdi>/)
    assert.match(body, /<dt>Born<\/dt><dd>[\s\S]*?1958[\s\S]*<dt>MRN<\/dt><dd>SYN-004127</)
    assert.match(body, /Confirm and add user/)
    assert.equal(await findAccount('alba'), undefined)
    const confirmed = readForm(body)
    assert.equal((await admin.post(NEW, { ...ALBA, fhirUser: 'Patient/other' })).statusCode, 200)
    const swapped = new URLSearchParams(confirmed)
    swapped.set('fhirUser', 'Patient/other')
    assert.match((await admin.post(NEW, Object.fromEntries(swapped))).body, /Juniper, Albert/)
    assert.equal(await findAccount('alba'), undefined)
    assert.equal((await admin.post(NEW, Object.fromEntries(confirmed))).statusCode, 303)
    assert.equal((await findAccount('alba'))?.fhir_user_id, 'Patient/juniper')
  })

  it('is read with the right of the administrator, so that the FHIR server records who read it (ADMIN-30)', async () => {
    auth.fhir.requests.length = 0
    await admin.post(NEW, { ...ALBA, username: 'recorded' })
    const read = auth.fhir.requests.find(({ url }) => url.searchParams.get('_id') === 'juniper')
    const [, claims = ''] = read?.authorization?.split('.') ?? []
    const { sub, scope } = JSON.parse(Buffer.from(claims, 'base64url').toString())
    assert.equal(sub, (await findAccount('ada'))?.id)
    assert.match(scope, /^user\//)
  })

  it('is read on behalf of the administrator by every page, in the name of that person (ADMIN-30)', async () => {
    const id = (await findAccount('ada'))?.id
    const nora = { ...ALBA, username: 'read', relatedPersons: 'r1' }
    await admin.post(NEW, { ...nora, confirmed: 'Patient/juniper RelatedPerson/r1' })
    const path = await findPath('read')
    for (const [open, note] of [
      [() => admin.post(NEW, { ...nora, username: 'another' }), /^Check of an account$/],
      [() => admin.get(`${path}?check=1`), /^Check of an account$/],
      [
        () => admin.get('/admin/policy?patient=juniper'),
        /^(?:Check of who may see a patient|Search for a patient in the administration)$/,
      ],
    ] as const) {
      auth.fhir.requests.length = 0
      await open()
      assert.ok(auth.fhir.requests.length > 0)
      for (const { url, authorization } of auth.fhir.requests) {
        const { sub, fhirUser, audit } = JSON.parse(
          Buffer.from(authorization?.split('.')[1] ?? '', 'base64url').toString(),
        )
        assert.equal(sub, id, url.href)
        assert.match(audit.note, note)
        assert.match(fhirUser, /Practitioner\/practitioner-of-ada$/)
        assert.equal(typeof audit.address, 'string')
      }
    }
  })

  it('is not read before an administrator asks: neither the patient, nor relatives, nor patients of apps (ADMIN-30)', async () => {
    const nora = { ...ALBA, username: 'unasked', relatedPersons: 'r1' }
    await admin.post(NEW, { ...nora, confirmed: 'Patient/juniper RelatedPerson/r1' })
    const path = await findPath('unasked')
    auth.fhir.requests.length = 0
    const { body } = await admin.get(path)
    assert.deepEqual(auth.fhir.requests, [])
    assert.match(body, /\?check=1">Check whose records it opens</)
    const asked = (await admin.get(`${path}?check=1`)).body
    assert.match(asked, /Opens the records of:[\s\S]*<bdi>Juniper, Alba<\/bdi>, born/)
  })

  it('shows a related person with the relationship and the patient (ADMIN-30)', async () => {
    const nora = { ...ALBA, username: 'nora', displayName: 'Nora', fhirUser: 'RelatedPerson/r1' }
    const { body } = await admin.post(NEW, { ...nora, relatedPersons: 'ended' })
    assert.match(body, /<h1>Are these the right persons\?<\/h1>/)
    assert.match(
      body,
      /RelatedPerson\/r1[\s\S]*Juniper, Nora[\s\S]*<dt>Relationship<\/dt><dd>mother<[\s\S]*<dt>Acts for<\/dt><dd><bdi>Juniper, Alba<\/bdi>[\s\S]*<dt>Born \(patient\)<\/dt>/,
    )
    assert.match(body, /RelatedPerson\/ended[\s\S]*This RelatedPerson gives access to no record\./)
  })

  it('shows the name of a clinician, also later on the page of the account, with one request (ADMIN-30)', async () => {
    const grace = { kind: 'clinician', username: 'grace', displayName: 'Grace', fhirUser: 'hopper' }
    const { body } = await admin.post(NEW, grace)
    assert.match(body, /Practitioner\/hopper[\s\S]*Hopper, Grace/)
    await addAccount({ ...grace, fhirUser: 'Practitioner/hopper' })
    const path = await findPath('grace')
    auth.fhir.requests.length = 0
    assert.match((await admin.get(path)).body, /On the FHIR server: <bdi>Hopper, Grace<\/bdi>/)
    assert.equal(auth.fhir.requests.length, 1)
    auth.fhir.requests.length = 0
    await admin.get('/admin/clinicians')
    assert.equal(auth.fhir.requests.length, 0)
  })

  it('is doubted if no word of its name is in that of the account (ADMIN-30)', async () => {
    const doubt = /The names have nothing in common\.[\s\S]*Dr\. Ada Byron[\s\S]*Valcourt, Inès/
    const add = async (displayName: string, fhirUser: string, kind = 'clinician') =>
      (await admin.post(NEW, { kind, username: 'doubted', displayName, fhirUser })).body
    assert.match(await add('Dr. Ada Byron', 'valcourt'), doubt)
    for (const [name, fhirUser, kind] of [
      ['Dr. INES Byron', 'valcourt'],
      ['Inès Valcourt-Byron', 'valcourt'],
      ['Alba J.', 'Patient/juniper', 'account'],
    ] as const)
      assert.doesNotMatch(await add(name, fhirUser, kind), /nothing in common/, name)
    assert.match(await add('Grace Hopper', 'Patient/juniper', 'account'), /nothing in common/)
    assert.match(await add('Grace Hopper', 'RelatedPerson/r1', 'account'), /this is <bdi>Juniper, Nora/)
  })

  it('is the first related person of a relative without another one (ADMIN-30)', async () => {
    const relative = { ...ALBA, username: 'relative', displayName: 'Nora Juniper', fhirUser: '' }
    const { body } = await admin.post(NEW, { ...relative, relatedPersons: 'RelatedPerson/r1' })
    assert.match(body, /Is this the right person\?[\s\S]*RelatedPerson\/r1[\s\S]*Juniper, Nora/)
    assert.equal((await admin.post(NEW, Object.fromEntries(readForm(body)))).statusCode, 303)
    assert.equal((await findAccount('relative'))?.fhir_user_id, 'RelatedPerson/r1')
    const nobody = await admin.post(NEW, { ...relative, username: 'nobody' })
    assert.match(nobody.body, /id="fhirUser-error"/)
    assert.doesNotMatch((await admin.get(NEW)).body, /name="fhirUser"[^>]* required/)
  })

  it('is confirmed when it changes, and a new name of the account is not (ADMIN-30)', async () => {
    await addAccount({ ...ALBA, username: 'changed' })
    const path = await findPath('changed')
    assert.equal((await admin.post(path, { ...ALBA, displayName: 'Other' })).statusCode, 303)
    const { body } = await admin.post(path, { ...ALBA, fhirUser: 'Patient/other', relatedPersons: 'r1' })
    assert.match(body, /Juniper, Albert[\s\S]*Juniper, Nora[\s\S]*Confirm and save/)
    assert.equal((await findAccount('changed'))?.fhir_user_id, 'Patient/juniper')
    assert.equal((await admin.post(path, Object.fromEntries(readForm(body)))).statusCode, 303)
    assert.equal((await findAccount('changed'))?.fhir_user_id, 'Patient/other')
    const removed = await admin.post(path, { ...ALBA, fhirUser: 'Patient/other', relatedPersons: '' })
    assert.equal(removed.statusCode, 303)
  })

  it('is found by name, MRN or birth date, and chosen from the results (ADMIN-30)', async () => {
    const entries = { ...ALBA, username: 'found', fhirUser: '', find: '1' }
    const choose = (body: string) => [...body.matchAll(/name="choose" value="([^"]+)"/g)].map(([, id]) => id)
    const results = (await admin.post(NEW, { ...entries, patient: 'juniper' })).body
    assert.deepEqual(choose(results), ['Patient/juniper', 'Patient/other'])
    assert.match(results, /data-label="Sex">Male<[\s\S]*data-label="MRN"><span class="unknown">Not recorded/)
    for (const [text, id] of [
      ['SYN-004127', 'Patient/juniper'],
      ['1990-01-02', 'Patient/other'],
      ['Patient/other', 'Patient/other'],
    ] as const)
      assert.ok(choose((await admin.post(NEW, { ...entries, patient: text })).body).includes(id), text)
    assert.match(
      (await admin.post(NEW, { ...entries, patient: 'nobody' })).body,
      /No patient is known as nobody/,
    )
    const chosen = { ...Object.fromEntries(readForm(results)), choose: 'Patient/other' }
    assert.match((await admin.post(NEW, chosen)).body, /Is this the right person[\s\S]*Juniper, Albert/)
    const early = await admin.post(NEW, { kind: 'clinician', choose: 'Patient/other' })
    assert.match(early.body, /value="account" selected[\s\S]*name="fhirUser"[^>]*value="Patient\/other"/)
    assert.doesNotMatch(early.body, /not added/)
    await addAccount({ ...ALBA, username: 'found' })
    const path = await findPath('found')
    const others = (await admin.post(path, { ...ALBA, find: '1', patient: 'albert' })).body
    const other = { ...Object.fromEntries(readForm(others)), choose: 'Patient/other' }
    assert.match((await admin.post(path, other)).body, /Juniper, Albert[\s\S]*Confirm and save/)
    assert.equal((await findAccount('found'))?.fhir_user_id, 'Patient/juniper')
  })

  it('is asked about only after every fault was shown beside its field, also a taken username (ADMIN-30)', async () => {
    const readFaults = (body: string) =>
      Object.fromEntries(
        [...body.matchAll(/class="field__error" id="(\w+)-error">([^<]+)</g)].map(match => match.slice(1)),
      )
    const nobody = {
      ...ALBA,
      username: ' ',
      displayName: '',
      fhirUser: 'Practitioner/1',
      relatedPersons: '# RelatedPerson/r1 RelatedPerson/ä',
    }
    const { statusCode, body } = await admin.post(NEW, nobody)
    assert.equal(statusCode, 400)
    assert.match(body, /The user was not added\.[\s\S]*Correct the marked fields\./)
    assert.deepEqual(Object.keys(readFaults(body)), ['username', 'displayName', 'fhirUser', 'relatedPersons'])
    assert.equal(body.match(/begins with a letter or a digit/g)?.length, 1)
    assert.equal(readFaults(body).relatedPersons, 'Not an id of a RelatedPerson: #, ä.')
    assert.match(readFaults(body).fhirUser ?? '', /reference to a Patient or RelatedPerson\.$/)
    assert.deepEqual(body.match(/<input[^>]*autofocus[^>]*/g)?.length, 1)
    assert.match(body, /id="username"[^>]* autofocus aria-invalid="true"/)
    const taken = { username: 'The username is taken.' }
    assert.deepEqual(readFaults((await admin.post(NEW, { ...ALBA, username: 'ada' })).body), taken)
    const early = await admin.post(NEW, { username: 'ada', choose: 'Patient/other' })
    assert.deepEqual(readFaults(early.body), taken)
    await addAccount({ ...ALBA, username: 'faulty' })
    const path = await findPath('faulty')
    const refused = await admin.post(path, {
      ...ALBA,
      displayName: '',
      fhirUser: 'Patient/#',
      relatedPersons: '',
    })
    assert.equal(refused.statusCode, 400)
    assert.deepEqual(Object.keys(readFaults(refused.body)), ['displayName', 'fhirUser'])
    assert.match(refused.body, /Not saved\.[\s\S]*name="fhirUser"[^>]*value="Patient\/#"/)
    const raced = await Promise.all([1, 2].map(() => addAccount({ ...ALBA, username: 'raced' })))
    assert.deepEqual(raced.map(reply => reply.statusCode).toSorted(), [303, 400])
  })

  it('goes back to the form with what was entered (ADMIN-30)', async () => {
    const { body } = await admin.post(NEW, { ...ALBA, username: 'back', edit: '1' })
    assert.match(body, /<h1>Add a user<\/h1>[\s\S]*value="back"[\s\S]*value="Patient\/juniper"/)
    assert.match(body, /name="password" value="1"><span/)
  })

  it('can be saved if it is not found or the FHIR server does not respond, and the page says so (ADMIN-30)', async () => {
    const missing = { ...ALBA, username: 'missing', fhirUser: 'Patient/missing' }
    const { body } = await admin.post(NEW, missing)
    assert.match(body, /The FHIR server has no Patient\/missing\.[\s\S]*Continue anyway and add user/)
    assert.equal((await admin.post(NEW, Object.fromEntries(readForm(body)))).statusCode, 303)
    auth.fhir.fail('no-response')
    try {
      const unseen = await admin.post(NEW, { ...ALBA, username: 'unseen' })
      assert.match(
        unseen.body,
        /does not say who this is\.[\s\S]*No response[\s\S]*Continue anyway and add user/,
      )
      assert.equal((await admin.post(NEW, Object.fromEntries(readForm(unseen.body)))).statusCode, 303)
      const search = await admin.post(NEW, { ...ALBA, find: '1', patient: 'juniper' })
      assert.match(search.body, /The FHIR server is unavailable/)
    } finally {
      auth.fhir.fail(undefined)
    }
    assert.ok((await findAccount('missing')) && (await findAccount('unseen')))
  })

  it('is not named to an administrator who may not see the patient (ADMIN-30)', async () => {
    const own = await TestAuthServer.open(await open(), {
      resources: RESOURCES,
      fetch: (input, init) =>
        String(input).includes('_id=')
          ? Promise.resolve(Response.json({ resourceType: 'Bundle', type: 'searchset', entry: [] }))
          : own.fhir.fetch(input, init),
    })
    await own.addUser('ada', { admin: true })
    const browser = await own.logIn('ada')
    for (const fhirUser of ['Patient/juniper', 'RelatedPerson/r1']) {
      const { body } = await browser.post(NEW, { ...ALBA, fhirUser })
      assert.match(body, /You cannot see who this is\.[\s\S]*Continue anyway and add user/)
      assert.doesNotMatch(body, /Juniper|Nora|\b1958\b|SYN-/)
    }
  })
})
