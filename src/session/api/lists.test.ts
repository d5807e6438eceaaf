import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { bundle, startScriptedEhr } from '../../../test/support/scripted-ehr.ts'
import { condition, medication, readIds, useSessionApi } from '../../../test/support/session-api.ts'

describe('GET /api/conditions', () => {
  const api = useSessionApi()

  it("searches for the patient's active conditions, sorted (API-5)", async () => {
    await api.browser.get('/api/conditions')
    const { pathname, searchParams } = api.lastSearch()
    assert.equal(pathname, '/fhir/Condition')
    assert.equal(searchParams.get('patient'), 'juniper')
    assert.equal(searchParams.get('clinical-status'), 'active')
    assert.equal(searchParams.get('_sort'), '-recorded-date')
  })

  it('returns them newest first, undated last, with a total (API-5)', async () => {
    const body = (await api.browser.get('/api/conditions')).json()
    assert.deepEqual(readIds(body), ['newest', 'older', 'undated'])
    assert.equal(body.resourceType, 'Bundle')
    assert.equal(body.total, 3)
  })

  it('returns another status on request', async () => {
    assert.deepEqual(readIds((await api.browser.get('/api/conditions?status=resolved')).json()), ['healed'])
  })

  it('returns the newest _count and the total of all', async () => {
    const body = (await api.browser.get('/api/conditions?_count=2')).json()
    assert.deepEqual(readIds(body), ['newest', 'older'])
    assert.equal(body.total, 3)
  })

  it('returns 50 by default (API-5)', async () => {
    api.ehr.records.push(...Array.from({ length: 60 }, (_, at) => condition(`c${at}`, '2020-01-01')))
    const body = (await api.browser.get('/api/conditions')).json()
    assert.equal(body.entry.length, 50)
    assert.equal(body.total, 63)
  })

  it('returns an empty Bundle if there are none (API-9)', async () => {
    const body = (await api.browser.get('/api/conditions?status=relapse')).json()
    assert.deepEqual(body, { resourceType: 'Bundle', type: 'searchset', total: 0, entry: [] })
  })

  for (const query of [
    'status=',
    'status=Active',
    'status=activ',
    'status=active,resolved',
    'status=active%26patient=fennel',
    'status=active&status=resolved',
    '_count=',
    '_count=0',
    '_count=1001',
    '_count=-1',
    '_count=1.5',
    '_count=1e2',
    '_count=0x10',
    '_count=%201',
    '_count=ten',
    '_count=5&_count=6',
    'constructor=1',
    '__proto__=1',
    '_sort=recorded-date',
  ]) {
    it(`refuses ${query} (API-5)`, async () => {
      const before = api.ehr.seen.length
      const response = await api.browser.get(`/api/conditions?${query}`)
      assert.equal(response.statusCode, 400)
      assert.equal(response.json().issue[0].code, 'invalid')
      assert.equal(api.ehr.seen.length, before)
    })
  }

  it('omits resources of another patient, of no patient, or that do not match (API-12)', async () => {
    api.ehr.script.fhir = () =>
      bundle([
        condition('mine'),
        {
          ...condition('absolute'),
          subject: { reference: `${api.ehr.fhirBaseUrl}/Patient/juniper/_history/2` },
        },
        { ...condition('other'), subject: { reference: 'Patient/fennel' } },
        { ...condition('prefix'), subject: { reference: 'Patient/juniper2' } },
        { ...condition('group'), subject: { reference: 'Group/juniper' } },
        { ...condition('nobody'), subject: { identifier: { value: 'juniper' } } },
        { ...condition('none'), subject: undefined },
        medication('m9'),
      ])
    const body = (await api.browser.get('/api/conditions')).json()
    assert.deepEqual(readIds(body), ['mine', 'absolute'])
    assert.equal(body.total, 2)
  })

  it('omits includes and outcomes', async () => {
    api.ehr.script.fhir = () => ({
      resourceType: 'Bundle',
      entry: [
        { resource: condition('match'), search: { mode: 'match' } },
        { resource: condition('included'), search: { mode: 'include' } },
        { resource: { resourceType: 'OperationOutcome' }, search: { mode: 'outcome' } },
      ],
    })
    assert.deepEqual(readIds((await api.browser.get('/api/conditions')).json()), ['match'])
  })
})

