import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import {
  BASE,
  condition,
  observation,
  patient,
  readIds,
  readIssue,
  readNextLink,
} from '../../sqlite/testing/fhir.ts'
import { BROKEN, useHostileGateway } from '../testing/hostile-gateway.ts'
import { json, searchset } from '../testing/hostile-upstream.ts'

const { ann, getLastRequest, fhir, upstream } = await useHostileGateway()
const PATCH = { 'content-type': 'application/json-patch+json' }

describe('a repeated search', () => {
  const own = [condition('c1', 'ann'), condition('c2', 'ann')]

  it('has the same response as long as its resources do not change', async () => {
    upstream.answerJson(searchset(own, { id: 'first' }))
    const first = await ann('GET Condition')
    for (const id of ['second', 'third', 'fourth']) {
      upstream.answerJson(searchset(own, { id }))
      assert.equal((await ann('GET Condition')).text, first.text)
    }
    assert.deepEqual(readIds(first), ['c1', 'c2'])
  })

  it('is checked again for another page, another search mode, another search and another grant (GATEWAY-3)', async () => {
    upstream.answerJson(searchset(own))
    for (let at = 0; at < 3; at++) await ann('GET Condition')
    assert.deepEqual(readIds(await ann('GET Condition?_id=c1')), ['c1'])
    assert.deepEqual(readIds(await fhir.as('bob')('GET Condition')), [])
    upstream.answerJson(searchset([condition('c1', 'ann'), condition('c2', 'bob')]))
    assert.deepEqual(readIds(await ann('GET Condition')), ['c1'])
    const included = own.map(resource => ({ resource, search: { mode: 'include' } }))
    upstream.answerJson(searchset([], { entry: included }))
    assert.deepEqual(readIds(await ann('GET Condition')), [])
    upstream.answerJson(searchset(own))
    assert.deepEqual(readIds(await ann('GET Condition')), ['c1', 'c2'])
  })
})

