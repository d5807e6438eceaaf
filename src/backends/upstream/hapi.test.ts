import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { ADMIN, startGuardedFhir } from '../../../test/support/guarded-fhir.ts'
import { type Access, fullAccess, type Panel } from '../../smart/index.ts'
import {
  BASE,
  condition,
  createAuthenticator,
  type Fhir,
  observation,
  patient,
  patientAccess,
  type Reply,
  readIds,
  readIssue,
  readNextLink,
} from '../sqlite/testing/fhir.ts'
import { createGateway } from './index.ts'
import { type HapiUpstream, startHapi } from './testing/hapi/start-hapi.ts'
import { startGateway, startRecordedGateway } from './testing/start-gateway.ts'

const MINUTE = 60_000
const PATCH = { 'content-type': 'application/json-patch+json' }
const kim = { type: 'Practitioner', id: 'kim' }
const panel: Panel = { patients: new Set(), organizations: [], careTeams: [], member: kim }
const within = (...query: readonly (readonly [string, string])[]): Access => ({
  filterFor: type => (type === 'Patient' ? [{ patient: 'ann' }] : [{ patient: 'ann', query }]),
})
const guard = createAuthenticator({
  all: fullAccess,
  ann: patientAccess('ann'),
  bob: patientAccess('bob'),
  kim: { filterFor: type => (type === 'Practitioner' ? 'everything' : [{ panel }]) },
  several: { filterFor: () => [{ patient: 'ann' }, { patient: 'bob' }] },
  conditions: { filterFor: type => (type === 'Condition' ? [{ patient: 'ann' }] : []) },
  recent: within(['date', 'ge2026']),
  since2000: within(['date', 'ge2000-01-01']),
})
const DATA = [
  { resourceType: 'Practitioner', id: 'kim', identifier: [{ system: 'urn:staff', value: 'kim' }] },
  patient('ann'),
  patient('bob'),
]
const identified = (value: string) => ({ identifier: [{ system: 'urn:test', value }] })
const unnamed = ({ id: _, ...resource }: { readonly id?: string }) => resource
const mine = (value: string, more: object = {}) =>
  unnamed(condition('', 'ann', { ...identified(value), ...more }))
const bundle = (type: string, ...entry: readonly object[]) => ({ resourceType: 'Bundle', type, entry })
const post = (resource: object, more: object = {}) => ({
  resource,
  ...more,
  request: { method: 'POST', url: (resource as { resourceType: string }).resourceType },
})
const statusesOf = (reply: Reply) => reply.body.entry?.map(it => it.response?.status.slice(0, 3))

let upstream: HapiUpstream
let fhir: Fhir
let all: Fhir
let ann: Fhir

async function start(open: typeof startGateway): Promise<void> {
  upstream = await startHapi()
  fhir = await open(upstream.url, { guard, profile: 'auto', timeoutMs: 1500 })
  all = fhir.as('all')
  ann = fhir.as('ann')
  for (const it of DATA) assert.equal((await all(`PUT ${it.resourceType}/${it.id}`, it)).status, 201)
}
afterEach(async () => {
  await fhir.close()
  await upstream.close()
})

