import assert from 'node:assert/strict'
import { after, before, it } from 'node:test'
import {
  BASE,
  condition,
  createAuthenticator,
  type Fhir,
  observation,
  patient,
  patientAccess,
  type Reply,
  readNextLink,
  type StartFhir,
} from '../../backends/sqlite/testing/fhir.ts'
import type { Resource } from '../../fhir/index.ts'
import { type Access, type AccessFilter, fullAccess } from '../../smart/index.ts'

const SYSTEM = 'http://terminology.hl7.org/CodeSystem/observation-category'
const VITAL_SIGNS = ['category', `${SYSTEM}|vital-signs`] as const
const category = (code: string, system = SYSTEM) => ({ category: [{ coding: [{ system, code }] }] })
const byDoctor = { performer: [{ reference: 'Practitioner/dr' }] }
const times = <T>(count: number, make: (at: number) => T) =>
  Array.from({ length: count }, (_, at) => make(at))

const VISIBLE: readonly Resource[] = [
  { resourceType: 'Organization', id: 'org', name: 'Clinic' },
  { resourceType: 'Practitioner', id: 'dr', name: [{ family: 'Who' }] },
  { resourceType: 'Practitioner', id: 'nurse', name: [{ family: 'Why' }] },
  ...['ann', 'amy'].map(id =>
    patient(id, {
      name: [{ family: id }],
      generalPractitioner: [{ reference: 'Practitioner/dr' }],
      managingOrganization: { reference: 'Organization/org' },
    }),
  ),
  ...times(12, at =>
    observation(`o${at}`, at % 4 === 3 ? 'amy' : 'ann', {
      ...category('vital-signs'),
      performer: [{ reference: at % 3 === 0 ? 'Practitioner/nurse' : 'Practitioner/dr' }],
      effectiveDateTime: `2024-01-${10 + ((at * 7) % 12)}`,
    }),
  ),
  ...times(9, at => condition(`c${at}`, 'ann', { asserter: { reference: 'Practitioner/dr' } })),
]

/** Outside every caller's access: of other patients and types, by the same clinician, of any number and size. */
const HIDDEN: readonly Resource[] = [
  ...times(5, at => patient(`bob${at}`, { generalPractitioner: [{ reference: 'Practitioner/dr' }] })),
  // The index finds them by the same code, and so many that a search does not start with them.
  ...times(2_100, at =>
    observation(`h${at}`, `bob${at % 5}`, { ...category('vital-signs', 'http://example.org'), ...byDoctor }),
  ),
  ...times(40, at => condition(`hc${at}`, 'bob0', { asserter: { reference: 'Practitioner/dr' } })),
  {
    resourceType: 'Immunization',
    id: 'i',
    status: 'completed',
    vaccineCode: { text: 'Flu' },
    patient: { reference: 'Patient/bob0' },
    occurrenceDateTime: '2024-01-01',
  },
  // Of the caller's patient, but with content about another one.
  observation('mixed', 'ann', {
    ...category('laboratory'),
    contained: [condition('m', 'bob0', { note: [{ text: 'x'.repeat(50_000) }] })],
    extension: [{ url: 'http://example.org/about', valueReference: { reference: '#m' } }],
  }),
]

const isShared = (type: string) => type === 'Practitioner' || type === 'Organization'
const within = (limit: (type: string) => AccessFilter): Access => ({
  filterFor: type => (isShared(type) ? 'everything' : limit(type)),
})
const panel = { patients: new Set<string>(), organizations: ['org'], careTeams: [] }

const CALLERS: Readonly<Record<string, Access>> = {
  'a patient': patientAccess('ann'),
  'a patient, by category': within(type =>
    type === 'Observation' ? [{ patient: 'ann', query: [VITAL_SIGNS] }] : [],
  ),
  'everybody, by category': within(type => {
    if (type === 'Observation') return [{ query: [VITAL_SIGNS] }]
    return type === 'Immunization' ? [{ query: [['status', 'not-done']] }] : []
  }),
  'a panel': within(() => [{ panel }]),
  'some types': within(() => []),
}

