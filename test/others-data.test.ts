import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { fhirServer } from '../src/backends/sqlite/index.ts'
import { createGateway } from '../src/backends/upstream/index.ts'
import { NO_WAIT } from '../src/backends/upstream/testing/start-gateway.ts'
import type { Resource } from '../src/fhir/index.ts'
import { createUserFilter, parsePolicy } from '../src/smart/index.ts'
import { freePorts } from './support/free-ports.ts'
import { ADMIN, type GuardedFhir, startGuardedFhir, type TestCaller } from './support/guarded-fhir.ts'
import { GUARDED_SERVERS, type OpenGuarded } from './support/guarded-servers.ts'

const to = (reference: string) => ({ reference })
const listData = (id: string, organization: string): readonly Resource[] => [
  {
    resourceType: 'Patient',
    id,
    name: [{ family: id }],
    managingOrganization: to(`Organization/${organization}`),
  },
  { resourceType: 'CareTeam', id: `t-${id}`, status: 'active', subject: to(`Patient/${id}`) },
  {
    resourceType: 'Encounter',
    id: `e-${id}`,
    status: 'finished',
    class: { code: 'AMB' },
    subject: to(`Patient/${id}`),
    participant: [{ individual: to('Practitioner/dr') }],
  },
  {
    resourceType: 'Condition',
    id: `c-${id}`,
    subject: to(`Patient/${id}`),
    code: { text: 'x' },
    encounter: to(`Encounter/e-${id}`),
  },
  { resourceType: 'Binary', id: `b-${id}`, contentType: 'text/plain', data: 'eA==' },
  {
    resourceType: 'DocumentReference',
    id: `d-${id}`,
    status: 'current',
    subject: to(`Patient/${id}`),
    content: [{ attachment: { url: `Binary/b-${id}` } }],
  },
  {
    resourceType: 'List',
    id: `l-${id}`,
    status: 'current',
    mode: 'working',
    subject: to(`Patient/${id}`),
    entry: [{ item: to(`Condition/c-${id}`) }],
  },
  ...['lab', 'vital', 'other'].map(code => ({
    resourceType: 'Observation',
    id: `${code}-${id}`,
    status: 'final',
    code: { text: 'x' },
    subject: to(`Patient/${id}`),
    performer: [to('Practitioner/dr')],
    category: [{ coding: [{ code }] }],
  })),
]

const OWN = [
  { resourceType: 'Organization', id: 'north', name: 'North' },
  { resourceType: 'Organization', id: 'south', name: 'South' },
  { resourceType: 'Practitioner', id: 'dr' },
  ...listData('ann', 'north'),
  {
    resourceType: 'List',
    id: 'mixed',
    status: 'current',
    mode: 'working',
    subject: to('Patient/ann'),
    entry: [{ item: to('Condition/c-ben') }, { item: to('Condition/c-ann') }],
  },
]

/** Resources that were first assigned to Ann and then corrected to Ben. */
const CORRECTED = ['moved', 'moved-gone', 'moved-back']
const moved = (id: string, of: string) => ({
  resourceType: 'Condition',
  id,
  subject: to(`Patient/${of}`),
  code: { text: 'x' },
})

const rights = parsePolicy({
  rules: [
    { clinicians: ['Practitioner/lee'], organizations: ['north'], careTeams: 'own' },
    { clinicians: ['Practitioner/kim'], patients: ['ann'] },
    { clinicians: ['Practitioner/max'], careTeams: ['t-ann'] },
  ],
})
assert(!('problem' in rights))

const by = (id: string, scope: string): TestCaller => ({ scope, fhirUser: `Practitioner/${id}`, sub: id })
const EITHER = 'Observation.rs?category=lab user/Observation.rs?category=vital'
const CALLERS: Readonly<Record<string, TestCaller>> = {
  'a clinician of an organization': by('lee', 'user/*.cruds'),
  'a clinician of a care team': by('max', 'user/*.cruds'),
  'a clinician of one patient': by('kim', 'user/*.cruds'),
  'a clinician for two kinds of data': by('lee', `user/Condition.rs user/${EITHER}`),
  'an app of one patient': { scope: 'patient/*.cruds', patient: 'ann' },
}