describe('a gateway in front of a server with cached search results', () => {
  beforeEach(() => start(startGateway))
  const find = (by: Fhir, value: string) => by(`GET Condition?identifier=urn:test|${value}`)

  for (const caller of ['all', 'ann', 'several']) {
    it(`a conditional PUT of ${caller} creates one resource, however soon it is repeated (GATEWAY-19)`, async () => {
      const by = fhir.as(caller)
      const put = (text: string) => by('PUT Condition?identifier=urn:test|1', mine('1', { code: { text } }))
      const replies = [await put('a'), await put('b'), await put('c')]
      assert.deepEqual(
        replies.map(it => it.status),
        [201, 200, 200],
      )
      assert.equal(new Set(replies.map(it => it.body.id)).size, 1)
    })

    it(`If-None-Exist of ${caller} finds the resource that was just created`, async () => {
      const by = fhir.as(caller)
      const create = () => by('POST Condition', mine('1'), { 'if-none-exist': 'identifier=urn:test|1' })
      const [first, second, third] = [await create(), await create(), await create()]
      assert.deepEqual([first.status, second.status, third.status], [201, 200, 200])
      assert.deepEqual([second.body.id, third.body.id], [first.body.id, first.body.id])
    })

    it(`eight simultaneous conditional creates of ${caller} create one resource (GATEWAY-20)`, async () => {
      const by = fhir.as(caller)
      const create = () => by('POST Condition', mine('1'), { 'if-none-exist': 'identifier=urn:test|1' })
      const replies = await Promise.all(Array.from({ length: 8 }, create))
      assert.equal(replies.filter(it => it.status === 201).length, 1)
      upstream.advance(MINUTE)
      assert.equal(readIds(await find(all, '1')).length, 1)
    })

    it(`a conditional DELETE of ${caller} keeps a resource that no longer matches (GATEWAY-19)`, async () => {
      const by = fhir.as(caller)
      const { id } = (await all('POST Condition', mine('old'))).body
      assert.deepEqual(readIds(await find(by, 'old')), [id])
      await all(`PUT Condition/${id}`, { ...mine('new'), id })
      assert.equal((await by('DELETE Condition?identifier=urn:test|old')).status, 204)
      assert.equal((await all(`GET Condition/${id}`)).status, 200)
    })

    it(`a conditional PATCH of ${caller} is refused if two resources match`, async () => {
      const by = fhir.as(caller)
      await all('POST Condition', mine('twice'))
      assert.equal(readIds(await find(by, 'twice')).length, 1)
      await all('POST Condition', mine('twice'))
      const patch = [{ op: 'add', path: '/code', value: { text: 'x' } }]
      assert.equal((await by('PATCH Condition?identifier=urn:test|twice', patch, PATCH)).status, 412)
    })

    it(`a search of ${caller} finds the resource that was just created`, async () => {
      const by = fhir.as(caller)
      assert.deepEqual(readIds(await find(by, '1')), [])
      const { id } = (await all('POST Condition', mine('1'))).body
      assert.deepEqual(readIds(await find(by, '1')), [id])
    })

    it(`a search in a transaction of ${caller} finds the resource that the transaction creates`, async () => {
      const by = fhir.as(caller)
      assert.deepEqual(readIds(await find(by, '1')), [])
      const search = { request: { method: 'GET', url: 'Condition?identifier=urn:test|1' } }
      const reply = await by('POST ', bundle('transaction', post(mine('1')), search))
      assert.deepEqual(statusesOf(reply), ['201', '200'])
      assert.equal(reply.body.entry?.[1]?.resource?.total, 1)
    })
  }

  it('a chain in a condition reveals nothing outside the access (GATEWAY-20)', async () => {
    await all('PUT Practitioner/zoe', { resourceType: 'Practitioner', id: 'zoe', name: [{ family: 'Zoe' }] })
    const about = condition('c', 'ann', { asserter: { reference: 'Practitioner/zoe' } })
    await all('PUT Condition/c', about)
    for (const name of ['Zoe', 'Other']) {
      const condition = { 'if-none-exist': `asserter:Practitioner.name=${name}` }
      const alone = await fhir.as('conditions')('POST Condition', unnamed(about), condition)
      assert.equal(alone.status, 201, name)
    }
  })

  it('a condition is sent only if the server can apply the scope to it (GATEWAY-20)', async () => {
    const seen = () => upstream.seen.findLast(it => it.method === 'POST')?.headers['if-none-exist']
    const fresh = unnamed(observation('', 'ann', { effectiveDateTime: '2026-03-01', ...identified('1') }))
    const create = (caller: string) =>
      fhir.as(caller)('POST Observation', fresh, { 'if-none-exist': 'identifier=urn:test|1' })
    assert.deepEqual([(await create('recent')).status, seen()], [201, undefined])
    assert.equal((await create('recent')).status, 200)
    await all('DELETE Observation?identifier=urn:test|1')
    assert.equal((await create('ann')).status, 201)
    assert.match(seen() ?? '', /^identifier=.*&patient=Patient%2Fann$/)
  })

  it('a count has the matches that the caller may see, also after a change (GATEWAY-4)', async () => {
    const entry = Array.from({ length: 25 }, () => post(mine('many')))
    assert.equal((await all('POST ', bundle('transaction', ...entry))).status, 200)
    const count = async () => (await ann('GET Condition?_summary=count')).body.total
    assert.equal(await count(), 25)
    const contained = [observation('o', 'bob')]
    const evidence = [{ detail: [{ reference: '#o' }] }]
    const { id } = (await all('POST Condition', mine('hidden', { contained, evidence }))).body
    assert.ok(id)
    assert.equal(await count(), 25)
    await all(`PUT Condition/${id}`, { ...mine('shown'), id })
    assert.equal(await count(), 26)
    const [first] = readIds(await all('GET Condition?identifier=urn:test|many'))
    await all(`DELETE Condition/${first}`)
    assert.equal(await count(), 25)
    assert.equal((await fhir.as('bob')('GET Condition?_summary=count')).body.total, 0)
  })

  it('a search that excludes an id does not reveal whether the id exists (GATEWAY-30)', async () => {
    await all('PUT Condition/mine', condition('mine', 'ann'))
    await all('PUT Condition/other', condition('other', 'bob'))
    for (const [excluded, found] of [
      ['other', ['mine']],
      ['none', ['mine']],
      ['mine', []],
    ] as const) {
      const reply = await ann(`GET Condition?_id:not=${excluded}`)
      assert.deepEqual([readIds(reply), reply.body.total], [found, found.length], excluded)
      const counted = await ann(`GET Condition?_id:not=${excluded}&_summary=count`)
      assert.equal(counted.body.total, found.length, excluded)
    }
  })

  it('a clinician sees the patient of a care team at once (GATEWAY-19)', async () => {
    assert.equal((await fhir.as('kim')('GET Patient/ann')).status, 403)
    const participant = [{ member: { reference: 'Practitioner/kim' } }]
    const team = { resourceType: 'CareTeam', id: 't', status: 'active', participant }
    await all('PUT CareTeam/t', { ...team, subject: { reference: 'Patient/ann' } })
    assert.equal((await fhir.as('kim')('GET Patient/ann')).status, 200)
    await all('DELETE CareTeam/t')
    assert.equal((await fhir.as('kim')('GET Patient/ann')).status, 403)
  })

  it('a read of a deleted resource returns 410, also after a read of its history (GATEWAY-22)', async () => {
    await all('PUT Condition/gone', condition('gone', 'ann'))
    await all('GET Condition/gone/_history')
    await ann('GET Condition/gone/_history')
    await all('DELETE Condition/gone')
    assert.equal((await ann('GET Condition/gone')).status, 410)
    assert.equal((await fhir.as('bob')('GET Condition/gone')).status, 403)
  })

  it('a history has all versions, also right after many others were made (GATEWAY-22)', async () => {
    await all('PUT Condition/counted', condition('counted', 'ann'))
    const readHistory = async () => {
      const { body } = await ann('GET Condition/_history?_count=500')
      return (body.entry ?? []).filter(it => it.resource?.id === 'counted').length
    }
    assert.equal(await readHistory(), 1)
    // Now HAPI takes this number of versions for that of all.
    await all('GET Condition/_history')
    for (let version = 2; version <= 60; version++)
      await all('PUT Condition/hidden', condition('hidden', 'bob', { note: [{ text: String(version) }] }))
    assert.equal(await readHistory(), 1)
    const since = await ann('GET Condition/_history?_since=2020-01-01&_count=500')
    assert.ok(since.body.entry?.some(it => it.resource?.id === 'counted'))
  })

  it('the Cache-Control of the caller decides whether earlier results are used (GATEWAY-19)', async () => {
    for (const [cacheControl, isFresh] of [
      ['no-store', true],
      ['no-cache', true],
      ['no-store, max-results=5', true],
      ['max-age=60', false],
    ] as const) {
      await ann('GET Condition?code=x', undefined, { 'cache-control': cacheControl })
      const names = upstream.seen.at(-1)?.params.map(([name]) => name)
      assert.equal(names?.includes('_offset'), isFresh, cacheControl)
    }
  })

  it('a search with a reference to another server does not change the results of other searches', async () => {
    const about = { ...observation('o', 'ann'), performer: [{ reference: 'Practitioner/kim' }] }
    await all('PUT Observation/o', about)
    await ann('GET Observation?performer=http://other.example/Practitioner/kim')
    assert.deepEqual(readIds(await ann('GET Observation?performer=Practitioner/kim')), ['o'])
  })
})