describe('a search to which the upstream returns more than requested', () => {
  const mixed = [condition('ca', 'ann'), condition('cb', 'bob'), patient('bob'), observation('oa', 'ann')]

  it('is sent with the limits of the grant in addition to the parameters of the caller (GATEWAY-3)', async () => {
    upstream.answerJson(searchset([]))
    await ann('GET Condition?patient=bob&_sort=-recorded-date')
    assert.equal(
      getLastRequest(),
      'GET /up/Condition?patient=bob&_sort=-recorded-date&_count=51&patient=Patient/ann',
    )
    await ann('GET Patient?_id=ann,bob')
    assert.equal(getLastRequest(), 'GET /up/Patient?_id=ann,bob&_count=51&_id=ann')
    await fhir.as('vitals')('GET Observation?code=x')
    assert.equal(
      getLastRequest(),
      'GET /up/Observation?code=x&_count=51&patient=Patient/ann&category=vital-signs',
    )
    await ann('GET Patient/ann/Condition')
    assert.equal(getLastRequest(), 'GET /up/Condition?_count=51&patient=Patient/ann&patient=Patient/ann')
  })

  it('is sent with POST if the caller uses POST', async () => {
    upstream.answerJson(searchset([]))
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    await ann('POST Condition/_search?code=a', 'patient=bob', form)
    assert.equal(upstream.seen.at(-1)?.line, 'POST /up/Condition/_search')
    assert.equal(
      decodeURIComponent(upstream.seen.at(-1)?.body ?? ''),
      'code=a&patient=bob&_count=51&patient=Patient/ann',
    )
  })

  it('returns and counts only resources within the grant, without a total if the upstream has more (GATEWAY-3)', async () => {
    upstream.answerJson(searchset(mixed, { total: 9999, id: 'x', meta: { tag: [{ code: 'bob' }] } }))
    const reply = await ann('GET Condition')
    assert.deepEqual([reply.status, readIds(reply), reply.body.total], [200, ['ca'], undefined])
    assert.doesNotMatch(reply.text, /\bbob\b|\b9999\b/)
    upstream.answerJson(searchset(mixed, { total: 4 }))
    assert.equal((await ann('GET Condition')).body.total, 1)
  })

  it('leaves out resources of no known type', async () => {
    const odd = ['constructor', '__proto__', 'toString', ''].map(resourceType => ({ resourceType, id: 'x' }))
    upstream.answerJson(searchset([...odd, condition('ca', 'ann', { contained: odd })]))
    for (const line of ['GET Condition', 'GET Condition/_history', 'GET ?_type=Condition'])
      assert.deepEqual(
        (await ann(line)).body.entry?.map(it => it.resource?.id),
        ['ca'],
        line,
      )
  })

  it('has no total if there are further pages (GATEWAY-4)', async () => {
    const link = [{ relation: 'next', url: `${upstream.url}?_getpages=abc` }]
    upstream.answerJson(searchset([condition('ca', 'ann')], { total: 9999, link }))
    const reply = await ann('GET Condition?_count=1')
    assert.deepEqual([readIds(reply), reply.body.total], [['ca'], undefined])
  })

  it('counts the resources within the grant for _summary=count and ignores the total of the upstream (GATEWAY-4)', async () => {
    upstream.answerJson(searchset(mixed, { total: mixed.length }))
    const reply = await ann('GET Condition?_summary=count')
    assert.deepEqual([reply.body.total, reply.body.entry], [1, undefined])
    assert.doesNotMatch(getLastRequest(), /_summary/)
  })

  it('has no total, and says that results are missing, if the upstream counts more than it shows (GATEWAY-40)', async () => {
    upstream.answerJson(searchset(mixed, { total: 9999 }))
    assert.equal(readIssue(await ann('GET Condition?_summary=count')), BROKEN)
    const reply = await ann('GET Condition')
    assert.deepEqual([reply.body.total, readIds(reply)], [undefined, ['ca']])
    assert.match(reply.text, /"code":"incomplete".*"search":\{"mode":"outcome"\}/)
  })

  it('leaves out outcomes and includes to which no returned match refers', async () => {
    const own = observation('oa', 'ann', { performer: [{ reference: 'Practitioner/seen' }] })
    upstream.answerJson(
      searchset([], {
        entry: [
          { resource: own, search: { mode: 'match' } },
          { resource: { resourceType: 'Practitioner', id: 'seen' }, search: { mode: 'include' } },
          { resource: { resourceType: 'Practitioner', id: 'of-bob' }, search: { mode: 'include' } },
          { resource: patient('bob'), search: { mode: 'include' } },
          { resource: { resourceType: 'OperationOutcome', issue: [] }, search: { mode: 'outcome' } },
        ],
      }),
    )
    const reply = await ann('GET Observation?_include=Observation:performer')
    assert.deepEqual([readIds(reply), readIds(reply, 'include')], [['oa'], ['seen']])
    // The caller may read no included resource.
    await fhir.as('vitals')('GET Observation?_include=Observation:subject')
    assert.doesNotMatch(getLastRequest(), /_include/)
  })

  it('leaves out includes that the caller did not request', async () => {
    const entry = [{ resource: condition('ca', 'ann'), search: { mode: 'include' } }]
    upstream.answerJson(searchset([], { entry }))
    assert.deepEqual(readIds(await ann('GET Observation'), 'include'), [])
  })

  it('checks the whole resource before it applies _elements', async () => {
    upstream.answerJson(searchset([condition('ca', 'ann'), { resourceType: 'Condition', id: 'bare' }]))
    const reply = await ann('GET Condition?_elements=code')
    assert.doesNotMatch(getLastRequest(), /_elements/)
    assert.deepEqual(readIds(reply), ['ca'])
    assert.deepEqual(Object.keys(reply.body.entry?.[0]?.resource ?? {}), [
      'resourceType',
      'id',
      'subject',
      'code',
      'meta',
    ])
  })

  it('leaves out a resource that contains data of another patient (PATIENT-8)', async () => {
    const contained = [{ ...condition('inner', 'bob') }]
    upstream.answerJson(searchset([condition('ca', 'ann', { contained }), condition('cc', 'ann')]))
    assert.deepEqual(readIds(await ann('GET Condition')), ['cc'])
  })

  it('is refused if it has an unknown parameter, which could disable the limits', async () => {
    const before = upstream.seen.length
    for (const query of ['_getpages=1', '_query=x', '_filter=a eq b', '_nothing=1'])
      assert.equal((await ann(`GET Condition?${query}`)).status, 400, query)
    assert.equal(upstream.seen.length, before)
  })
})

describe('the targets of a chain', () => {
  it('are requested as one page', async () => {
    upstream.answerJson(searchset([]))
    for (const [query, target] of [
      ['Condition?encounter.class=AMB', 'Encounter?class=AMB&_count=500'],
      // One that the caller may see is enough to find the only patient.
      ['Patient?_has:Condition:patient:code=x', 'Condition?code=x&_count=5&'],
    ] as const) {
      await ann(`GET ${query}`)
      assert.ok(getLastRequest().includes(target), query)
    }
  })
})