// Requests that are sent with and without Ben's data, about Ben and about other patients.
const LINES = [
  ...['', '/_history', '/_history?_count=1', '/_history/1', '/_history/2'].flatMap(tail =>
    [
      'Patient/ben',
      'Condition/c-ben',
      'Observation/lab-ben',
      'CareTeam/t-ben',
      'Binary/b-ben',
      ...CORRECTED.map(id => `Condition/${id}`),
    ].map(it => `GET /${it}${tail}`),
  ),
  ...['', '?_count=1', '?_summary=count', '?_total=accurate&_count=1', '?_sort=-_id'].flatMap(tail =>
    [
      'Patient',
      'Condition',
      'Observation',
      'CareTeam',
      'Patient/ben/Condition',
      'Patient/ben/*',
      'Patient/ann/*',
    ].map(it => `GET /${it}${tail}`),
  ),
  ...[
    'Condition/_history',
    'Condition/_history?_count=1',
    '_history?_count=2',
    'Condition/_history?_since=2020-01-01T00:00:00Z&_count=1',
    'Patient/ben/$everything',
    'Patient/ann/$everything?_count=2',
    'Encounter/e-ben/$everything',
    'Encounter/e-ann/$everything',
    'Observation/$lastn',
    'Observation/$lastn?patient=ben',
    'Observation/$lastn?patient.name=ben',
    'DocumentReference/$docref?patient=ben',
    'Patient/ben/$summary',
    'Composition/none/$document',
    'Condition?_list=l-ben',
    'Condition?_list=mixed',
    'Condition?_include=*&_revinclude=*',
    'Practitioner?_revinclude=*&_count=1',
    'Organization?_revinclude=*',
    'DocumentReference?location=Binary/b-ben',
  ].map(it => `GET /${it}`),
  'GET /?_type=Patient,Condition&_count=1',
  'GET /Condition?patient=ben',
  'GET /Condition?patient=ann,ben&_include=Condition:patient',
  'GET /Condition?patient.name=ben',
  'GET /Patient?_id=ben',
  'GET /Patient?name=ben',
  'GET /Patient?organization=south',
  'GET /Patient?_has:Condition:patient:_id=c-ben',
  'GET /Patient?_revinclude=Observation:subject',
  'GET /Practitioner?_has:Observation:performer:patient=ben',
  'GET /Practitioner?_revinclude=Observation:performer',
  'GET /Organization?_revinclude=Patient:organization',
  'DELETE /Condition/c-ben',
  'DELETE /Condition?_id=c-ben',
]

/** A gateway whose upstream counts the requests. */
async function startCounted(resources: readonly Resource[]) {
  let times = 0
  const open: OpenGuarded = async (guard, baseUrl) => {
    const [port = 0] = await freePorts(1)
    const upstreamUrl = `http://127.0.0.1:${port}/upstream`
    const upstream = await fhirServer({ baseUrl: upstreamUrl, dataFile: ':memory:', smartConfiguration: {} })
    upstream.addHook('onRequest', (request, _reply, done) => {
      if (!request.url.endsWith('/metadata')) times += 1
      done()
    })
    await upstream.listen({ port, host: '127.0.0.1' })
    const app = await createGateway({ baseUrl, upstreamUrl, guard, smartConfiguration: {}, conceal: NO_WAIT })
    app.addHook('onClose', () => upstream.close())
    return app
  }
  const policy = {
    userFilter: createUserFilter(rights as Exclude<typeof rights, { readonly problem: string }>),
  }
  const fhir = await startGuardedFhir(resources, policy, open)
  return { fhir, times: () => times }
}