describe('a gateway in front of a server that ignores conditions of writes', () => {
  beforeEach(() => start(startGateway))

  /** Creates the resource between the read and the write of the gateway. */
  function createBefore(method: string, create: () => Promise<unknown>): void {
    upstream.before(async request => {
      if (request.method !== method) return
      upstream.before(undefined)
      await create()
    })
  }
  const direct = (path: string, resource: object) =>
    fetch(`${upstream.url}/${path}`, {
      method: 'PUT',
      headers: { 'content-type': 'application/fhir+json' },
      body: JSON.stringify(resource),
    })

  for (const [how, write] of [
    ['alone', (by: Fhir) => by('PUT Condition/c', condition('c', 'ann'))],
    [
      'in a transaction',
      (by: Fhir) => {
        const request = { method: 'PUT', url: 'Condition/c' }
        return by('POST ', bundle('transaction', { resource: condition('c', 'ann'), request }))
      },
    ],
  ] as const)
    it(`an update that creates ${how} does not overwrite the resource of another patient (GATEWAY-21)`, async () => {
      createBefore(how === 'alone' ? 'PUT' : 'POST', () => direct('Condition/c', condition('c', 'bob')))
      const reply = await write(ann)
      assert.ok(reply.status >= 400 && reply.status < 500, reply.text)
      const stored = (await all('GET Condition/c')).body
      assert.deepEqual(stored.subject, { reference: 'Patient/bob' })
    })

  it('an update that creates returns 409 if the response shows that it has overwritten a resource (GATEWAY-21)', async () => {
    await fhir.close()
    fhir = await startGateway(upstream.url, { guard, profile: 'strict' })
    createBefore('PUT', () => direct('Condition/c', condition('c', 'bob')))
    assert.equal((await fhir.as('ann')('PUT Condition/c', condition('c', 'ann'))).status, 409)
  })

  it('the audit trail has a record of an overwritten resource, and the outcome of the other entries (GATEWAY-21)', async () => {
    await fhir.close()
    fhir = await startRecordedGateway(upstream.url, { guard, profile: 'strict' })
    const listEvents = async (count: number) =>
      ((await fhir.as('all')(`GET AuditEvent?_count=${count}`)).body.entry ?? []).map(
        ({ resource }) => `${resource?.action} ${resource?.outcomeDesc}`,
      )
    const OVERWRITTEN = 'Allowed (200): A create has replaced a resource that was created at the same time.'
    createBefore('PUT', () => direct('Condition/c', condition('c', 'bob')))
    assert.equal((await fhir.as('ann')('PUT Condition/c', condition('c', 'ann'))).status, 409)
    assert.deepEqual(await listEvents(2), [`U ${OVERWRITTEN}`, 'U Allowed (409)'])
    const put = { resource: condition('d', 'ann'), request: { method: 'PUT', url: 'Condition/d' } }
    createBefore('POST', () => direct('Condition/d', condition('d', 'bob')))
    const reply = await fhir.as('ann')('POST ', bundle('transaction', put, post(mine('beside'))))
    assert.equal(reply.status, 409)
    assert.deepEqual(await listEvents(4), [
      `E ${OVERWRITTEN}`,
      'C Allowed (201)',
      'U Allowed (200)',
      'E Allowed (409)',
    ])
  })

  it('a limited caller creates with POST if a PUT could overwrite (GATEWAY-21)', async () => {
    await fhir.close()
    fhir = await startGateway(upstream.url, { guard, profile: 'post-only' })
    const put = (by: Fhir) => by('PUT Condition/c', condition('c', 'ann'))
    const refused = await put(fhir.as('ann'))
    assert.match(readIssue(refused), /^405 not-supported: Cannot create this Condition with PUT: .*Use POST/)
    assert.equal(refused.headers.allow, 'GET, HEAD')
    const request = { method: 'PUT', url: 'Condition/c' }
    const entry = { resource: condition('c', 'ann'), request }
    assert.equal((await fhir.as('ann')('POST ', bundle('transaction', entry))).status, 405)
    assert.equal((await put(fhir.as('all'))).status, 201)
    assert.equal((await put(fhir.as('ann'))).status, 200)
  })

  it('a resource that others refer to is not deleted, and the response says so (GATEWAY-31)', async () => {
    await all('PUT Condition/c', condition('c', 'ann'))
    const reply = await fhir.as('several')('DELETE Patient/ann')
    assert.equal(readIssue(reply), '409 conflict: Cannot delete Patient/ann: other resources refer to it')
    assert.equal((await all('GET Patient/ann')).status, 200)
    assert.equal(upstream.seen.filter(it => it.method === 'DELETE').length, 1)
  })

  it('a Bundle that is passed on has relative URLs, and its response has entity tags (GATEWAY-32)', async () => {
    for (const type of ['batch', 'transaction']) {
      const read = { request: { method: 'GET', url: `${BASE}/Patient/ann` } }
      const entry = {
        resource: condition('d', 'ann'),
        request: { method: 'PUT', url: `${BASE}/Condition/d` },
      }
      const reply = await all('POST ', bundle(type, entry, read))
      assert.equal(reply.status, 200, reply.text)
      assert.match(reply.body.entry?.[0]?.response?.etag ?? '', /^W\/"\d"$/, type)
      assert.equal(reply.body.entry?.[1]?.resource?.id, 'ann', type)
    }
  })

  it('a subset of a resource has its mandatory elements', async () => {
    await all('PUT Condition/c', condition('c', 'ann', { note: [{ text: 'x' }] }))
    for (const [line, by] of ['all', 'ann'].flatMap(it => [
      ['GET Condition/c?_elements=note', fhir.as(it)] as const,
      ['GET Condition/c?_summary=text', fhir.as(it)] as const,
    ]))
      assert.deepEqual((await by(line)).body.subject, { reference: 'Patient/ann' }, line)
  })

  it('a delete keeps a resource that another write has moved to another patient (GATEWAY-21)', async () => {
    await all('PUT Condition/c', condition('c', 'ann'))
    createBefore('DELETE', () => direct('Condition/c', condition('c', 'bob')))
    const reply = await ann('DELETE Condition/c')
    assert.ok(reply.status >= 400, reply.text)
    assert.equal((await all('GET Condition/c')).status, 200)
  })

  it('a transaction whose delete keeps a changed resource does not report success (GATEWAY-21)', async () => {
    await all('PUT Condition/c', condition('c', 'ann'))
    createBefore('POST', () => direct('Condition/c', condition('c', 'bob')))
    const removal = { request: { method: 'DELETE', url: 'Condition/c' } }
    const reply = await ann('POST ', bundle('transaction', removal, post(mine('beside'))))
    assert.match(readIssue(reply), /^502 .*Condition\/c: it was changed at the same time/)
    assert.equal((await all('GET Condition/c')).status, 200)
  })

  it('a transaction response has entity tags', async () => {
    const reply = await ann('POST ', bundle('transaction', post(mine('1'))))
    assert.equal(reply.body.entry?.[0]?.response?.etag, 'W/"1"')
  })

  it('a write that times out returns 504, which says that it may have been carried out (GATEWAY-23)', async () => {
    upstream.pause()
    const reply = await ann('POST Condition', mine('late'))
    upstream.resume()
    assert.match(readIssue(reply), /^504 .*may have been carried out/i)
  })

  it('a Bundle refuses every request that is refused alone', async () => {
    await all('PUT Condition/c1', condition('c1', 'ann', identified('same')))
    await all('PUT Condition/c2', condition('c2', 'ann', identified('same')))
    for (const url of [
      'Condition/c1?_cascade=delete',
      'Condition/c1?_expunge=true',
      'Condition?identifier=urn:test|same',
    ]) {
      const alone = await all(`DELETE ${url}`)
      assert.ok(alone.status >= 400, `${url} ${alone.text}`)
      for (const type of ['batch', 'transaction']) {
        const reply = await all('POST ', bundle(type, { request: { method: 'DELETE', url } }))
        const status = type === 'batch' ? Number(statusesOf(reply)?.[0]) : reply.status
        assert.equal(status, alone.status, `${type} ${url} ${reply.text}`)
      }
    }
    for (const id of ['c1', 'c2']) assert.equal((await all(`GET Condition/${id}`)).status, 200)
  })

  it('a conditional reference is accepted wherever a reference by id is', async () => {
    const status = 'finished'
    const encounter = { resourceType: 'Encounter', status, class: { code: 'AMB' } }
    const made = (reference: string) => [
      { ...unnamed(observation('', 'ann')), performer: [{ reference }] },
      { ...encounter, subject: { reference: 'Patient/ann' }, participant: [{ individual: { reference } }] },
    ]
    for (const reference of ['Practitioner/kim', 'Practitioner?identifier=urn:staff|kim']) {
      const entries = made(reference).map(resource => post(resource))
      const reply = await ann('POST ', bundle('transaction', ...entries))
      assert.deepEqual(statusesOf(reply), ['201', '201'], reply.text)
      const stored = await ann(`GET Observation/${reply.body.entry?.[0]?.resource?.id}`)
      assert.deepEqual(stored.body.performer, [{ reference: 'Practitioner/kim' }])
    }
  })

  for (const caller of ['all', 'ann'])
    it(`a reference of ${caller} with the gateway's own URL means the local resource (GATEWAY-25)`, async () => {
      const by = fhir.as(caller)
      const own = { ...observation('o', 'ann'), subject: { reference: `${BASE}/Patient/ann` } }
      assert.equal((await by('PUT Observation/o', own)).status, 201)
      assert.deepEqual(readIds(await by(`GET Observation?subject=${BASE}/Patient/ann`)), ['o'])
      assert.deepEqual(readIds(await by('GET Observation?subject=Patient/ann')), ['o'])
    })
})

