import assert from 'node:assert/strict'
import { after, before, describe } from 'node:test'
import {
  BASE,
  condition,
  createAuthenticator,
  type Fhir,
  NOT_WITHIN,
  observation,
  patient,
  type Reply,
  readIds,
  readIssue,
  readNextLink,
} from '../../backends/sqlite/testing/fhir.ts'
import { fullAccess } from '../../smart/index.ts'
import { type Capability, needs, type TestTarget } from './target.ts'
import { most } from './write-suite.ts'

const CLINICAL = 'http://terminology.hl7.org/CodeSystem/condition-clinical'
const status = (code: string) => ({ clinicalStatus: { coding: [{ system: CLINICAL, code }] } })
const quantity = (value: number, unit = 'mm[Hg]') => ({
  valueQuantity: { value, unit, system: 'http://unitsofmeasure.org', code: unit },
})

export const SEARCH_DATA = [
  { resourceType: 'Practitioner', id: 'dr', name: [{ family: 'Who' }] },
  { resourceType: 'Organization', id: 'org', name: 'Clinic' },
  patient('ann', {
    name: [{ family: 'Müller', given: ['Ann', 'Sue'] }],
    birthDate: '1980-05-01',
    gender: 'female',
    identifier: [{ system: 'urn:mrn', value: '1' }, { value: 'bare' }],
    generalPractitioner: [{ reference: 'Practitioner/dr' }],
    managingOrganization: { reference: 'Organization/org' },
  }),
  patient('bob', { name: [{ family: 'Miller', given: ['Bob'] }], birthDate: '1990', gender: 'male' }),
  patient('cy', {
    name: [{ family: 'Zed' }],
    link: [{ other: { reference: 'Patient/ann' }, type: 'seealso' }],
  }),
  condition('c1', 'ann', { ...status('active'), recordedDate: '2020-03-01' }),
  condition('c2', 'ann', { ...status('resolved'), recordedDate: '2021-03-01' }),
  condition('c3', 'ann', { ...status('active') }),
  condition('c4', 'bob', { ...status('active'), recordedDate: '2019' }),
  observation('o1', 'ann', {
    ...quantity(120),
    effectiveDateTime: '2024-01-10T08:00:00Z',
    performer: [{ reference: 'Practitioner/dr' }],
  }),
  observation('o2', 'ann', {
    ...quantity(140),
    effectivePeriod: { start: '2024-02-01', end: '2024-02-03' },
  }),
  observation('o3', 'bob', { ...quantity(5.4, 'mmol/L'), effectiveDateTime: '2024-03' }),
  { resourceType: 'ValueSet', id: 'v', status: 'active', url: 'http://x.test/vs/a' },
  {
    resourceType: 'RiskAssessment',
    id: 'r',
    status: 'final',
    subject: { reference: 'Patient/ann' },
    prediction: [{ probabilityDecimal: 0.25 }],
  },
]

const usCore = 'http://hl7.org/fhir/us/core/StructureDefinition'
const CDC = 'urn:oid:2.16.840.1.113883.6.238'
const SNOMED = 'http://snomed.info/sct'
const coded = (code: string) => ({ coding: [{ system: SNOMED, code }] })
const raceOf = (code: string) => ({
  url: `${usCore}/us-core-race`,
  extension: [
    { url: 'ombCategory', valueCoding: { system: CDC, code } },
    { url: 'text', valueString: 'As reported' },
  ],
})