describe("other patients' data", () => {
  let worlds: readonly { readonly fhir: GuardedFhir; times(): number }[]
  before(async () => {
    const ben = listData('ben', 'south')
    worlds = [await startCounted(OWN), await startCounted([...OWN, ...ben])]
    for (const id of CORRECTED)
      for (const patient of ['ann', 'ben'])
        await worlds[1]?.fhir.ask(`PUT /Condition/${id}`, ADMIN, moved(id, patient))
    for (const it of ben)
      await worlds[1]?.fhir.ask(`PUT /${it.resourceType}/${it.id}`, ADMIN, { ...it, language: 'en' })
  })
  after(() => Promise.all(worlds.map(it => it.fhir.close())))

  async function collectResponses(line: string, caller: TestCaller): Promise<readonly string[]> {
    const answers: string[] = []
    for (const { fhir, times } of worlds) {
      const from = times()
      const { status, text } = await fhir.ask(line, caller)
      const known = text
        .replace(/_gateway-page=[\w.-]+/g, 'page')
        .replace(/"last(?:Updated|Modified)":"[^"]+"/g, '')
      answers.push(`${status} after ${times() - from} requests: ${known}`)
    }
    return answers
  }

  for (const [name, caller] of Object.entries(CALLERS))
    it(`change neither the response to ${name} nor the number of requests to the upstream (ABSENT-7)`, async () => {
      for (const line of LINES) {
        const [without, withThem] = await collectResponses(line, caller)
        assert.equal(withThem, without, line)
      }
    })

  it('have no effect after a resource was filed under another patient, corrected, and deleted or stored again', async () => {
    const [, { fhir } = assert.fail()] = worlds
    for (const id of CORRECTED.slice(1)) await fhir.ask(`DELETE /Condition/${id}`, ADMIN)
    await fhir.ask('PUT /Condition/moved-back', ADMIN, moved('moved-back', 'ben'))
    const lines = LINES.filter(line => /moved|_history/.test(line))
    for (const caller of Object.values(CALLERS))
      for (const line of lines) {
        // The number of history requests to the upstream depends on deletions.
        const [without, withThem] = (await collectResponses(line, caller)).map(it =>
          it.replace(/after \d+ requests/, ''),
        )
        assert.equal(withThem, without, line)
      }
  })
})

/** Resources of Ann that an app for a part of her record does not see. They refer to resources that everybody may see. */
const HIDDEN: readonly Resource[] = [
  {
    resourceType: 'MedicationRequest',
    id: 'mr',
    status: 'active',
    intent: 'order',
    subject: to('Patient/ann'),
    encounter: to('Encounter/e-ann'),
    requester: to('Practitioner/prescriber'),
    medicationReference: to('Medication/m1'),
  },
  {
    resourceType: 'Observation',
    id: 'hidden',
    status: 'final',
    code: { text: 'x' },
    subject: to('Patient/ann'),
    encounter: to('Encounter/e-ann'),
    category: [{ coding: [{ code: 'other' }] }],
    performer: [to('Organization/south')],
  },
]
const PARTIAL: TestCaller = {
  scope: `patient/Observation.rs?category=lab ${[
    'Patient',
    'Encounter',
    'Condition',
    'Practitioner',
    'Medication',
    'Organization',
  ]
    .map(type => `patient/${type}.rs`)
    .join(' ')}`,
  patient: 'ann',
}
const OF_ANN = [
  ...['', '?_count=1', '?_type=Practitioner,Medication', '?start=2000-01-01'].flatMap(tail => [
    `GET /Patient/ann/$everything${tail}`,
    `GET /_history${tail.replace('start', '_since').replace('01-01', '01-01T00:00:00Z')}`,
  ]),
  'GET /Encounter/e-ann/$everything',
  'GET /Patient/ann/*',
  'GET /Patient/ann/*?_count=1',
  'GET /Observation?_count=1',
  'GET /Observation/_history?_count=1',
  'GET /Encounter?_revinclude=*&_include=*',
  'GET /Practitioner?_revinclude=MedicationRequest:requester',
  'GET /Medication?_has:MedicationRequest:medication:_id=mr',
  'GET /Organization?_revinclude=Observation:performer',
  'GET /Patient?_has:Observation:patient:_id=hidden',
  'GET /MedicationRequest/mr',
  'GET /Observation/hidden',
]

for (const [name, open] of Object.entries(GUARDED_SERVERS))
  describe(`data of a patient outside the scopes, on ${name}`, () => {
    it('change no response (OPERATION-6)', async () => {
      const shared = [
        { resourceType: 'Practitioner', id: 'prescriber' },
        { resourceType: 'Medication', id: 'm1' },
      ]
      const visible = [...OWN, ...shared].filter(
        ({ resourceType, id }) =>
          PARTIAL.scope.includes(`/${resourceType}.`) && !/^(?:vital|other)-/.test(`${id}`),
      )
      const [without, withThem] = [
        await startGuardedFhir(visible, {}, open),
        await startGuardedFhir([...visible, ...HIDDEN], {}, open),
      ]
      after(() => Promise.all([without.close(), withThem.close()]))
      const read = async (fhir: GuardedFhir, line: string) => {
        const { status, text } = await fhir.ask(line, PARTIAL)
        const known = text.replace(/page=[\w.-]+/g, 'page').replace(/"last(?:Updated|Modified)":"[^"]+"/g, '')
        return `${status} ${known}`
      }
      for (const line of OF_ANN) assert.equal(await read(withThem, line), await read(without, line), line)
    })
  })