describe('GET /api/medications', () => {
  const api = useSessionApi()

  it('returns active ones, newest first (API-6)', async () => {
    const body = (await api.browser.get('/api/medications')).json()
    assert.deepEqual(readIds(body), ['m3', 'm1'])
    assert.equal(body.total, 2)
    assert.equal(api.lastSearch().searchParams.get('status'), 'active')
  })

  describe('of a medicine that is a reference', () => {
    const SCOPE = 'launch patient/MedicationRequest.rs'
    const referring = (id: string, reference: string, more = {}) => ({
      ...medication(id),
      medicationReference: { reference },
      ...more,
    })
    const levothyroxine = {
      resourceType: 'Medication',
      id: 'levo',
      code: { coding: [{ display: 'Levothyroxine 75 mcg' }] },
    }
    const displaysOf = async (scope: string) => {
      const { entry } = (await (await api.withScope(scope)).get('/api/medications')).json()
      return entry.map(
        ({ resource }: { resource: { medicationReference?: { display?: string } } }) =>
          resource.medicationReference?.display,
      )
    }

    it('adds the name of the Medication, by one search for all (API-6)', async () => {
      api.ehr.records.length = 0
      api.ehr.records.push(
        referring('m1', 'Medication/levo'),
        referring('m2', `${api.ehr.fhirBaseUrl}/Medication/levo`),
        referring('m3', 'Medication/absent'),
        levothyroxine,
      )
      const name = 'Levothyroxine 75 mcg'
      assert.deepEqual(await displaysOf(`${SCOPE} patient/Medication.rs`), [name, name, undefined])
      const asked = api.ehr.seen.filter(it => it.path.includes('/Medication?'))
      assert.deepEqual(
        asked.map(it => new URL(it.path, api.ehr.issuer).searchParams.get('_id')),
        ['levo,absent'],
      )
    })

    it('takes the name from a contained Medication, and asks for none that the session may not read (API-6)', async () => {
      api.ehr.records.length = 0
      const contained = [{ ...levothyroxine, id: 'c' }]
      api.ehr.records.push(
        referring('m1', '#c', { contained }),
        referring('m2', 'Medication/levo'),
        levothyroxine,
      )
      assert.deepEqual(await displaysOf(SCOPE), ['Levothyroxine 75 mcg', undefined])
      assert.ok(api.ehr.seen.every(it => !it.path.includes('/Medication?')))
    })

    it('returns the list if the Medications cannot be read', async () => {
      api.ehr.script.fhir = (url, reply) =>
        url.pathname.endsWith('/Medication')
          ? reply.code(500).send({})
          : bundle([referring('m1', 'Medication/levo')])
      assert.deepEqual(await displaysOf(`${SCOPE} patient/*.rs`), [undefined])
    })
  })

  function paged(pages: number, size: number) {
    api.ehr.script.fhir = (url: URL) => {
      const page = Number(url.searchParams.get('page') ?? 0)
      const resources = Array.from({ length: size }, (_, at) => medication(`m${page}-${at}`))
      const next = { relation: 'next', url: `${api.ehr.fhirBaseUrl}/MedicationRequest?page=${page + 1}` }
      return bundle(resources, { total: pages * size, ...(page + 1 < pages ? { link: [next] } : {}) })
    }
  }

  it('reads all pages (API-6)', async () => {
    paged(5, 30)
    const body = (await api.browser.get('/api/medications')).json()
    assert.equal(body.entry.length, 150)
    assert.equal(new Set(readIds(body)).size, 150)
    assert.equal(body.total, 150)
  })

  it('stops at 1000 and returns the total (API-6)', async () => {
    paged(12, 100)
    const body = (await api.browser.get('/api/medications')).json()
    assert.equal(body.entry.length, 1000)
    assert.equal(body.total, 1200)
  })

  it('stops at the page limit', async () => {
    let page = 0
    api.ehr.script.fhir = () => {
      page += 1
      return bundle([], {
        link: [{ relation: 'next', url: `${api.ehr.fhirBaseUrl}/MedicationRequest?page=${page}` }],
      })
    }
    assert.equal((await api.browser.get('/api/medications')).statusCode, 502)
    assert.ok(page <= 200)
  })

  it('stops if pages link in a circle', async () => {
    let pages = 0
    api.ehr.script.fhir = () => {
      pages += 1
      return bundle([], {
        link: [{ relation: 'next', url: `${api.ehr.fhirBaseUrl}/MedicationRequest?again` }],
      })
    }
    assert.equal((await api.browser.get('/api/medications')).statusCode, 502)
    assert.equal(pages, 2)
  })

  it('returns no list if the server says that results are missing (API-12)', async () => {
    const issue = [{ severity: 'warning', code: 'incomplete' }]
    const outcome = { resource: { resourceType: 'OperationOutcome', issue }, search: { mode: 'outcome' } }
    api.ehr.script.fhir = () =>
      new Response(
        JSON.stringify({
          resourceType: 'Bundle',
          type: 'searchset',
          entry: [{ resource: medication('m1', '2020-01-01') }, outcome],
        }),
        { headers: { 'content-type': 'application/fhir+json' } },
      )
    const response = await api.browser.get('/api/medications')
    assert.equal(response.statusCode, 502)
  })

  it('does not follow a page to another host, and returns no partial list (API-12)', async () => {
    const other = await startScriptedEhr()
    try {
      api.ehr.script.fhir = () =>
        bundle([medication('m1')], {
          link: [{ relation: 'next', url: `${other.fhirBaseUrl}/MedicationRequest?page=2` }],
        })
      assert.equal((await api.browser.get('/api/medications')).statusCode, 502)
      assert.deepEqual(other.seen, [])
    } finally {
      await other.close()
    }
  })

  it('does not follow a redirect with the token', async () => {
    const other = await startScriptedEhr()
    try {
      api.ehr.script.fhir = (_url, reply) => reply.redirect(`${other.fhirBaseUrl}/MedicationRequest`)
      assert.equal((await api.browser.get('/api/medications')).statusCode, 502)
      assert.deepEqual(other.seen, [])
    } finally {
      await other.close()
    }
  })
})

