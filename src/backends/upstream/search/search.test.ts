import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import type { Access } from '../../../smart/index.ts'
import {
  condition,
  createAuthenticator,
  observation,
  patientAccess,
  type Reply,
  readIds,
  readNextLink,
} from '../../sqlite/testing/fhir.ts'
import { json, searchset, startHostile } from '../testing/hostile-upstream.ts'
import { startGateway } from '../testing/start-gateway.ts'

/** Two granular scopes: no search parameter expresses `or`. */
const either: Access = {
  filterFor: type =>
    type === 'Observation'
      ? ['lab', 'vital'].map(code => ({ patient: 'ann', query: [['category', code]] as const }))
      : [],
}

/** Access to laboratory results and vital signs of a patient, and to the Patient. */
const chart: Access = {
  filterFor: (type, letter) => (type === 'Patient' ? [{ patient: 'ann' }] : either.filterFor(type, letter)),
}

/** A clause that servers read differently, and that is not sent. */
const without: Access = {
  filterFor: type =>
    type === 'Observation' ? [{ patient: 'ann', query: [['category:not', 'other']] as const }] : [],
}

const upstream = await startHostile()
const fhir = await startGateway(upstream.url, {
  guard: createAuthenticator({ either, ann: patientAccess('ann'), chart }),
  narrowing: 'parameter',
})
after(async () => {
  await fhir.close()
  await upstream.close()
})

const of = (category: string, id: string) =>
  observation(id, 'ann', { category: [{ coding: [{ code: category }] }] })

/** Pages of the upstream, which ignores every parameter: letters stand for a category each. */
function holds(pages: readonly string[]): void {
  const codes: Readonly<Record<string, string>> = { l: 'lab', v: 'vital', x: 'other' }
  upstream.answer((request, response) => {
    if (/\/Patient\/ann$/.test(request.url ?? ''))
      return json(response, { resourceType: 'Patient', id: 'ann' })
    const at = Number(/page=(\d+)/.exec(request.url ?? '')?.[1] ?? 0)
    const found = [...(pages[at] ?? '')].map((letter, place) =>
      of(codes[letter] ?? '', `${letter}${at}${place}`),
    )
    const link =
      at + 1 < pages.length ? [{ relation: 'next', url: `${upstream.url}/Observation?page=${at + 1}` }] : []
    json(response, searchset(found, { link }))
  })
}

/** All pages, from the first. */
async function pagesOf(line: string): Promise<readonly Reply[]> {
  const replies: Reply[] = []
  for (let next: string | undefined = line; next !== undefined; ) {
    const reply: Reply = await fhir.as('either')(next)
    replies.push(reply)
    next = readNextLink(reply) && `GET ${readNextLink(reply)}`
  }
  return replies
}

const idsIn = (replies: readonly Reply[]) => replies.map(reply => readIds(reply).join(' '))

