import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Resource } from '../src/fhir/index.ts'
import { createUserFilter, parsePolicy } from '../src/smart/index.ts'
import {
  ADMIN,
  type GuardedFhir,
  NOT_WITHIN,
  shownIn,
  startGuardedFhir,
  type TestCaller,
} from './support/guarded-fhir.ts'
import { type OpenGuarded, openApart } from './support/guarded-servers.ts'

const to = (reference: string) => ({ reference })
const patient = (id: string, organization?: string): Resource => ({
  resourceType: 'Patient',
  id,
  ...(organization !== undefined && { managingOrganization: to(`Organization/${organization}`) }),
})
const condition = (id: string, of: string, more: object = {}): Resource => ({
  resourceType: 'Condition',
  id,
  subject: to(`Patient/${of}`),
  ...more,
})
const team = (id: string, of: string, status: string, member: string): Resource => ({
  resourceType: 'CareTeam',
  id,
  status,
  subject: to(`Patient/${of}`),
  participant: [{ member: to(member) }],
})

const DATA: readonly Resource[] = [
  { resourceType: 'Organization', id: 'north', name: 'North' },
  { resourceType: 'Organization', id: 'south', name: 'South' },
  ...['kim', 'lee', 'max', 'root'].map(id => ({ resourceType: 'Practitioner', id })),
  patient('ann', 'north'),
  patient('ben', 'south'),
  patient('cat'),
  patient('dan'),
  ...['ann', 'ben', 'cat', 'dan'].map(of => condition(`c-${of}`, of)),
  condition('shared', 'ann', { asserter: to('Patient/dan') }),
  team('t-cat', 'cat', 'active', 'Practitioner/lee'),
  team('t-dan', 'dan', 'inactive', 'Practitioner/lee'),
  team('t-ben', 'ben', 'active', 'Practitioner/max'),
  { resourceType: 'Group', id: 'g', type: 'person', actual: true, member: [{ entity: to('Patient/dan') }] },
]

const RULES = {
  rules: [
    { clinicians: ['Practitioner/kim'], patients: ['ann', 'cat'] },
    { clinicians: ['Practitioner/lee'], organizations: ['Organization/north'], careTeams: 'own' },
    { clinicians: ['Practitioner/max'], careTeams: ['t-cat'] },
    { clinicians: ['Practitioner/max'], patients: ['dan'] },
    { clinicians: ['Practitioner/root'], patients: 'all' },
  ],
}

const by = (id: string, scope = 'user/*.cruds', more: object = {}): TestCaller => ({
  scope,
  fhirUser: `Practitioner/${id}`,
  sub: id,
  ...more,
})

const PATIENTS = { kim: 'ann cat', lee: 'ann cat', max: 'cat dan', root: 'ann ben cat dan', ida: '' }

async function seesOnly(fhir: GuardedFhir, who: string, expected: readonly string[]): Promise<void> {
  const conditions = expected.map(id => `Condition/c-${id}`)
  const own = (line: string) => fhir.ask(line, by(who))
  assert.deepEqual(
    shownIn(await own('GET /Patient')),
    expected.map(id => `Patient/${id}`),
  )
  assert.equal((await own('GET /Patient?_summary=count')).body.total, expected.length)
  const found = shownIn(await own('GET /Condition?_total=accurate&_include=Condition:patient'))
  assert.deepEqual(
    found.filter(it => it.startsWith('Condition/c-') || it.startsWith('Patient/')),
    [...conditions, ...expected.map(id => `Patient/${id}`)].sort(),
  )
  for (const id of ['ann', 'ben', 'cat', 'dan']) {
    const status = expected.includes(id) ? 200 : 403
    for (const path of [`/Patient/${id}`, `/Condition/c-${id}`, `/Condition/c-${id}/_history`])
      assert.equal((await own(`GET ${path}`)).status, status, path)
    assert.equal(
      shownIn(await own(`GET /Condition?subject:Patient._id=${id}&_id=c-${id}`)).length,
      expected.includes(id) ? 1 : 0,
    )
    assert.equal((await own(`GET /Patient/${id}/$everything`)).status, status)
  }
  const versions = shownIn(await own('GET /Condition/_history')).filter(it => it.includes('c-'))
  assert.deepEqual(versions, conditions)
}