describe('a gateway in front of a server that answers return=minimal without body and content type', () => {
  beforeEach(() => start(startRecordedGateway))

  it('a create of a caller with access to everything returns 201, and is in the audit trail of the patient (GATEWAY-28)', async () => {
    const made = await all('POST Condition', mine('1'), { prefer: 'return=minimal' })
    assert.deepEqual([made.status, made.text], [201, ''])
    assert.match(String(made.headers.location), /\/Condition\/[\w-]+\/_history\/1$/)
    const trail = await all('GET AuditEvent?patient=Patient/ann&action=C')
    assert.ok((trail.body.total ?? 0) > 0, trail.text)
  })
})

describe('a resource that changes the behaviour of the server', () => {
  beforeEach(() => start(startGateway))

  it('is written only with a system scope that names its type (SCOPE-10)', async () => {
    const guarded = await startGuardedFhir([], {}, (guard, baseUrl) =>
      createGateway({ baseUrl, guard, upstreamUrl: upstream.url, smartConfiguration: {} }),
    )
    const parameter = {
      resourceType: 'SearchParameter',
      url: 'http://x.test/p',
      name: 'p',
      status: 'active',
      description: 'p',
      code: 'patient',
      base: ['Condition'],
      type: 'reference',
    }
    for (const scope of ['user/*.cruds', 'system/*.cruds', 'user/SearchParameter.c'])
      assert.equal((await guarded.ask('POST /SearchParameter', { scope }, parameter)).status, 403, scope)
    const named = { scope: 'system/SearchParameter.c', patient: null }
    assert.equal((await guarded.ask('POST /SearchParameter', named, parameter)).status, 201)
    for (const type of ['batch', 'transaction']) {
      const entry = { resource: parameter, request: { method: 'POST', url: 'Basic' } }
      await guarded.ask('POST /', ADMIN, bundle(type, entry))
      const found = await guarded.ask('GET /SearchParameter?_summary=count', ADMIN)
      assert.equal(found.body.total, 1, type)
    }
    await guarded.close()
  })
})