describe('a search that the upstream cannot express', () => {
  it('has full pages of resources within the grant, each of them once', async () => {
    holds(['xlxxv', 'xxxxx', 'lvl', 'x'])
    assert.deepEqual(idsIn(await pagesOf('GET Observation?_count=2')), ['l01 l20', 'l22 v04', 'v21'])
    assert.deepEqual(idsIn(await pagesOf('GET Observation?_count=3')), ['l01 l20 l22', 'v04 v21'])
    assert.deepEqual(idsIn(await pagesOf('GET Observation')), ['l01 l20 l22 v04 v21'])
  })

  it('is a search for each granular scope', async () => {
    holds(['l'])
    const before = upstream.seen.length
    await fhir.as('either')('GET Observation?_count=1&code=y')
    assert.deepEqual(
      upstream.seen.slice(before).map(it => decodeURIComponent(it.line)),
      ['lab', 'vital'].map(it => `GET /up/Observation?code=y&_count=2&patient=Patient/ann&category=${it}`),
    )
  })

  it('requests many resources at once where many may be left out', async () => {
    holds(['x'])
    const guard = createAuthenticator({ without })
    const app = await startGateway(upstream.url, { guard, narrowing: 'parameter', profile: 'if-none-match' })
    const before = upstream.seen.length
    await app.as('without')('GET Observation?_count=1')
    const line = decodeURIComponent(upstream.seen[before]?.line ?? '')
    assert.equal(line, 'GET /up/Observation?_count=100&_sort=_id&patient=Patient/ann')
    await app.close()
  })

  it('reveals by no link or total which resources are left out (GATEWAY-5)', async () => {
    const findPage = async (pages: readonly string[]) => {
      holds(pages)
      const { body } = await fhir.as('either')('GET Observation?_count=1')
      return [body.total, body.link?.map(it => it.relation), body.entry?.length]
    }
    for (const pages of [['l'], ['lx'], ['xl', 'xx', 'x'], ['l', 'x', 'x']])
      assert.deepEqual(await findPage(pages), [1, ['self'], 1], pages.join())
    for (const pages of [[''], ['xx'], ['x', 'x']])
      assert.deepEqual(await findPage(pages), [0, ['self'], undefined], pages.join())
    assert.deepEqual(await findPage(['xx', 'lx', 'v']), [undefined, ['self', 'next'], 1])
  })

  it('ends with a clear error if too many resources are left out', async () => {
    const link = [{ relation: 'next', url: `${upstream.url}/Observation?more` }]
    upstream.answerJson(searchset([of('other', 'x')], { link }))
    const before = upstream.seen.length
    const reply = await fhir.as('either')('GET Observation')
    assert.deepEqual([reply.status, reply.body.issue?.[0]?.code], [400, 'too-costly'])
    assert.equal(upstream.seen.length - before, 51)
  })

  it('returns only includes of returned matches', async () => {
    const included = (id: string) => ({ resourceType: 'Practitioner', id })
    const shown = (id: string, by: string) => ({
      ...of('lab', id),
      performer: [{ reference: `Practitioner/${by}` }],
    })
    const access: Access = {
      filterFor: (type, letter) => (type === 'Practitioner' ? 'everything' : either.filterFor(type, letter)),
    }
    const app = await startGateway(upstream.url, {
      guard: createAuthenticator({ one: access }),
      narrowing: 'parameter',
    })
    upstream.answerJson(
      searchset([shown('a', 'p'), shown('b', 'q')], {
        entry: [
          { resource: shown('a', 'p'), search: { mode: 'match' } },
          { resource: shown('b', 'q'), search: { mode: 'match' } },
          { resource: included('p'), search: { mode: 'include' } },
          { resource: included('q'), search: { mode: 'include' } },
        ],
      }),
    )
    const reply = await app.as('one')('GET Observation?_count=1&_include=Observation:performer')
    assert.deepEqual([readIds(reply), readIds(reply, 'include')], [['a'], ['p']])
    upstream.answer((request, response) => {
      const isFirst = !request.url?.includes('more')
      const link = isFirst ? [{ relation: 'next', url: `${upstream.url}/Observation?more` }] : []
      const match = { resource: shown(isFirst ? 'a' : 'b', 'p'), search: { mode: 'match' } }
      json(
        response,
        searchset([], { entry: [match, { resource: included('p'), search: { mode: 'include' } }], link }),
      )
    })
    const both = await app.as('one')('GET Observation?_include=Observation:performer')
    assert.deepEqual([readIds(both), readIds(both, 'include')], [['a', 'b'], ['p']])
    await app.close()
  })
})

describe('a search over several types', () => {
  it('has pages of the gateway', async () => {
    upstream.answer((request, response) => {
      const isFirst = !request.url?.includes('more')
      const found = isFirst ? [condition('cb', 'bob')] : [condition('ca', 'ann')]
      const link = isFirst ? [{ relation: 'next', url: `${upstream.url}?more` }] : []
      json(response, searchset(found, { link }))
    })
    const reply = await fhir.as('ann')('GET ?_type=Condition&_count=1')
    assert.deepEqual([readIds(reply), readNextLink(reply)], [['ca'], undefined])
  })
})

describe('a page that is longer than requested', () => {
  it('is refused with 400, not 500', async () => {
    // More than a function takes as arguments.
    const entry = Array(130_000).fill(
      '{"resource":{"resourceType":"Condition","subject":{"reference":"Patient/ann"}}}',
    )
    const body = `{"resourceType":"Bundle","entry":[${entry}]}`
    upstream.answer((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/fhir+json' }).end(body)
    })
    assert.equal((await fhir.as('ann')('DELETE Condition?code=x')).status, 400)
  })
})

describe('a chain to the only patient of the caller', () => {
  it('takes one read and one search, and no search if the patient does not match', async () => {
    upstream.answer((request, response) =>
      json(
        response,
        /\/Patient\/ann$/.test(request.url ?? '')
          ? { resourceType: 'Patient', id: 'ann', gender: 'female' }
          : searchset([of('lab', 'o')]),
      ),
    )
    const findRequests = async (gender: string) => {
      const from = upstream.seen.length
      const reply = await fhir.as('ann')(`GET Observation?patient.gender=${gender}`)
      return [readIds(reply), upstream.seen.slice(from).map(it => decodeURIComponent(it.line))]
    }
    const read = 'GET /up/Patient/ann'
    assert.deepEqual(await findRequests('female'), [
      ['o'],
      [read, 'GET /up/Observation?patient=Patient/ann&_count=51'],
    ])
    assert.deepEqual(await findRequests('male'), [[], [read]])
  })
})

