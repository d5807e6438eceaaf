import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { SEARCH_DATA } from '../../../fhir-api/testing/find-suite.ts'
import {
  BASE,
  createAuthenticator,
  type Fhir,
  observation,
  readIds,
  readIssue,
  readNextLink,
  startFhir,
} from '../testing/fhir.ts'

let fhir: Fhir
before(async () => {
  fhir = await startFhir()
  for (const resource of SEARCH_DATA) {
    const made = await fhir(`PUT ${resource.resourceType}/${resource.id}`, resource)
    assert.equal(made.status, 201, made.text)
  }
})
after(() => fhir.close())

describe('search', () => {
  it('combines the parameters of the URL and the form', async () => {
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    const reply = await fhir('POST Condition/_search?patient=ann', 'clinical-status=active', form)
    assert.deepEqual(readIds(reply), ['c1', 'c3'])
    assert.equal((await fhir('POST Condition/_search', '{}')).status, 415)
  })

  it('returns the URL and mode of each match, and a self link with the supported parameters', async () => {
    const { body } = await fhir('GET Patient?_id=bob&nothing=1', undefined, { prefer: 'handling=lenient' })
    assert.deepEqual(body.link, [{ relation: 'self', url: `${BASE}/Patient?_id=bob` }])
    assert.equal(body.entry?.[0]?.fullUrl, `${BASE}/Patient/bob`)
    assert.deepEqual(body.entry?.[0]?.search, { mode: 'match' })
  })

  it('includes _type in the self link if the search may select types', async () => {
    const lenient = { prefer: 'handling=lenient' }
    for (const [url, expected] of Object.entries({
      '?_type=Patient,ValueSet&_count=2': '?_type=Patient,ValueSet&_count=2',
      '?_type=Patient&_type=ValueSet&_summary=count': '?_type=Patient&_type=ValueSet&_summary=count',
      'Patient/ann/*?_type=Observation': 'Patient/ann/*?_type=Observation',
      'Patient?_type=ValueSet': 'Patient',
    })) {
      const { body } = await fhir(`GET ${url}`, undefined, lenient)
      const self = body.link?.find(({ relation }) => relation === 'self')?.url ?? ''
      assert.equal(
        decodeURIComponent(self),
        expected.startsWith('?') ? BASE + expected : `${BASE}/${expected}`,
      )
    }
  })

  it('finds a word of any name in the order of the family names, each patient once', async () => {
    const other = await startFhir()
    const names: Readonly<Record<string, readonly Readonly<Record<string, unknown>>[]>> = {
      a: [{ family: 'Lind' }, { family: 'Adams' }],
      b: [{ family: 'Lindberg', given: ['Linda'] }],
      c: [{ family: 'Lind' }, { family: 'Zorn' }],
      d: [{ family: 'Young', given: ['Linus'] }],
      e: [{ text: 'Lind, Eva' }],
      f: [{ family: 'Linz', text: 'Dr. Linz' }],
      g: [{ family: 'van Lind' }],
      h: [{ family: 'Berg', given: ['Eva Lind'] }],
      i: [{ family: 'Lío' }],
      j: [{ family: 'Lin Dao' }],
    }
    for (const [id, name] of Object.entries(names))
      await other(`PUT Patient/${id}`, { resourceType: 'Patient', id, name })
    const readPages = async (query: string) => {
      const pages: string[] = []
      for (let next: string | undefined = `Patient?${query}`; next; ) {
        const reply = await other(`GET ${next}`)
        assert.equal(reply.status, 200, reply.text)
        pages.push(readIds(reply).join(''))
        next = readNextLink(reply)
      }
      return pages
    }
    assert.deepEqual(await readPages('name=lin&_sort=family'), ['ajcbfde'])
    assert.deepEqual(await readPages('name=lin&_sort=family&_count=2'), ['aj', 'cb', 'fd', 'e'])
    assert.deepEqual(await readPages('name=lin&_sort=family,given&_count=3'), ['ajc', 'bfd', 'e'])
    assert.deepEqual(await readPages('name=lin&_sort=-family&_count=3'), ['cdf', 'baj', 'e'])
    assert.deepEqual(await readPages('name=lind&_sort=family'), ['acbe'])
    assert.deepEqual(await readPages('name=lin%20d&_sort=family'), ['j'])
    assert.deepEqual(await readPages('name=linda&_sort=family'), ['b'])
    assert.deepEqual(await readPages('name=lin&name=young&_sort=family'), ['d'])
    assert.deepEqual(await readPages('name=l%C3%ADo&_sort=family'), ['i'])
    await other('PUT Patient/b', { resourceType: 'Patient', id: 'b', name: [{ family: 'Berg' }] })
    await other('DELETE Patient/c')
    assert.deepEqual(await readPages('name=lin&_sort=family'), ['ajfde'])
    await other.close()
  })

  it('finds identifiers by a part of their values, without regard to case', async () => {
    await fhir('PUT Patient/numbered', {
      resourceType: 'Patient',
      id: 'numbered',
      identifier: [{ system: 'urn:mrn', value: 'SYN-77004127' }],
    })
    for (const part of ['7700412', 'syn-77', '4127', 'other,004127'])
      assert.deepEqual(readIds(await fhir(`GET Patient?identifier:contains=${part}`)), ['numbered'], part)
    assert.deepEqual(readIds(await fhir('GET Patient?identifier:contains=78')), [])
    const refused = await fhir('GET Condition?code:contains=1')
    assert.equal(refused.status, 400)
    await fhir('DELETE Patient/numbered')
  })

  it('refuses unknown parameters and invalid values (FHIR-4)', async () => {
    for (const [query, issue] of Object.entries({
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
      assert.equal(readIssue(await fhir(`GET ${query}`)), issue)
    assert.equal(
      (await fhir('GET Patient?name:sounds=1', undefined, { prefer: 'handling=lenient' })).status,
      400,
    )
  })

  it('treats special characters as part of the value', async () => {
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

/** Searches of every kind of parameter, modifier and value. */
const MANY: Readonly<Record<string, (at: number) => string>> = {
  'Observation?code': at => `c${at}`,
  'Observation?code=': at => `http://s|c${at}`,
  'Observation?code==': at => `http://s${at}|`,
  'Observation?code:not': at => `c${at}`,
  'Observation?code:text': at => `t${at}`,
  'Patient?identifier:contains': at => `i${at}`,
  'Patient?name': at => `n${at}`,
  'Patient?name:exact': at => `n${at}`,
  'Patient?name:contains': at => `n${at}`,
  'Observation?subject': at => `Patient/p${at}`,
  'Observation?subject=': at => `http://other/Patient/p${at}`,
  'Observation?subject:identifier': at => `http://s|i${at}`,
  'Observation?date': at => `ge${2000 + (at % 99)}`,
  'Observation?date=': at => `ne${2000 + (at % 99)}`,
  'Observation?value-quantity': at => `${at}|http://u|mg`,
  'RiskAssessment?probability': at => `ge${at}`,
  'ValueSet?url': at => `http://v/${at}`,
  'ValueSet?url:below': at => `http://v/${at}`,
  'ValueSet?url:above': at => `http://v/${at}`,
  'Patient?_id': at => `p${at}`,
  'Observation?subject:Patient.name': at => `n${at}`,
  'Patient?_has:Observation:patient:code': at => `c${at}`,
}

describe('many values', () => {
  const list = (value: (at: number) => string, count: number) =>
    Array.from({ length: count }, (_, at) => value(at)).join()

  it('are searched for up to a limit that the refusal names', async () => {
    for (const [search, value] of Object.entries(MANY)) {
      const [type = '', parameter = ''] = search.replace(/=+$/, '').split('?')
      const find = (count: number) =>
        fhir(`POST ${type}/_search`, `${parameter}=${encodeURIComponent(list(value, count))}`, {
          'content-type': 'application/x-www-form-urlencoded',
        })
      for (const count of [39, 390]) {
        const { status, text } = await find(count)
        assert.ok(status === 200 || text.includes('Cannot search by more than 400 values'), search + text)
      }
      assert.match(readIssue(await find(900)), /^400 too-costly: Cannot search by (?:more than|so many)/)
    }
  })

  it('may be in each of many granular scopes', async () => {
    const filter = Array.from({ length: 20 }, (_, scope) => ({
      query: [['code', list(at => `c${scope}-${at}`, 40)] as const],
    }))
    const server = await startFhir({ guard: createAuthenticator({ granular: { filterFor: () => filter } }) })
    for (const search of ['Observation', 'Observation?_summary=count', 'Observation?code=c1-1'])
      assert.equal((await server.as('granular')(`GET ${search}`)).status, 200, search)
    await server.close()
  })
})

describe('a long value', () => {
  it('matches exactly that value', async () => {
    const own = await startFhir()
    const [system, code, other] = [`urn:${'s'.repeat(5_000)}`, 'c'.repeat(5_000), `${'c'.repeat(4_999)}d`]
    const coded = (id: string, value: string) =>
      observation(id, 'p', { code: { coding: [{ system, code: value }] } })
    await own('PUT Observation/a', coded('a', code))
    await own('PUT Observation/b', coded('b', other))
    const found = async (query: string) => readIds(await own(`GET Observation?${query}`)).join()
    assert.equal(await found(`code=${code}`), 'a')
    assert.equal(await found(`code=${system}|${other}`), 'b')
    assert.equal(await found(`code=${code},${other}`), 'a,b')
    assert.equal(await found(`code:not=${code}`), 'b')
    assert.equal(await found(`code=${system}|`), 'a,b')
    assert.equal(await found(`code=${code}d`), '')
    assert.equal(await found(`code=${code.slice(0, 400)}`), '')
    await own.close()
  })

  it('is refused if only its beginning could be compared', async () => {
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
        readIssue(await fhir(`GET ${search}=a,${'x'.repeat(limit + 1)}`)),
        new RegExp(
          `^400 too-costly: Cannot search by the value of .*: it has more than ${limit} characters$`,
        ),
      )
    }
    for (const search of ['Patient?name:exact', 'ValueSet?url', 'Patient?identifier'])
      assert.equal((await fhir(`GET ${search}=${'x'.repeat(1_001)}`)).status, 200, search)
  })
})