const US_CORE_DATA = [
  patient('dot', {
    extension: [
      raceOf('2028-9'),
      {
        url: `${usCore}/us-core-ethnicity`,
        extension: [{ url: 'ombCategory', valueCoding: { system: CDC, code: '2186-5' } }],
      },
      { url: `${usCore}/us-core-genderIdentity`, valueCodeableConcept: coded('446141000124107') },
    ],
  }),
  patient('eve', { extension: [raceOf('2106-3')] }),
  condition('c-dot', 'dot', {
    extension: [
      {
        url: 'http://hl7.org/fhir/StructureDefinition/condition-assertedDate',
        valueDateTime: '2024-05-06',
      },
    ],
  }),
  condition('c-eve', 'eve'),
  {
    resourceType: 'Encounter',
    id: 'e-dot',
    status: 'finished',
    class: { code: 'IMP' },
    subject: { reference: 'Patient/dot' },
    hospitalization: { dischargeDisposition: coded('home') },
  },
  {
    resourceType: 'CareTeam',
    id: 't-dot',
    status: 'active',
    subject: { reference: 'Patient/dot' },
    participant: [{ role: [coded('17561000')], member: { reference: 'Practitioner/dr' } }],
  },
  {
    resourceType: 'Goal',
    id: 'g-dot',
    lifecycleStatus: 'active',
    description: coded('135840009'),
    subject: { reference: 'Patient/dot' },
  },
]

const US_CORE_FINDS: Readonly<Record<string, string>> = {
  'Patient?race=2028-9': 'dot',
  [`Patient?race=${CDC}|2028-9,${CDC}|2106-3`]: 'dot eve',
  'Patient?race=urn:other|2028-9': '',
  'Patient?race=2186-5': '',
  'Patient?race:not=2028-9&_id=dot,eve': 'eve',
  'Patient?race:missing=true&_id=dot,eve': '',
  [`Patient?ethnicity=${CDC}|2186-5`]: 'dot',
  [`Patient?gender-identity=${SNOMED}|446141000124107`]: 'dot',
  'Condition?asserted-date=2024-05-06': 'c-dot',
  'Condition?asserted-date=ge2024-05-01&asserted-date=lt2024-06-01': 'c-dot',
  'Condition?asserted-date=lt2024': '',
  'Condition?patient.race=2028-9': 'c-dot',
  'Patient?_has:Condition:patient:asserted-date=ge2024-05-01': 'dot',
  'Encounter?discharge-disposition=home': 'e-dot',
  [`CareTeam?role=${SNOMED}|17561000`]: 't-dot',
  'Goal?description=135840009&patient=Patient/dot': 'g-dot',
}