describe('$everything', () => {
  it('takes one read and one request, with a list of types only if the caller may not see every type of a record', async () => {
    holds(['l'])
    const findRequests = async (caller: string) => {
      const from = upstream.seen.length
      assert.equal((await fhir.as(caller)('GET Patient/ann/$everything')).body.total, 1)
      return upstream.seen.slice(from).map(it => decodeURIComponent(it.line))
    }
    const read = 'GET /up/Patient/ann'
    assert.deepEqual(await findRequests('ann'), [read, `${read}/$everything?_count=51`])
    assert.deepEqual(await findRequests('chart'), [
      read,
      `${read}/$everything?_count=100&_type=Observation,Patient`,
    ])
  })

  it('has its own pages, by which resources that are left out cannot be counted', async () => {
    const findPage = async (pages: readonly string[], query = '?_count=2') => {
      holds(pages)
      const { body, status } = await fhir.as('chart')(`GET Patient/ann/$everything${query}`)
      return [status, body.entry?.map(it => it.resource?.id), body.link?.map(it => it.relation), body.total]
    }
    for (const pages of [['lv'], ['xl', 'x', 'vx'], ['lx', 'v', 'x']])
      assert.deepEqual((await findPage(pages)).slice(2), [['self'], 2], pages.join())
    assert.deepEqual(await findPage(['xl', 'xv', 'l']), [200, ['l01', 'v11'], ['self', 'next'], undefined])
    assert.deepEqual((await findPage(['l'], '?_count=x'))[0], 400)
  })

  it('shows an included Patient once, however many pages are hidden by a granular scope', async () => {
    const ann = { resource: { resourceType: 'Patient', id: 'ann' }, search: { mode: 'include' } }
    const findPage = async (pages: number) => {
      upstream.answer((request, response) => {
        const at = Number(/page=(\d+)/.exec(request.url ?? '')?.[1] ?? 0)
        if (/Patient\/ann$/.test(request.url ?? '')) return json(response, ann.resource)
        const match = { resource: of(at === 0 ? 'lab' : 'other', `o${at}`), search: { mode: 'match' } }
        const link = at + 1 < pages ? [{ relation: 'next', url: `${upstream.url}?page=${at + 1}` }] : []
        return json(response, searchset([], { entry: [match, ann], link }))
      })
      const { body } = await fhir.as('chart')('GET Patient/ann/$everything')
      return [body.entry?.map(it => it.resource?.id), body.link?.map(it => it.relation), body.total]
    }
    for (const pages of [1, 2, 5]) assert.deepEqual(await findPage(pages), [['o0', 'ann'], ['self'], 1])
  })

  it('shows resources that the upstream includes on every page once, and only of the requested types', async () => {
    const entry = (resource: object, mode: string) => ({ resource, search: { mode } })
    upstream.answer((request, response) => {
      const page = Number(/page=(\d)/.exec(request.url ?? '')?.[1] ?? 0)
      if (/Patient\/ann$/.test(request.url ?? ''))
        return json(response, { resourceType: 'Patient', id: 'ann' })
      const link = page < 3 ? [{ relation: 'next', url: `${upstream.url}?page=${page + 1}` }] : []
      const shown = [
        entry(condition(`c${page}`, 'ann'), 'match'),
        entry({ resourceType: 'Practitioner', id: 'dr' }, 'include'),
        entry({ resourceType: 'Organization', id: `org${page}` }, 'include'),
      ]
      return json(response, searchset([], { entry: shown, link }))
    })
    const all = async (query: string) => {
      const ids: (string | undefined)[] = []
      for (let next: string | undefined = `Patient/ann/$everything?${query}`; next !== undefined; ) {
        const page: Reply = await fhir.as('ann')(`GET ${next}`)
        assert.equal(page.status, 200, page.text)
        ids.push(...(page.body.entry ?? []).map(it => it.resource?.id))
        next = readNextLink(page)
      }
      return ids.toSorted().join(' ')
    }
    for (const count of [1, 2, 3, 5, 50])
      assert.equal(await all(`_count=${count}`), 'c0 c1 c2 c3 dr org0 org1 org2 org3', String(count))
    assert.equal(await all('_type=Condition&_count=2'), 'c0 c1 c2 c3')
    assert.equal(await all('_type=Condition,Practitioner&_count=2'), 'c0 c1 c2 c3 dr')
  })
})
