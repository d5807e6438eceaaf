import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import {
  BASE,
  condition,
  type Fhir,
  idsOf,
  issueOf,
  nextOf,
  observation,
  patient,
  type Reply,
  startFhir,
} from '../testing/fhir.ts'

const CLINICAL = 'http://terminology.hl7.org/CodeSystem/condition-clinical'
const status = (code: string) => ({ clinicalStatus: { coding: [{ system: CLINICAL, code }] } })
const quantity = (value: number, unit = 'mm[Hg]') => ({
  valueQuantity: { value, unit, system: 'http://unitsofmeasure.org', code: unit },
})

let fhir: Fhir
before(async () => {
  fhir = await startFhir()
  for (const resource of [
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
  ]) {
    const made = await fhir(`PUT ${resource.resourceType}/${resource.id}`, resource)
    assert.equal(made.status, 201, made.text)
  }
})
after(() => fhir.close())

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

describe('search', () => {
  for (const [url, found] of Object.entries(FINDS))
    it(`finds ${found || 'nothing'} by ${url}`, async () => {
      const reply = await fhir(`GET ${url}`)
      assert.equal(reply.status, 200, reply.text)
      assert.deepEqual(idsOf(reply).toSorted(), found.split(' ').filter(Boolean))
      assert.equal(reply.body.total, idsOf(reply).length)
    })

  it('combines the parameters of the address and of the form', async () => {
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    const reply = await fhir('POST Condition/_search?patient=ann', 'clinical-status=active', form)
    assert.deepEqual(idsOf(reply), ['c1', 'c3'])
    assert.equal((await fhir('POST Condition/_search', '{}')).status, 415)
  })

  it('gives each match its address and mode, and tells what was understood', async () => {
    const { body } = await fhir('GET Patient?_id=bob&nothing=1', undefined, { prefer: 'handling=lenient' })
    assert.deepEqual(body.link, [{ relation: 'self', url: `${BASE}/Patient?_id=bob` }])
    assert.equal(body.entry?.[0]?.fullUrl, `${BASE}/Patient/bob`)
    assert.deepEqual(body.entry?.[0]?.search, { mode: 'match' })
  })

  it('tells which types were chosen, where there is a choice', async () => {
    const lenient = { prefer: 'handling=lenient' }
    for (const [asked, told] of Object.entries({
      '?_type=Patient,ValueSet&_count=2': '?_type=Patient,ValueSet&_count=2',
      '?_type=Patient&_type=ValueSet&_summary=count': '?_type=Patient&_type=ValueSet&_summary=count',
      'Patient/ann/*?_type=Observation': 'Patient/ann/*?_type=Observation',
      'Patient?_type=ValueSet': 'Patient',
    })) {
      const { body } = await fhir(`GET ${asked}`, undefined, lenient)
      const self = body.link?.find(({ relation }) => relation === 'self')?.url ?? ''
      assert.equal(decodeURIComponent(self), told.startsWith('?') ? BASE + told : `${BASE}/${told}`)
    }
  })

  it('refuses what it does not understand', async () => {
    for (const [query, said] of Object.entries({
      'Patient?nothing=1': '400 not-supported: Unknown search parameter nothing of Patient',
      'Patient?name:sounds=1':
        '400 not-supported: Cannot use modifier :sounds with name: it is not supported for string',
      'Patient?birthdate=yesterday': '400 invalid: Cannot read the value of birthdate: expected a date value',
      'Patient?_sort=nothing': '400 invalid: Cannot sort Patient by nothing: it is not a search parameter',
      'Patient?_count=-1': '400 invalid: Cannot read _count: expected a number from 0 to 1000',
      'Patient?_include=Patient:name': '400 invalid: Cannot include by Patient:name: it is not a reference',
      'Patient?_total=maybe': '400 invalid: Cannot read _total: expected none, estimate, accurate',
      'Patient?_type=Patient': '400 not-supported: Unknown search parameter _type of Patient',
      '?_type=Nothing': '400 invalid: Cannot read _type: expected resource types of R4',
    }))
      assert.equal(issueOf(await fhir(`GET ${query}`)), said)
    assert.equal(
      (await fhir('GET Patient?name:sounds=1', undefined, { prefer: 'handling=lenient' })).status,
      400,
    )
  })

  it('treats whatever is sent as a value', async () => {
    for (const text of [
      `' OR 1=1 --`,
      '%',
      '_',
      '"',
      ';DROP TABLE resource',
      '\\',
      '<script>',
      '&',
      '\u{10ffff}',
    ])
      assert.equal((await fhir(`GET Patient?name:contains=${encodeURIComponent(text)}`)).body.total, 0, text)
  })
})

