import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { limits } from '../../../fhir/index.ts'
import { fullAccess } from '../../../smart/index.ts'
import {
  BASE,
  createAuthenticator,
  type Fhir,
  observation,
  patient,
  type Reply,
  readIssue,
  readNextLink,
  startFhir,
} from '../testing/fhir.ts'

let fhir: Fhir
let now = Date.parse('2026-01-01T00:00:00Z')
const DAY = 86_400_000

before(async () => {
  fhir = await startFhir({ clock: () => now })
  await fhir('PUT Patient/a', patient('a'))
  now += DAY
  await fhir('PUT Patient/a', patient('a', { gender: 'male' }))
  now += DAY
  await fhir('DELETE Patient/a')
  now += DAY
  await fhir('PUT Patient/a', patient('a', { gender: 'other' }))
  now += DAY
  await fhir('POST Group', { resourceType: 'Group', type: 'person', actual: true })
})
after(() => fhir.close())

function listVersions(reply: Reply): readonly string[] {
  return (reply.body.entry ?? []).map(
    it =>
      `${it.request?.method} ${it.response?.status.slice(0, 3)} ${it.response?.etag} ${it.resource?.gender ?? '-'}`,
  )
}

describe('history of an instance', () => {
  it('lists every version with its interaction, newest first', async () => {
    const reply = await fhir('GET Patient/a/_history')
    assert.deepEqual(listVersions(reply), [
      'PUT 201 W/"4" other',
      'DELETE 204 W/"3" -',
      'PUT 200 W/"2" male',
      'PUT 201 W/"1" -',
    ])
    assert.deepEqual([reply.body.type, reply.body.total], ['history', 4])
    const [newest, deletion] = reply.body.entry ?? []
    assert.equal(newest?.fullUrl, `${BASE}/Patient/a`)
    assert.equal(newest?.response?.lastModified, '2026-01-04T00:00:00.000Z')
    assert.equal(deletion?.resource, undefined)
  })

  it('is limited by _since and _at', async () => {
    const versions = async (query: string) =>
      listVersions(await fhir(`GET Patient/a/_history?${query}`)).map(it => it.slice(-12))
    assert.equal((await versions('_since=2026-01-03T00:00:00Z')).length, 2)
    assert.equal((await versions('_since=2026-01-03T00:00:00.001Z')).length, 1)
    const at = await fhir('GET Patient/a/_history?_at=2026-01-02T12:00:00Z')
    assert.deepEqual(listVersions(at), ['PUT 200 W/"2" male'])
    const day = await fhir('GET Patient/a/_history?_at=2026-01-02')
    assert.deepEqual(listVersions(day), ['PUT 200 W/"2" male'])
    assert.deepEqual(listVersions(await fhir('GET Patient/a/_history?_at=2025')), [])
  })

  it('is returned in pages', async () => {
    const first = await fhir('GET Patient/a/_history?_count=3')
    assert.deepEqual([listVersions(first).length, first.body.total], [3, 4])
    const second = await fhir(`GET ${readNextLink(first)}`)
    assert.deepEqual(
      [listVersions(second), readNextLink(second), second.body.total],
      [['PUT 201 W/"1" -'], undefined, 4],
    )
  })

  it('responds with 404 for a resource that never existed, and with 400 to an invalid parameter', async () => {
    assert.equal((await fhir('GET Patient/none/_history')).status, 404)
    for (const query of [
      '_since=yesterday',
      '_since=gt2020',
      '_at=1,2',
      '_count=x',
      'gender=male',
      '_sort=gender',
    ])
      assert.equal((await fhir(`GET Patient/a/_history?${query}`)).status, 400, query)
    const lenient = await fhir('GET Patient/a/_history?gender=male', undefined, {
      prefer: 'handling=lenient',
    })
    assert.equal(lenient.status, 200)
    assert.equal(readIssue(await fhir('POST Patient/a/_history', {})).slice(0, 3), '405')
  })
})

describe('history of a type and of the system', () => {
  it('lists all versions of the type or of the whole server', async () => {
    assert.equal(listVersions(await fhir('GET Patient/_history')).length, 4)
    const group = await fhir('GET Group/_history')
    assert.deepEqual(
      group.body.entry?.map(it => it.request),
      [{ method: 'POST', url: 'Group' }],
    )
    const system = await fhir('GET _history?_count=2')
    assert.deepEqual([listVersions(system).length, system.body.total], [2, 5])
    assert.equal(listVersions(await fhir(`GET ${readNextLink(system)}`)).length, 2)
    assert.equal(listVersions(await fhir('GET Condition/_history')).length, 0)
  })
})

describe('a history within a granular scope', () => {
  it('checks old versions and deletions, and refuses the request if there are too many', async () => {
    const limited = { filterFor: () => [{ patient: 'p', query: [['category', 'lab'] as const] }] }
    const own = await startFhir({ guard: createAuthenticator({ all: fullAccess, limited }) })
    const [all, app] = [own.as('all'), own.as('limited')]
    const lab = { category: [{ coding: [{ code: 'lab' }] }] }
    const put = (more: object) => all('PUT Observation/one', observation('one', 'p', more))
    const etags = async (query = '') => {
      const reply = await app(`GET Observation/_history${query}`)
      return (reply.body.entry ?? []).map(it => it.response?.etag)
    }
    for (const more of [lab, {}, lab]) await put(more)
    assert.deepEqual(await etags(), ['W/"3"', 'W/"1"'])
    assert.deepEqual(await etags('?_count=1'), ['W/"3"'])
    await all('DELETE Observation/one')
    assert.deepEqual(await etags(), ['W/"4"', 'W/"3"', 'W/"1"'])
    const long = { note: [{ text: 'x'.repeat(limits.PAGE_CHARACTERS * 0.6) }] }
    for (const more of [long, long, lab]) await put(more)
    const first = await app('GET Observation/_history?_count=1')
    assert.equal(first.status, 400)
    assert.match(readIssue(first), /Cannot check more than 5000 versions, or 2097152 characters/)
    await own.close()
  })

  it('of the system has no total before the last page, whether or not there are resources outside the scope (GRANULAR-2)', async () => {
    const query = [['category', 'lab'] as const]
    const limited = {
      filterFor: (type: string) => [{ patient: 'p', ...(type === 'Observation' && { query }) }],
    }
    const own = await startFhir({ guard: createAuthenticator({ all: fullAccess, limited }) })
    const [all, app] = [own.as('all'), own.as('limited')]
    const findTotal = async () => (await app('GET _history?_count=1')).body.total
    for (const gender of ['male', 'other']) await all('PUT Patient/p', patient('p', { gender }))
    assert.equal(await findTotal(), undefined)
    await all('PUT Observation/other', observation('other', 'q'))
    assert.equal(await findTotal(), undefined)
    await own.close()
  })
})