const SERVERS: Readonly<Record<string, OpenGuarded | undefined>> = {
  'on the embedded server': undefined,
  'through the gateway': openApart,
}

for (const [where, open] of Object.entries(SERVERS))
  describe(`user/ scopes under a policy, ${where},`, () => {
    let fhir: GuardedFhir
    before(async () => {
      const rights = parsePolicy(RULES)
      assert(!('problem' in rights))
      fhir = await startGuardedFhir(DATA, { userFilter: createUserFilter(rights) }, open)
    })
    after(() => fhir.close())
    for (const [who, seen] of Object.entries(PATIENTS)) {
      const expected = seen === '' ? [] : seen.split(' ')
      it(`show ${who} ${seen || 'no patients'}, with every request (USER-4)`, () =>
        seesOnly(fhir, who, expected))
    }

    it('give the same response for a patient of another clinician and an absent one', async () => {
      const other = await fhir.ask('GET /Patient/ben', by('kim'))
      const absent = await fhir.ask('GET /Patient/nobody', by('kim'))
      assert.deepEqual([other.status, other.text], [absent.status, absent.text])
      assert.equal(other.why, NOT_WITHIN)
    })

    it('give every clinician access to shared resources, and none to a Group, which lists patients (USER-5)', async () => {
      assert.equal((await fhir.ask('GET /Organization/south', by('kim'))).status, 200)
      assert.equal((await fhir.ask('GET /Practitioner?_summary=count', by('kim'))).body.total, 4)
      assert.equal((await fhir.ask('GET /Group/g', by('kim'))).why, NOT_WITHIN)
      assert.equal((await fhir.ask('GET /Group/g', by('root'))).status, 200)
    })

    it("allow writes only for the clinician's patients", async () => {
      const post = async (who: string, of: string, more = {}) =>
        (await fhir.ask('POST /Condition', by(who), { ...condition('x', of, more), id: undefined })).status
      assert.deepEqual(
        [
          await post('kim', 'ann'),
          await post('kim', 'ben'),
          await post('lee', 'cat'),
          await post('lee', 'dan'),
        ],
        [201, 403, 201, 403],
      )
      for (const who of ['kim', 'lee']) {
        assert.equal(await post(who, 'ann', { asserter: to('Patient/ben') }), 403)
        assert.equal((await fhir.ask('DELETE /Condition/c-ben', by(who))).why, NOT_WITHIN)
        assert.equal(
          (await fhir.ask('PUT /Condition/c-ben', by(who), condition('c-ben', 'ann'))).why,
          NOT_WITHIN,
        )
        assert.equal(
          (await fhir.ask('PUT /Condition/shared', by(who), condition('shared', 'ann'))).why,
          NOT_WITHIN,
        )
      }
      assert.equal(await post('lee', 'ann', { asserter: to('Patient/cat') }), 201)
    })

    it('allow no clinician to extend their own access by a write (USER-7)', async () => {
      const put = (resource: Resource, who = 'lee') =>
        fhir.ask(`PUT /${resource.resourceType}/${resource.id}`, by(who), resource)
      for (const resource of [
        team('t-new', 'ben', 'active', 'Practitioner/lee'),
        team('t-dan', 'dan', 'active', 'Practitioner/lee'),
        team('t-cat', 'ben', 'active', 'Practitioner/lee'),
        patient('ben', 'north'),
        patient('dan', 'north'),
        patient('ann', 'south'),
      ])
        assert.equal((await put(resource)).why, NOT_WITHIN, JSON.stringify(resource))
      for (const organization of ['north', 'south'])
        assert.equal((await put(patient('eve', organization))).why, NOT_WITHIN)
      const post = async (organization?: string) => {
        const { id: _, ...content } = patient('x', organization)
        return (await fhir.ask('POST /Patient', by('lee'), content)).status
      }
      assert.deepEqual([await post('north'), await post('south'), await post()], [201, 403, 403])
      const { id: _, ...unnamed } = patient('x', 'north')
      assert.equal((await fhir.ask('PUT /Patient?_id=none', by('lee'), unnamed)).status, 201)
      const entry = [
        {
          request: { method: 'PUT', url: 'CareTeam/t-9' },
          resource: team('t-9', 'ben', 'active', 'Practitioner/lee'),
        },
        { request: { method: 'GET', url: 'Patient/ben' } },
      ]
      const transaction = await fhir.ask('POST /', by('lee'), {
        resourceType: 'Bundle',
        type: 'transaction',
        entry,
      })
      assert.equal(transaction.status, 403)
      assert.equal((await fhir.ask('GET /CareTeam/t-9', ADMIN)).status, 404)
    })

    it('follow the data: a patient who leaves a care team or an organization is no longer visible (USER-6)', async () => {
      await fhir.ask('PUT /Patient/gus', ADMIN, patient('gus', 'north'))
      await fhir.ask('PUT /CareTeam/t-hal', ADMIN, team('t-hal', 'hal', 'active', 'Practitioner/lee'))
      await fhir.ask('PUT /Patient/hal', ADMIN, patient('hal'))
      const sees = async (id: string) => (await fhir.ask(`GET /Patient/${id}`, by('lee'))).status
      assert.deepEqual([await sees('gus'), await sees('hal')], [200, 200])
      await fhir.ask('PUT /Patient/gus', ADMIN, patient('gus', 'south'))
      await fhir.ask('PUT /CareTeam/t-hal', ADMIN, team('t-hal', 'hal', 'inactive', 'Practitioner/lee'))
      assert.deepEqual([await sees('gus'), await sees('hal')], [403, 403])
      for (const path of ['/_history', '/_history/1'])
        assert.equal((await fhir.ask(`GET /Patient/gus${path}`, by('lee'))).why, NOT_WITHIN)
    })

    it('do not change patient/ and system/ scopes (USER-3)', async () => {
      const patientScope = by('kim', 'patient/*.rs', { patient: 'ben' })
      assert.deepEqual(shownIn(await fhir.ask('GET /Condition', patientScope)), ['Condition/c-ben'])
      assert.equal((await fhir.ask('GET /Patient/ben', ADMIN)).status, 200)
    })

    it('give a patient or relative as user access only to their own data (USER-2)', async () => {
      const as = (fhirUser: string): TestCaller => ({ scope: 'user/*.cruds', fhirUser })
      assert.deepEqual(shownIn(await fhir.ask('GET /Patient', as('Patient/ann'))), ['Patient/ann'])
      assert.equal((await fhir.ask('GET /Condition/c-ben', as('Patient/ann'))).why, NOT_WITHIN)
      assert.equal((await fhir.ask('GET /Patient', as('RelatedPerson/r'))).why, NOT_WITHIN)
    })

    it('give a related person access to the patients that the token names, and to no other (USER-2)', async () => {
      const as = (fhirUser: string, scope = 'user/*.cruds'): TestCaller => ({
        scope,
        fhirUser,
        user_patients: ['ann', 'cat'],
      })
      const relative = as('RelatedPerson/r')
      assert.deepEqual(shownIn(await fhir.ask('GET /Patient', relative)), ['Patient/ann', 'Patient/cat'])
      assert.equal((await fhir.ask('GET /Condition/c-ann', relative)).status, 200)
      assert.equal((await fhir.ask('GET /Condition/c-ben', relative)).why, NOT_WITHIN)
      assert.equal((await fhir.ask('DELETE /Condition/shared', relative)).why, NOT_WITHIN)
      const parent = await fhir.ask('GET /Patient', as('Patient/dan'))
      assert.deepEqual(shownIn(parent), ['Patient/ann', 'Patient/cat', 'Patient/dan'])
      // The claim adds nothing to patient/ scopes, nor to those of a clinician.
      assert.equal((await fhir.ask('GET /Patient', as('RelatedPerson/r', 'patient/*.rs'))).why, NOT_WITHIN)
      assert.deepEqual(shownIn(await fhir.ask('GET /Patient', as('Practitioner/ida'))), [])
    })
  })