describe('GET /api/vitals', () => {
  const api = useSessionApi()

  it('searches for the newest vital signs and returns them newest first (API-8)', async () => {
    const body = (await api.browser.get('/api/vitals')).json()
    assert.deepEqual(readIds(body), ['v2', 'v1'])
    const { searchParams } = api.lastSearch()
    assert.deepEqual(Object.fromEntries(searchParams), {
      patient: 'juniper',
      category: 'vital-signs',
      _sort: '-date',
      _count: '50',
    })
  })

  it('describes the expected code', async () => {
    assert.equal(
      (await api.browser.get('/api/vitals?code=*')).json().issue[0].details.text,
      'Cannot use parameter code: expected a LOINC code, such as 85354-9 for blood pressure',
    )
  })

  it('searches for one LOINC code on request (API-8)', async () => {
    await api.browser.get('/api/vitals?code=85354-9&_count=5')
    assert.equal(api.lastSearch().searchParams.get('code'), 'http://loinc.org|85354-9')
    assert.equal(api.lastSearch().searchParams.get('_count'), '5')
  })

  for (const query of [
    'code=',
    'code=85354',
    'code=a|b',
    'code=85354-9,8480-6',
    'code=85354-9%26x=1',
    '_count=0',
  ])
    it(`refuses ${query} (API-5)`, async () => {
      assert.equal((await api.browser.get(`/api/vitals?${query}`)).statusCode, 400)
    })

  it('returns decimals with every digit, and rejects a string in place of one (FHIR-5)', async () => {
    const weight = { resourceType: 'Observation', id: 'w', subject: { reference: 'Patient/juniper' } }
    const text = JSON.stringify(bundle([{ ...weight, valueQuantity: { value: 1 } }], { total: 1 }))
    const answer = (value: string) => {
      api.ehr.script.fhir = (_url, reply) =>
        reply.type('application/fhir+json').send(text.replace('"value":1', `"value":${value}`))
      return api.browser.get('/api/vitals')
    }
    for (const digits of ['7.00', '12345678901234567.89', '1e-400', '0.10', '1.0e3', '-0.0']) {
      const { body, statusCode } = await answer(digits)
      assert.equal(statusCode, 200)
      assert.ok(body.includes(`"valueQuantity":{"value":${digits}}`), body)
    }
    assert.equal((await answer('"7.00"')).statusCode, 502)
  })

  it('returns at most _count, even if the server returns more', async () => {
    const body = (await api.browser.get('/api/vitals?_count=1')).json()
    assert.equal(body.entry.length, 1)
  })
})