describe('a gateway in front of a server that limits a search by a parameter only', () => {
  beforeEach(() => start(startGateway))

  /** Contains data of another patient, which no parameter excludes. */
  const hidden = (id: string) =>
    condition(id, 'ann', {
      contained: [observation('o', 'bob')],
      evidence: [{ detail: [{ reference: '#o' }] }],
    })

  it('total, links and pages are the same with and without hidden matches, wherever they are (GATEWAY-5)', async () => {
    for (const id of ['b1', 'b2', 'b3', 'b4']) await all(`PUT Condition/${id}`, condition(id, 'ann'))
    const searches = ['', '&_sort=_id', '&_sort=-_id', '&_total=accurate'].flatMap(more =>
      [1, 2, 3, 4, 5].map(count => `Condition?_count=${count}${more}`),
    )
    const readPages = async () => {
      const pages: unknown[] = []
      for (const search of searches)
        for (let next: string | undefined = search; next !== undefined; ) {
          const reply: Reply = await ann(`GET ${next}`)
          assert.equal(reply.status, 200, reply.text)
          const { total, link } = reply.body
          pages.push([search, readIds(reply), total, link?.map(it => it.relation)])
          next = readNextLink(reply)
        }
      return pages
    }
    const expected = await readPages()
    for (const id of ['c1', 'a1', 'b2a', 'c2', 'c3', 'c4', 'c5', 'c6']) {
      await all(`PUT Condition/${id}`, hidden(id))
      assert.deepEqual(await readPages(), expected, id)
    }
  })
})