describe('a chain in a search of all types', () => {
  it('is resolved within the grant if one type is named (ROUTE-4)', async () => {
    upstream.answerJson(searchset([]))
    await ann('GET ?_type=Patient&link:Patient.name=bob')
    assert.equal(getLastRequest(), 'GET /up/Patient?name=bob&_count=500&_id=ann')
  })

  it('is refused if there are several types, and not sent (ROUTE-4)', async () => {
    const before = upstream.seen.length
    for (const search of [
      '?_type=Patient,Condition&_has:Condition:patient:code=x',
      '?_type=Condition,Observation&patient.name=x',
    ])
      assert.equal((await ann(`GET ${search}`)).status, 400, search)
    assert.equal(upstream.seen.length, before)
  })
})

describe('paging links', () => {
  const page = (next: string) =>
    searchset([condition('ca', 'ann')], { link: [{ relation: 'next', url: next }] })
  const last = searchset([condition('cc', 'ann'), condition('cb', 'bob')])

  it('of any form are followed with the same grant, and every page is checked', async () => {
    for (const next of [
      `${upstream.url}?_getpages=secret-id&_bundletype=searchset`,
      '/up?page=2',
      `${upstream.url}/x/y/z`,
    ]) {
      upstream.answerJson(page(next))
      const first = await ann('GET Condition?_sort=code&_count=1')
      const link = readNextLink(first) ?? ''
      assert(link.startsWith(`${BASE}/Condition?_gateway-page=`), link)
      assert.doesNotMatch(first.text, /_getpages|secret-id|page=2|127\.0\.0\.1/)
      upstream.answerJson(last)
      const second = await ann(`GET ${link}`)
      assert.deepEqual([second.status, readIds(second)], [200, ['cc']])
      assert.equal(
        upstream.seen.at(-1)?.line,
        `GET ${new URL(next, upstream.url).href.slice(new URL(upstream.url).origin.length)}`,
      )
    }
  })

  it('to another server are not followed', async () => {
    upstream.answerJson(page('http://169.254.169.254/latest'))
    assert.equal(readIssue(await ann('GET Condition')), BROKEN)
  })

  it('to another server are not returned to a caller with access to everything', async () => {
    const everyone = fhir.as('all')
    upstream.answerJson(page('http://169.254.169.254/latest'))
    const entry = [{ request: { method: 'GET', url: 'Condition' } }]
    const batch = await fhir.as('reader')('POST ', { resourceType: 'Bundle', type: 'batch', entry })
    for (const line of ['GET Condition', 'GET Condition/_history']) {
      const reply = await everyone(line)
      assert.doesNotMatch(reply.text + batch.text, /169\.254/, line)
      assert.deepEqual(
        [reply.status, (await everyone(`GET ${readNextLink(reply)}`)).status],
        [200, 400],
        line,
      )
    }
    assert.equal(readIssue(await everyone('GET ?_type=Condition')), BROKEN)
  })

  it('are refused if they are changed or used for another search', async () => {
    upstream.answerJson(page(`${upstream.url}?_getpages=1`))
    const link = readNextLink(await ann('GET Condition?_count=1')) ?? ''
    assert.equal((await ann(`GET ${link.replace('/Condition?', '/Observation?')}`)).status, 400)
    assert.equal((await ann(`GET ${link}&patient=bob`)).status, 400)
    assert.equal((await ann(`GET ${link.slice(0, -3)}AAA`)).status, 400)
    assert.equal((await ann('GET Condition?_gateway-page=junk')).status, 400)
  })
})