describe('a long value', () => {
  it('is found as it is, and by no other', async () => {
    const own = await startFhir()
    const [system, code, other] = [`urn:${'s'.repeat(5_000)}`, 'c'.repeat(5_000), `${'c'.repeat(4_999)}d`]
    const coded = (id: string, value: string) =>
      observation(id, 'p', { code: { coding: [{ system, code: value }] } })
    await own('PUT Observation/a', coded('a', code))
    await own('PUT Observation/b', coded('b', other))
    const found = async (query: string) => idsOf(await own(`GET Observation?${query}`)).join()
    assert.equal(await found(`code=${code}`), 'a')
    assert.equal(await found(`code=${system}|${other}`), 'b')
    assert.equal(await found(`code=${code},${other}`), 'a,b')
    assert.equal(await found(`code:not=${code}`), 'b')
    assert.equal(await found(`code=${system}|`), 'a,b')
    assert.equal(await found(`code=${code}d`), '')
    assert.equal(await found(`code=${code.slice(0, 400)}`), '')
    await own.close()
  })

  it('is refused where only its beginning could be compared', async () => {
    const most: Readonly<Record<string, number>> = {
      'Patient?name': 1_000,
      'Patient?name:contains': 1_000,
      'Condition?code:text': 1_000,
      'Condition?subject:Patient.name': 1_000,
      'Patient?_has:Observation:patient:value-string': 1_000,
      'ValueSet?url:below': 300,
      'ValueSet?url:above': 300,
    }
    for (const [search, limit] of Object.entries(most)) {
      assert.equal((await fhir(`GET ${search}=${'x'.repeat(limit)}`)).status, 200, search)
      assert.match(
        issueOf(await fhir(`GET ${search}=a,${'x'.repeat(limit + 1)}`)),
        new RegExp(
          `^400 too-costly: Cannot search by the value of .*: it has more than ${limit} characters$`,
        ),
      )
    }
    for (const search of ['Patient?name:exact', 'ValueSet?url', 'Patient?identifier'])
      assert.equal((await fhir(`GET ${search}=${'x'.repeat(1_001)}`)).status, 200, search)
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
    it(`answers ${url} with ${order}, also page by page`, async () => {
      assert.equal(idsOf(await fhir(`GET ${url}`)).join(' '), order)
      const seen: unknown[] = []
      for (let next: string | undefined = `${BASE}/${url}&_count=1`; next; ) {
        const page = await fhir(`GET ${next}`)
        seen.push(...idsOf(page))
        next = nextOf(page)
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
    it(`brings ${brought || 'nothing'} with ${url}`, async () => {
      const reply = await fhir(`GET ${url}`)
      assert.deepEqual(idsOf(reply, 'include').toSorted(), brought.split(' ').filter(Boolean))
      assert.equal(reply.body.total, 1)
    })
})

describe('$everything', () => {
  const shownBy = (reply: Reply) => reply.body.entry?.map(it => it.resource?.id ?? '') ?? []

  it('shows each resource once, however small the pages are', async () => {
    const whole = shownBy(await fhir('GET Patient/ann/$everything'))
    for (const count of [1, 2, 3, 50]) {
      const ids: string[] = []
      let next: string | undefined = `Patient/ann/$everything?_count=${count}`
      while (next !== undefined) {
        const page: Reply = await fhir(`GET ${next}`)
        assert.equal(page.status, 200, page.text)
        assert.ok(idsOf(page).length <= count)
        ids.push(...shownBy(page))
        next = nextOf(page)
      }
      assert.deepEqual(ids.toSorted(), whole.toSorted())
    }
    const first = await fhir('GET Patient/ann/$everything?_count=2&_type=Condition,Practitioner')
    assert.match(nextOf(first) ?? '', /\/Patient\/ann\/\$everything\?_page=/)
    const second = await fhir(`GET ${nextOf(first)}&_count=2&_format=json`)
    assert.deepEqual([...shownBy(first), ...shownBy(second)].toSorted(), ['c1', 'c2', 'c3', 'dr'])
    assert.equal(
      (await fhir(`GET ${nextOf(first)?.replace('ann/$everything', 'bob/$everything')}`)).status,
      400,
    )
  })

  it('answers with the compartment and what it refers to', async () => {
    const reply = await fhir('GET Patient/ann/$everything')
    assert.deepEqual(idsOf(reply).toSorted(), ['ann', 'c1', 'c2', 'c3', 'o1', 'o2', 'r'])
    assert.deepEqual(idsOf(reply, 'include').toSorted(), ['dr', 'org'])
    assert.deepEqual(shownBy(await fhir('GET Patient/ann/$everything?_type=Observation')), ['o1', 'o2'])
    const named = await fhir('GET Patient/ann/$everything?_type=Observation,Practitioner')
    assert.deepEqual(shownBy(named).toSorted(), ['dr', 'o1', 'o2'])
    assert.equal((await fhir('GET Patient/none/$everything')).status, 404)
    assert.equal((await fhir('GET Patient/ann/$everything?begin=2020')).status, 400)
    assert.equal((await fhir('GET Patient/$everything')).status, 404)
  })
})