/** A search, and what it finds, in any order. */
const FINDS: Readonly<Record<string, string>> = {
  'Patient?name=mul': 'ann',
  'Patient?name=MULLER': 'ann',
  'Patient?name=ller': '',
  'Patient?name:contains=ller': 'ann bob',
  'Patient?family:exact=Müller': 'ann',
  'Patient?family:exact=muller': '',
  'Patient?given=sue': 'ann',
  'Patient?family=mul,mil': 'ann bob',
  'Patient?family=m&given=b': 'bob',
  'Patient?gender=female': 'ann',
  'Patient?gender:not=female': 'bob cy',
  'Patient?gender:missing=true': 'cy',
  'Patient?gender:missing=false': 'ann bob',
  'Patient?identifier=1': 'ann',
  'Patient?identifier=urn:mrn|1': 'ann',
  'Patient?identifier=urn:other|1': '',
  'Patient?identifier=urn:mrn|': 'ann',
  'Patient?identifier=|bare': 'ann',
  'Patient?identifier=|1': '',
  'Patient?birthdate=1980-05-01': 'ann',
  'Patient?birthdate=1980': 'ann',
  'Patient?birthdate=ge1980-05-01': 'ann bob',
  'Patient?birthdate=gt1980-05-01': 'bob',
  'Patient?birthdate=lt1985': 'ann',
  'Patient?birthdate=ne1980': 'bob',
  'Patient?birthdate=ge1980&birthdate=lt1990': 'ann',
  'Patient?_id=ann,cy,none': 'ann cy',
  'Patient?_id:not=ann': 'bob cy',
  'Patient?_lastUpdated=gt2020': 'ann bob cy',
  'Patient?_lastUpdated=lt2020': '',
  'Patient?link=Patient/ann': 'cy',
  'Patient?general-practitioner=dr': 'ann',
  'Patient?organization=Organization/org': 'ann',
  'Condition?patient=ann': 'c1 c2 c3',
  'Condition?subject=Patient/ann': 'c1 c2 c3',
  [`Condition?subject=${BASE}/Patient/ann`]: 'c1 c2 c3',
  'Condition?subject=http://other.test/fhir/Patient/ann': '',
  'Condition?subject:Patient=ann': 'c1 c2 c3',
  'Condition?subject=ann,bob': 'c1 c2 c3 c4',
  'Condition?patient=ann&clinical-status=active': 'c1 c3',
  [`Condition?clinical-status=${CLINICAL}|active`]: 'c1 c3 c4',
  'Condition?code:text=cou': 'c1 c2 c3 c4',
  'Condition?patient.name=mill': 'c4',
  'Condition?subject:Patient.birthdate=lt1985&clinical-status=active': 'c1 c3',
  'Condition?patient.organization.name=clin': 'c1 c2 c3',
  'Patient?_has:Condition:patient:clinical-status=resolved': 'ann',
  'Patient?_has:Condition:patient:recorded-date=lt2020': 'bob',
  'Practitioner?_has:Patient:general-practitioner:_has:Condition:patient:clinical-status=resolved': 'dr',
  'Observation?date=2024-01-10': 'o1',
  'Observation?date=ge2024-02-02': 'o2 o3',
  'Observation?date=sa2024-02-02': 'o3',
  'Observation?date=eb2024-02': 'o1',
  'Observation?date=ap2024-02-02': 'o2',
  'Observation?value-quantity=gt120': 'o2',
  'Observation?value-quantity=120': 'o1',
  'Observation?value-quantity=5.4|http://unitsofmeasure.org|mmol/L': 'o3',
  'Observation?value-quantity=lt130||mm[Hg]': 'o1',
  'Observation?code=http://loinc.org|8480-6&subject=ann': 'o1 o2',
  'Observation?code:text=systolic': 'o1 o2 o3',
  'RiskAssessment?probability=gt0.2': 'r',
  'RiskAssessment?probability=0.3': 'r',
  'RiskAssessment?probability=0.4': '',
  'ValueSet?url=http://x.test/vs/a': 'v',
  'ValueSet?url:below=http://x.test/vs': 'v',
  'ValueSet?url:above=http://x.test/vs/a/b': 'v',
  'ValueSet?url=http://x.test/vs': '',
  'Patient/ann/Condition': 'c1 c2 c3',
  'Patient/ann/Condition?clinical-status=active': 'c1 c3',
  'Patient/ann/Observation?value-quantity=gt130': 'o2',
  'Patient/ann/*': 'ann c1 c2 c3 o1 o2 r',
  'Patient/ann/*?_type=Observation,Patient': 'ann o1 o2',
  '?_type=Patient,ValueSet': 'ann bob cy v',
  '?_id=ann': 'ann',
}

const USES: readonly (readonly [Capability, RegExp])[] = [
  ['chains', /_has:|[?&][\w:-]+\.[\w.]+=/],
  ['modifiers', /[?&]\w[\w-]*:(?:not|missing|contains|exact|text|above|below)=|identifier=(?:\||[^|&]+\|$)/],
  [
    'dates',
    /[?&](?:birthdate|date|_lastUpdated|recorded-date)=(?:[a-z]{2}|\d{4}(?:$|&))|:(?:patient|birthdate):?\S*=lt/,
  ],
  ['partial-dates', /=(?:[gl]e\d{4}(?:-\d{2})?(?:&|$)|ap)/],
  ['quantities', /value-quantity|probability/],
  ['implicit-precision', /probability=\d/],
  ['search-all-types', /^\?/],
  ['whole-compartments', /\*/],
  ['strings', /[?&](?:name|family|given|address|url)=/],
  ['bare-references', /[?&](?:patient|subject|general-practitioner)(?::Patient)?=[a-z]+(?:,|&|$)/],
  ['compartments', /^Patient\/ann\/[A-Z]/],
  ['reference-lists', /subject=\w+,/],
]

function listUses(url: string): readonly Capability[] {
  return USES.flatMap(([capability, pattern]) => (pattern.test(url) ? [capability] : []))
}