describe('a search parameter that the gateway cannot evaluate', () => {
  const mixed = () =>
    upstream.answerJson(searchset([observation('oa', 'ann'), observation('ob', 'bob')], { total: 2 }))

  for (const query of [
    'code-value-quantity=http://loinc.org|1$gt5',
    'component-code-value-quantity=x$5',
    'code:in=http://example.org/ValueSet/x',
    'code:not-in=ValueSet/x',
    'code:below=http://snomed.info/sct|1',
    'identifier:of-type=http://x|MR|1',
    '_text=fever',
    '_content=fever',
    '_list=$current-problems',
    'site-code=7',
    'site-code:exact=7',
  ])
    it(`is sent as ${query}, and the response is checked, counted and paged like any other (GATEWAY-14)`, async () => {
      mixed()
      const reply = await ann(`GET Observation?${query}&_count=5`)
      assert.equal(getLastRequest(), `GET /up/Observation?${query}&_count=6&patient=Patient/ann`)
      assert.deepEqual([reply.status, readIds(reply), reply.body.total], [200, ['oa'], 1])
      assert.doesNotMatch(reply.text, /"ob"|\bbob\b/)
      const self = reply.body.link?.find(({ relation }) => relation === 'self')?.url ?? ''
      assert.equal(decodeURIComponent(self), `${BASE}/Observation?${query}&_count=5`)
      assert.equal((await ann(`GET Observation?${query}&_summary=count`)).body.total, 1)
    })

  it('is sent only for the types for which it is configured', async () => {
    upstream.answerJson(searchset([patient('ann'), patient('bob')]))
    assert.deepEqual(readIds(await ann('GET Patient?mrn=1')), ['ann'])
    assert.equal(getLastRequest(), 'GET /up/Patient?mrn=1&_count=51&_id=ann')
    assert.equal((await ann('GET Condition?mrn=1')).status, 400)
  })

  it('is refused if it could search other resources or control the upstream (GATEWAY-14)', async () => {
    mixed()
    const before = upstream.seen.length
    for (const query of [
      'unknown=1',
      '_filter=subject.name eq "Bob"',
      '_query=x',
      '_getpages=1',
      'subject:below=Patient/bob',
      'encounter:above=Encounter/1',
      'subject:Patient.mrn=1',
      'patient.mrn=1',
      'site-code.mrn=1',
      'site-code:Patient=1',
      'code-value-quantity:not=x',
      '_text:x=1',
      '_has:Condition:patient:site-code=1',
    ])
      assert.equal((await ann(`GET Observation?${encodeURI(query)}`)).status, 400, query)
    assert.equal((await ann('GET ?_type=Observation,Condition&site-code=1')).status, 400)
    assert.equal((await ann('DELETE Observation?site-code=1')).status, 400)
    const { status } = await ann('POST Observation', observation('', 'ann'), { 'if-none-exist': 'code:in=x' })
    assert.equal(status, 400)
    assert.equal(upstream.seen.length, before)
  })

  it('is sent as _list only for Lists that the caller may read', async () => {
    const list = (id: string, of: string) => ({
      resourceType: 'List',
      id,
      status: 'current',
      mode: 'working',
      subject: { reference: `Patient/${of}` },
    })
    upstream.answer((request, response) => {
      const url = request.url ?? ''
      if (url.startsWith('/up/List/la')) return json(response, list('la', 'ann'))
      if (url.startsWith('/up/List/lb')) return json(response, list('lb', 'bob'))
      return json(response, searchset([observation('oa', 'ann')]))
    })
    assert.deepEqual(readIds(await ann('GET Observation?_list=la')), ['oa'])
    assert.equal(getLastRequest(), 'GET /up/Observation?_list=la&_count=51&patient=Patient/ann')
    assert.deepEqual(readIds(await ann('GET Observation?_list=la,lb')), ['oa'])
    assert.equal(getLastRequest(), 'GET /up/Observation?_list=la&_count=51&patient=Patient/ann')
    for (const value of ['lb', 'no/id', 'lb,lb']) {
      const reply = await ann(`GET Observation?_list=${value}`)
      assert.deepEqual([reply.status, readIds(reply), reply.body.total], [200, [], 0], value)
      assert(!getLastRequest().includes('_list'), value)
    }
  })
})