describe('a gateway in front of a server that interprets searches differently', () => {
  beforeEach(async () => {
    await start(startGateway)
    for (const [id, date] of [
      ['old', '2020-05-01'],
      ['new', '2026-05-01'],
    ] as const)
      await all(`PUT Observation/${id}`, observation(id, 'ann', { effectiveDateTime: date }))
  })

  it('a compartment search is sent as a parameter (GATEWAY-26)', async () => {
    for (const caller of ['all', 'ann', 'several'])
      assert.deepEqual(
        readIds(await fhir.as(caller)('GET Patient/ann/Observation')).toSorted(),
        ['new', 'old'],
        caller,
      )
  })

  it('a scope with a year finds the resources of that year (GATEWAY-24)', async () => {
    assert.deepEqual(readIds(await fhir.as('recent')('GET Observation')), ['new'])
    assert.equal((await fhir.as('recent')('GET Observation/new')).status, 200)
  })

  it("a scope with a date does not collide with the app's own date (GATEWAY-24)", async () => {
    const reply = await fhir.as('since2000')('GET Observation?date=ge2025-01-01')
    assert.deepEqual([reply.status, readIds(reply)], [200, ['new']])
  })

  it('a search over one named type is sent as a search of that type (GATEWAY-33)', async () => {
    for (const caller of ['all', 'ann', 'several']) {
      const reply = await fhir.as(caller)('GET ?_type=Observation&patient._id=ann&_sort=date')
      assert.deepEqual([reply.status, readIds(reply)], [200, ['old', 'new']], `${caller} ${reply.text}`)
      assert.match(reply.body.link?.[0]?.url ?? '', /\?_type=Observation&/)
    }
  })

  it('every resource is on exactly one page, although the server changes the order of resources with equal sort keys (GATEWAY-34)', async () => {
    const ids = Array.from({ length: 9 }, (_, at) => `equal${at}`)
    for (const id of ids)
      await all(`PUT Observation/${id}`, observation(id, 'ann', { effectiveDateTime: '2026-05-01' }))
    for (const caller of ['ann', 'several', 'recent', 'since2000'])
      for (const sort of ['date', '-status', 'status,date']) {
        const found: string[] = []
        let path: string | undefined = `Observation?_sort=${sort}&_count=2`
        while (path !== undefined) {
          const page: Reply = await fhir.as(caller)(`GET ${path}`)
          found.push(...readIds(page).map(String))
          const next = page.body.link?.find(({ relation }) => relation === 'next')?.url
          path = next?.slice(next.indexOf('Observation?'))
        }
        const wanted = [...ids, 'new', ...(caller === 'recent' ? [] : ['old'])]
        assert.deepEqual(found.toSorted(), wanted.toSorted(), `${caller} ${sort}`)
      }
  })

  it('every page is found, although the server leaves out the link to the next one (GATEWAY-34)', async () => {
    for (const caller of ['all', 'ann', 'several'])
      for (const total of ['', '&_total=none', '&_total=accurate']) {
        const first = await fhir.as(caller)(`GET Observation?_sort=date&_count=1${total}`)
        const next = first.body.link?.find(({ relation }) => relation === 'next')?.url ?? ''
        const second = await fhir.as(caller)(`GET ${next.slice(next.indexOf('Observation?'))}`)
        assert.deepEqual([...readIds(first), ...readIds(second)], ['old', 'new'], `${caller} ${total}`)
      }
  })

  it('the patient of the token is sent once (GATEWAY-26)', async () => {
    await ann('GET Observation?patient=ann')
    const names = upstream.seen.at(-1)?.params.map(([name]) => name)
    assert.equal(names?.filter(it => it === 'patient').length, 1)
  })

  it('an error names the refused parameter without the text of the upstream (GATEWAY-27)', async () => {
    const reply = await ann('GET Observation?date=ap2026')
    assert.equal(reply.status, 400)
    assert.match(reply.text, /\bdate\b/)
    assert.doesNotMatch(reply.text, /HAPI/)
  })

  it('a refused numeric id is named, not in the words of the upstream (GATEWAY-27)', async () => {
    const reply = await ann('PUT Condition/85', condition('85', 'ann'))
    assert.equal(reply.status, 400)
    assert.match(readIssue(reply), /\bid\b/)
    assert.doesNotMatch(reply.text, /HAPI|numeric/)
  })
})