const REQUESTS: readonly string[] = [
  'Observation?_count=5',
  'Observation?_count=5&_total=accurate',
  'Observation?_count=4&_sort=-date',
  'Observation?_count=4&_sort=date,-_id',
  'Observation?_summary=count',
  'Observation?code=8480-6&_count=3',
  'Observation?performer=Practitioner/dr&_count=3',
  'Observation?performer.family=Who&_count=3',
  'Observation?patient=bob0',
  'Condition?patient=bob0,ann&_count=4',
  'Immunization?_total=accurate',
  'Patient?_count=1',
  'Patient?_revinclude=Observation:patient&_count=5',
  'Practitioner?_id=dr&_revinclude=Observation:performer',
  'Practitioner?_revinclude=Observation:performer&_revinclude=Condition:asserter',
  'Practitioner?_has:Observation:performer:code=8480-6&_count=1',
  'Observation?_include=Observation:performer&_include=Observation:patient&_count=20',
  '?_lastUpdated=ge2000&_count=2',
  '?_type=Observation,Practitioner,Immunization&_lastUpdated=ge2000&_count=2',
  '?_type=Practitioner,Immunization&_lastUpdated=ge2000&_count=1',
  'Patient/ann/Observation?_count=3',
  'Patient/ann/*?_count=3',
  'Patient/ann/$everything?_count=6',
  'Patient/ann/_history',
  'Observation/_history?_count=4',
  'Immunization/_history?_count=4',
  '_history?_count=4',
  '_history?_count=4&_since=2000-01-01T00:00:00Z',
  'Observation/h1',
  'Observation/h1/_history',
  'Observation/mixed',
  'Immunization/i',
]

/**
 * A response is a function of what the caller may see: its total, order, links, headers and length do not depend on other
 * resources.
 */
export function testHidden(start: StartFhir): void {
  let alone: Fhir
  let among: Fhir
  before(async () => {
    const guard = createAuthenticator({ all: fullAccess, ...CALLERS })
    alone = await start({ guard })
    among = await start({ guard })
    await load(alone, VISIBLE)
    // Before the visible ones, between them and after them.
    await load(among, HIDDEN.slice(0, 1_000))
    await load(among, VISIBLE.slice(0, 12))
    await load(among, HIDDEN.slice(1_000))
    await load(among, VISIBLE.slice(12))
    await load(among, HIDDEN.slice(900, 1_000))
    await among.as('all')('DELETE Observation/h3')
  })
  after(() => Promise.all([alone.close(), among.close()]))

  for (const caller of Object.keys(CALLERS))
    it(`do not change a response to ${caller} (ABSENT-7)`, async () => {
      for (const request of REQUESTS)
        assert.deepEqual(
          await readPages(among.as(caller), request),
          await readPages(alone.as(caller), request),
          request,
        )
    })
}

async function load(fhir: Fhir, resources: readonly Resource[]): Promise<void> {
  for (let at = 0; at < resources.length; at += 100) {
    const entry = resources.slice(at, at + 100).map(resource => ({
      resource,
      request: { method: 'PUT', url: `${resource.resourceType}/${resource.id}` },
    }))
    const reply = await fhir.as('all')('POST ', { resourceType: 'Bundle', type: 'batch', entry })
    for (const it of reply.body.entry ?? [])
      assert.match(it.response?.status ?? '', /^20[01]/, JSON.stringify(it.response))
  }
}

const MOST_PAGES = 20

async function readPages(fhir: Fhir, request: string): Promise<readonly unknown[]> {
  const pages: unknown[] = []
  for (let url: string | undefined = request; url !== undefined && pages.length < MOST_PAGES; ) {
    const reply: Reply = await fhir(`GET ${url}`)
    pages.push(describeReply(reply))
    url = readNextLink(reply)?.slice(BASE.length + 1)
  }
  return pages
}

/** Everything that a client receives, without times and, instead of encrypted links, with their lengths. */
function describeReply({ status, headers, text }: Reply): unknown {
  const { date: _date, 'x-request-id': _id, 'last-modified': _modified, ...same } = headers
  const body = text
    .replace(/(page=)([\w.-]+)/g, (_, name, sealed) => `${name}${sealed.length}`)
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, 'time')
  return {
    status,
    headers: same,
    body: body.startsWith('{') ? JSON.parse(body) : body,
  }
}