describe('an upstream that ignores a parameter', () => {
  const only = { ...observation('o1', 'ann', { identifier: [{ value: 'OLD' }] }), meta: { versionId: '1' } }
  const body = {
    resourceType: 'Observation',
    status: 'final',
    code: { text: 'x' },
    subject: { reference: 'Patient/ann' },
  }
  const writes = () => upstream.seen.filter(it => !it.line.startsWith('GET') && !it.line.includes('_search'))
  let from = 0
  const sent = () => writes().slice(from)
  beforeEach(() => {
    from = writes().length
    upstream.answer((request, response) => {
      const path = (request.url ?? '').replace('/up', '')
      if (request.method === 'POST' && path === '')
        return json(response, {
          resourceType: 'Bundle',
          type: 'transaction-response',
          entry: [{ response: { status: '201' } }],
        })
      if (request.method === 'DELETE') return response.writeHead(204).end()
      if (request.method !== 'GET') return json(response, { ...body, id: 'new' }, 201)
      json(
        response,
        path.startsWith('/Observation?') || path.startsWith('/Patient/') ? searchset([only]) : only,
      )
    })
  })

  for (const who of ['ann', 'all'])
    it(`causes no wrong write by a condition of ${who} (GATEWAY-6)`, async () => {
      const by = fhir.as(who)
      const deletion = await by('DELETE Observation?identifier=NEW')
      assert.deepEqual([deletion.status, sent()], [204, []])
      assert.match(String(upstream.seen.at(-1)?.headers.prefer), /handling=strict/)
      assert.equal((await by('PATCH Observation?identifier=NEW', [], PATCH)).status, 404)
      assert.equal((await by('PUT Observation?identifier=NEW', body)).status, 201)
      assert.equal((await by('POST Observation', body, { 'if-none-exist': 'identifier=NEW' })).status, 201)
      assert.deepEqual(
        sent().map(it => [it.line, it.headers['if-none-exist']]),
        [
          ['POST /up/Observation', undefined],
          ['POST /up/Observation', undefined],
        ],
      )
      const request = { method: 'POST', url: 'Observation', ifNoneExist: 'identifier=NEW' }
      const bundle = { resourceType: 'Bundle', type: 'transaction', entry: [{ resource: body, request }] }
      assert.equal((await by('POST ', bundle)).status, 200)
      assert.deepEqual(JSON.parse(sent().at(-1)?.body ?? '').entry[0].request, {
        method: 'POST',
        url: 'Observation',
      })
      assert.equal((await by('DELETE Observation?identifier=OLD')).status, 204)
      assert.equal(sent().at(-1)?.line, 'DELETE /up/Observation/o1')
      const existing = await by('POST Observation', body, { 'if-none-exist': 'identifier=old' })
      assert.deepEqual([existing.status, existing.body.id], [200, 'o1'])
    })

  it('causes a refusal of a condition whose value is too long to compare', async () => {
    const query = `value-string=${'a'.repeat(1_001)}&-site-defined=x`
    for (const who of ['ann', 'all']) {
      const refused = await fhir.as(who)(`DELETE Observation?${query}`)
      assert.match(readIssue(refused), /^400 too-costly: .*value-string: it has more than 1000 characters/)
    }
    assert.deepEqual(sent(), [])
  })

  it('cannot add resources to a search result (GATEWAY-6)', async () => {
    for (const line of ['GET Observation?identifier=NEW', 'GET Observation?status=cancelled&code:text=x'])
      assert.deepEqual([readIds(await ann(line)), (await ann(line)).body.total], [[], 0], line)
    assert.deepEqual(readIds(await ann('GET Observation?identifier=old&code:text=anything')), ['o1'])
    assert.equal((await ann('GET Observation?identifier=NEW&_summary=count')).body.total, 0)
    assert.deepEqual(readIds(await fhir.as('all')('GET ?_type=Observation&identifier=NEW')), [])
  })

  it('cannot reveal by short pages how many resources are left out, with or without search modes', async () => {
    const all = Array.from({ length: 6 }, (_, at) =>
      observation(`o${at}`, at === 2 ? 'bob' : 'ann', { identifier: [{ value: at % 2 ? 'OTHER' : 'MINE' }] }),
    )
    const plain = (resources: readonly object[], more: object) =>
      searchset([], { entry: resources.map(resource => ({ resource })), ...more })
    for (const [bundleOf, query] of [
      [searchset, ''],
      [plain, ''],
      [plain, '&_include=Observation:encounter'],
      [plain, '&_include=Observation:has-member'],
    ] as const) {
      upstream.answer((request, response) => {
        const { searchParams } = new URL(request.url ?? '', upstream.url)
        const [at, count] = [Number(searchParams.get('at') ?? 0), Number(searchParams.get('_count') ?? 2)]
        const url = `${upstream.url}/Observation?at=${at + count}&_count=${count}`
        const more = at + count < all.length ? { link: [{ relation: 'next', url }] } : {}
        json(response, bundleOf(all.slice(at, at + count), more))
      })
      const first = await ann(`GET Observation?identifier=MINE&_count=1${query}`)
      assert.deepEqual(readIds(first), ['o0'])
      const second = await ann(`GET ${readNextLink(first)}`)
      assert.deepEqual([readIds(second), readNextLink(second)], [['o4'], undefined], query)
    }
  })
})
