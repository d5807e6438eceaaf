import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { limits } from '../../../fhir/index.ts'
import {
  BASE,
  condition,
  type Fhir,
  observation,
  patient,
  type Reply,
  readIds,
  readIssue,
  readNextLink,
  startFhir,
} from '../testing/fhir.ts'

let fhir: Fhir
before(async () => {
  fhir = await startFhir()
  for (const [id, family] of [
    ['ann', 'Adams'],
    ['bob', 'Brown'],
    ['cy', 'Clark'],
  ] as const)
    await fhir(`PUT Patient/${id}`, patient(id, { name: [{ family }] }))
})
after(() => fhir.close())

describe('paging', () => {
  it('returns sealed links that do not reveal the search, and the total on every page (ABSENT-8)', async () => {
    const first = await fhir('GET Patient?_count=2&_sort=family')
    assert.deepEqual([readIds(first).length, first.body.total], [2, 3])
    const next = readNextLink(first) ?? ''
    assert.match(next, new RegExp(`^${BASE}/Patient\\?_page=[\\w.-]+$`))
    const second = await fhir(`GET ${next}`)
    assert.deepEqual([readIds(second).join(), second.body.total, readNextLink(second)], ['cy', 3, undefined])
  })

  it('neither repeats nor skips unchanged resources while others are created and deleted', async () => {
    const other = await startFhir()
    for (const id of ['a', 'b', 'c', 'd', 'e']) await other(`PUT Patient/${id}`, patient(id))
    const first = await other('GET Patient?_count=2')
    await other('DELETE Patient/b')
    await other('PUT Patient/a', patient('a', { gender: 'male' }))
    await other('PUT Patient/f', patient('f'))
    const second = await other(`GET ${readNextLink(first)}`)
    const third = await other(`GET ${readNextLink(second)}`)
    assert.deepEqual(
      [first, second, third].map(it => readIds(it).join(' ')),
      ['a b', 'c d', 'e f'],
    )
    await other.close()
  })

  it('refuses a modified link and a link of another search', async () => {
    const next = readNextLink(await fhir('GET Patient?_count=1')) ?? ''
    const unreadable = '400 invalid: Cannot read page: follow the link as it was given'
    const page = next.split('_page=')[1]
    for (const line of [
      `GET ${next}x`,
      'GET Patient?_page=',
      'GET Patient?_page=AAAA',
      `GET Condition?_page=${page}`,
      `GET Patient?_page=${page}&family=Adams`,
      `GET Patient?_page=${page}&_sort=family`,
      `GET Patient?_page=${page}&_page=${page}`,
      `GET Patient/_history?_page=${page}`,
    ])
      assert.equal(readIssue(await fhir(line)), unreadable, line)
  })

  it('accepts _count, _format, _pretty and _total that a client adds to a link (FHIR-6)', async () => {
    const next = readNextLink(await fhir('GET Patient?_count=1&_total=none')) ?? ''
    assert.deepEqual(readIds(await fhir(`GET ${next}&_format=json&_pretty=true`)), ['bob'])
    const both = await fhir(`GET ${next}&_count=2`)
    assert.deepEqual([readIds(both), both.body.total], [['bob', 'cy'], undefined])
    const counted = await fhir(`GET ${next}&_total=accurate&_count=1&_format=application/fhir%2Bjson`)
    assert.deepEqual([readIds(counted), counted.body.total], [['bob'], 3])
    const last = await fhir(`GET ${readNextLink(counted)}`)
    assert.deepEqual([readIds(last), last.body.total, readNextLink(last)], [['cy'], 3, undefined])
    assert.equal((await fhir(`GET ${next}&_format=xml`)).status, 406)
    assert.equal((await fhir(`GET ${next}&_count=many`)).status, 400)
    const versions = readNextLink(await fhir('GET Patient/_history?_count=1')) ?? ''
    assert.equal((await fhir(`GET ${versions}&_count=2&_total=accurate`)).body.entry?.length, 2)
  })

  it('returns only the count with _summary=count or _count=0', async () => {
    for (const query of ['Patient?_summary=count', 'Patient?_count=0'])
      assert.deepEqual((({ total, entry }) => [total, entry])((await fhir(`GET ${query}`)).body), [
        3,
        undefined,
      ])
    assert.equal((await fhir('GET Patient?_total=none')).body.total, undefined)
    assert.equal((await fhir('GET Patient?_total=accurate&_count=1')).body.total, 3)
    assert.equal((await fhir('GET Patient?_count=1')).body.total, 3)
    assert.equal(
      (await fhir('GET Patient?gender:not=x&_count=1')).body.total,
      undefined,
      'it would cost a look at all',
    )
  })
})

describe('a page of large resources', () => {
  const MEGABYTE = 1_000_000
  const large = (id: string) =>
    condition(id, 'p', {
      note: [{ text: 'x'.repeat(MEGABYTE) }],
      asserter: { reference: 'Practitioner/large' },
    })

  it('contains fewer resources and a link to the rest, also in a history', async () => {
    const own = await startFhir()
    for (let at = 0; at < 10; at++) await own('PUT Condition/large', large('large'))
    for (let at = 0; at < 9; at++) await own(`PUT Condition/c${at}`, large(`c${at}`))
    for (const what of [
      'Condition?_count=50',
      'Condition?_count=50&_sort=-_lastUpdated',
      'Condition/large/_history',
    ]) {
      const sizes: number[] = []
      const seen = new Set<string>()
      for (let url: string | undefined = what; url !== undefined; ) {
        const reply: Reply = await own(`GET ${url}`)
        assert.ok(reply.text.length < limits.PAGE_CHARACTERS + 10_000)
        sizes.push(reply.body.entry?.length ?? 0)
        for (const { resource } of reply.body.entry ?? [])
          seen.add(`${resource?.id} ${resource?.meta?.versionId}`)
        url = readNextLink(reply)
      }
      assert.deepEqual([sizes, seen.size], [[2, 2, 2, 2, 2], 10], what)
    }
    await own.close()
  })

  it('includes no more resources than fit', async () => {
    const own = await startFhir()
    for (let at = 0; at < 5; at++) await own(`PUT Condition/c${at}`, large(`c${at}`))
    await own('PUT Practitioner/large', { resourceType: 'Practitioner', id: 'large' })
    assert.equal(
      readIssue(await own('GET Practitioner?_revinclude=Condition:asserter')),
      '400 too-costly: Cannot include more than 5000 resources or 4194304 characters: request smaller pages',
    )
    await own.close()
  })

  it('does not limit the matches of a condition or of $lastn', async () => {
    const own = await startFhir()
    const huge = observation('a', 'p', {
      identifier: [{ value: 'same' }],
      note: [{ text: 'x'.repeat(3 * MEGABYTE) }],
    })
    for (const id of ['a', 'b']) await own(`PUT Observation/${id}`, { ...huge, id })
    assert.match(readIssue(await own('PUT Observation?identifier=same', huge)), /^412 /)
    assert.match(readIssue(await own('GET Observation/$lastn')), /^400 too-costly: .* 4194304 characters/)
    assert.equal((await own('GET Observation/$lastn?_id=a')).status, 200)
    await own.close()
  })
})