/** Searches by every kind of parameter, sorted, with includes, and `$everything`. */
export function testSearches(target: TestTarget): void {
  const itSorts = needs(target, 'sort', 'paging')
  const itIncludes = needs(target, 'includes')
  const it = needs(target, 'everything')
  let fhir: Fhir
  let server: Fhir
  before(async () => {
    server = await target.start({ guard: createAuthenticator({ all: fullAccess, most }) })
    fhir = server.as('most')
    for (const it of SEARCH_DATA) assert.ok((await fhir(`PUT ${it.resourceType}/${it.id}`, it)).status < 300)
  })
  after(() => server.close())

  describe('search', () => {
    for (const [url, found] of Object.entries(FINDS))
      needs(target, ...listUses(url))(`finds ${found || 'nothing'} by ${url}`, async () => {
        for (const caller of ['most', 'all']) {
          const reply = await server.as(caller)(`GET ${url}`)
          assert.equal(reply.status, 200, reply.text)
          assert.deepEqual(readIds(reply).toSorted(), found.split(' ').filter(Boolean), caller)
          assert.equal(reply.body.total, readIds(reply).length)
        }
      })
  })

  describe('search by a parameter of US Core', () => {
    const itSearches = needs(target, 'us-core', 'modifiers', 'chains')
    const granular = {
      ...fullAccess,
      filterFor: (type: string) =>
        type === 'Patient' ? [{ query: [['race', '2028-9']] as const }] : ('everything' as const),
    }
    let usCoreServer: Fhir
    before(async () => {
      const guard = createAuthenticator({ all: fullAccess, most, granular })
      usCoreServer = await target.start({ guard })
      const all = usCoreServer.as('all')
      const [dr] = SEARCH_DATA
      for (const it of [dr, ...US_CORE_DATA])
        assert.ok((await all(`PUT ${it?.resourceType}/${it?.id}`, it)).status < 300)
    })
    after(() => usCoreServer.close())

    for (const [url, found] of Object.entries(US_CORE_FINDS))
      itSearches(`finds ${found || 'nothing'} by ${url}`, async () => {
        for (const caller of ['most', 'all']) {
          const reply = await usCoreServer.as(caller)(`GET ${url}`)
          assert.equal(reply.status, 200, reply.text)
          assert.deepEqual(readIds(reply).toSorted(), found.split(' ').filter(Boolean), caller)
        }
      })

    itSearches('finds only what a granular scope by it permits', async () => {
      const caller = usCoreServer.as('granular')
      assert.deepEqual(readIds(await caller('GET Patient')), ['dot'])
      assert.equal((await caller('GET Patient/dot')).status, 200)
      assert.equal(readIssue(await caller('GET Patient/eve')), NOT_WITHIN)
      assert.deepEqual(readIds(await caller('GET Condition?_include=Condition:patient'), 'include'), ['dot'])
    })
  })

  describe('_sort', () => {
    const SORTED: Readonly<Record<string, string>> = {
      'Condition?_sort=recorded-date': 'c4 c1 c2 c3',
      'Condition?_sort=-recorded-date': 'c2 c1 c4 c3',
      'Condition?_sort=clinical-status,-recorded-date': 'c1 c4 c3 c2',
      'Patient?_sort=family': 'bob ann cy',
      'Patient?_sort=-birthdate,family': 'bob ann cy',
      'Patient?_sort=-_id': 'cy bob ann',
      'Patient?_sort=_lastUpdated': 'ann bob cy',
      'Observation?_sort=-value-quantity': 'o2 o1 o3',
      'Observation?_sort=subject,date': 'o1 o2 o3',
    }
    for (const [url, order] of Object.entries(SORTED))
      itSorts(`answers ${url} with ${order}, also page by page`, async () => {
        assert.equal(readIds(await fhir(`GET ${url}`)).join(' '), order)
        const seen: unknown[] = []
        for (let next: string | undefined = `${BASE}/${url}&_count=1`; next; ) {
          const page = await fhir(`GET ${next}`)
          seen.push(...readIds(page))
          next = readNextLink(page)
        }
        assert.equal(seen.join(' '), order)
      })
  })

  describe('_include and _revinclude', () => {
    const INCLUDES: Readonly<Record<string, string>> = {
      'Condition?_id=c1&_include=Condition:patient': 'ann',
      'Condition?_id=c1&_include=Condition:subject:Patient': 'ann',
      'Condition?_id=c1&_include=Condition:subject:Group': '',
      'Condition?_id=c1&_include=Observation:subject': '',
      'Condition?_id=c1&_include=Condition:patient&_include:iterate=Patient:general-practitioner': 'ann dr',
      'Condition?_id=c1&_include=Condition:patient&_include=Patient:general-practitioner': 'ann',
      'Patient?_id=ann&_include=Patient:*': 'dr org',
      'Patient?_id=ann&_include=*': 'dr org',
      'Patient?_id=ann&_revinclude=*': 'c1 c2 c3 cy o1 o2 r',
      'Patient?_id=ann&_revinclude=Condition:patient': 'c1 c2 c3',
      'Patient?_id=ann&_revinclude=Condition:patient&_revinclude=Observation:subject': 'c1 c2 c3 o1 o2',
      'Practitioner?_id=dr&_revinclude=Patient:general-practitioner&_revinclude:iterate=Condition:patient':
        'ann c1 c2 c3',
    }
    for (const [url, brought] of Object.entries(INCLUDES))
      itIncludes(`brings ${brought || 'nothing'} with ${url}`, async () => {
        const reply = await fhir(`GET ${url}`)
        assert.deepEqual(readIds(reply, 'include').toSorted(), brought.split(' ').filter(Boolean))
        assert.equal(reply.body.total, 1)
      })
  })

  describe('$everything', () => {
    const shownBy = (reply: Reply) => reply.body.entry?.map(it => it.resource?.id ?? '') ?? []

    it('shows each resource once, however small the pages are (OPERATION-3)', async () => {
      const whole = shownBy(await fhir('GET Patient/ann/$everything'))
      for (const count of [1, 2, 3, 50]) {
        const ids: string[] = []
        let next: string | undefined = `Patient/ann/$everything?_count=${count}`
        while (next !== undefined) {
          const page: Reply = await fhir(`GET ${next}`)
          assert.equal(page.status, 200, page.text)
          assert.ok(readIds(page).length <= count)
          ids.push(...shownBy(page))
          next = readNextLink(page)
        }
        assert.deepEqual(ids.toSorted(), whole.toSorted())
      }
      const first = await fhir('GET Patient/ann/$everything?_count=2&_type=Condition,Practitioner')
      assert.match(readNextLink(first) ?? '', /\/Patient\/ann\/\$everything\?_(?:gateway-)?page=/)
      const second = await fhir(`GET ${readNextLink(first)}&_count=2&_format=json`)
      assert.deepEqual([...shownBy(first), ...shownBy(second)].toSorted(), ['c1', 'c2', 'c3', 'dr'])
      assert.equal(
        (await fhir(`GET ${readNextLink(first)?.replace('ann/$everything', 'bob/$everything')}`)).status,
        400,
      )
    })

    it('answers with the compartment and what it refers to', async () => {
      const reply = await fhir('GET Patient/ann/$everything')
      assert.deepEqual(readIds(reply).toSorted(), ['ann', 'c1', 'c2', 'c3', 'o1', 'o2', 'r'])
      // R4 has the patients who link to this one in the compartment, and some servers return them.
      const others = readIds(reply, 'include').filter(id => id !== 'cy')
      assert.deepEqual(others.toSorted(), ['dr', 'org'])
      assert.deepEqual(shownBy(await fhir('GET Patient/ann/$everything?_type=Observation')), ['o1', 'o2'])
      const named = await fhir('GET Patient/ann/$everything?_type=Observation,Practitioner')
      assert.deepEqual(shownBy(named).toSorted(), ['dr', 'o1', 'o2'])
      assert.equal((await fhir('GET Patient/none/$everything')).status, 404)
      assert.equal((await fhir('GET Patient/ann/$everything?begin=2020')).status, 400)
      assert.equal((await fhir('GET Patient/$everything')).status, 404)
    })
  })
}
