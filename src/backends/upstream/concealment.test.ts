import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { afterEach, describe, it } from 'node:test'
import { condition, type Fhir, NOT_WITHIN, readIssue } from '../sqlite/testing/fhir.ts'
import { computeWait } from './concealment.ts'
import { UNSEEN_BINARY_MS, UNSEEN_MS, UNSEEN_READ_MS } from './limits.ts'
import { useHostileGateway } from './testing/hostile-gateway.ts'
import { describeLine, json, searchset, type UpstreamHandler } from './testing/hostile-upstream.ts'

describe('computeWait', () => {
  it('makes every time a multiple of the same one, after the time that reads may use', () => {
    for (const elapsed of [0, 0.1, 11, 50, UNSEEN_MS - 0.1, UNSEEN_MS, 117, 1_234.5])
      assert.equal((elapsed + computeWait(elapsed, 0, UNSEEN_MS)) % UNSEEN_MS, 0, String(elapsed))
    // Resources whose reads take so long, and then as long a read or search in both cases.
    const ofRead = [0, 11, 117, UNSEEN_READ_MS]
    for (const further of [10, 150, 400]) {
      const times = ofRead.map(ms => ms + further + computeWait(ms + further, UNSEEN_READ_MS - ms, UNSEEN_MS))
      assert.deepEqual(new Set(times), new Set([further < 200 ? UNSEEN_MS : 2 * UNSEEN_MS]))
    }
  })
})

const waits: number[] = []
const start = (readMs: number) =>
  useHostileGateway({
    responseLimit: 16 * 1024 * 1024,
    timeoutMs: 10_000,
    conceal: { readMs, wait: async ms => waits.push(ms) },
  })
/** For a machine that is slow itself. */
const patient = await start(Number.POSITIVE_INFINITY)
const READ_MS = 2 * UNSEEN_READ_MS
const usual = await start(READ_MS)

const MEGABYTES = 3 * 1024 * 1024
const hidden = condition('hidden', 'bob', { note: [{ text: 'x'.repeat(MEGABYTES) }] })
const shown = condition('shown', 'ann')
const entry = (id: string) => ({ request: { method: 'GET', url: `Condition/${id}` } })

/** Requests for one resource, of which nothing may be shown. */
const REQUESTS: Readonly<Record<string, (ann: Fhir, id: string) => Promise<{ readonly status: number }>>> = {
  read: (ann, id) => ann(`GET Condition/${id}`),
  vread: (ann, id) => ann(`GET Condition/${id}/_history/1`),
  history: (ann, id) => ann(`GET Condition/${id}/_history`),
  patch: (ann, id) => ann(`PATCH Condition/${id}`, [], { 'content-type': 'application/json-patch+json' }),
  delete: (ann, id) => ann(`DELETE Condition/${id}`),
  batch: (ann, id) => ann('POST ', { resourceType: 'Bundle', type: 'batch', entry: [entry(id), entry(id)] }),
}

describe('a large resource that the caller may not see', () => {
  const { all, ann, upstream } = patient
  let sent = 0
  const serve = () =>
    upstream.answer((request, response) => {
      const of = [hidden, shown].find(({ id }) => request.url?.includes(`/Condition/${id}`))
      if (of) sent += JSON.stringify(of).length * (request.url?.includes('_history?') ? 2 : 1)
      if (of) json(response, of, 200, { etag: 'W/"1"' })
      else json(response, {}, 404)
    })

  for (const [name, send] of Object.entries(REQUESTS))
    it(`costs as many requests as an absent one, and is received once for each: ${name} (GATEWAY-10)`, async () => {
      serve()
      const counts = []
      for (const id of ['hidden', 'none']) {
        const from = upstream.seen.length
        sent = 0
        await send(ann, id)
        counts.push(upstream.seen.length - from)
        const times = name === 'batch' ? 2 : 1
        assert(sent <= times * (MEGABYTES + 1_000), `${id}: ${sent}`)
      }
      assert.equal(counts[0], counts[1])
    })

  for (const [name, send] of Object.entries(REQUESTS))
    it(`is answered after the same wait as an absent one, once for each request: ${name} (ABSENT-7)`, async () => {
      serve()
      for (const id of ['hidden', 'none']) {
        waits.length = 0
        await send(ann, id)
        assert.equal(waits.length, 1, id)
      }
    })

  it('makes nobody wait who is shown what was asked for, or may see everything', async () => {
    serve()
    waits.length = 0
    assert.equal((await ann('GET Condition/shown')).status, 200)
    assert.equal((await all('GET Condition/hidden')).status, 200)
    assert.equal((await all('GET Condition/none')).status, 404)
    upstream.answer((request, response) =>
      request.method === 'PUT' ? response.writeHead(201).end() : json(response, {}, 404),
    )
    assert.equal((await ann('PUT Condition/new', condition('new', 'ann'))).status, 201)
    assert.deepEqual(waits, [])
    serve()
    assert.equal(readIssue(await ann('GET Condition/hidden')), NOT_WITHIN)
  })
})

describe('a resource that the upstream takes long to send', () => {
  const { ann, upstream } = usual
  const NEVER = 60_000
  let open: ServerResponse[] = []
  let ended: string[] = []
  afterEach(() => {
    for (const response of open) response.destroy()
    open = []
    ended = []
  })

  /** Reads of `slow` ids are answered after a time, or never; searches count what is Ann's. */
  function serve(ofReads: Readonly<Record<string, { readonly ms: number; readonly send: UpstreamHandler }>>) {
    upstream.answer((request, response, body) => {
      const url = new URL(request.url ?? '', upstream.url)
      const [, , type = '', id = ''] = url.pathname.split('/')
      if (url.searchParams.get('_summary') === 'count')
        return json(response, searchset([], { total: url.searchParams.get('_id') === 'anns' ? 1 : 0 }))
      const read = ofReads[id]
      if (!read || request.method !== 'GET')
        return request.method === 'PUT' ? response.writeHead(201).end() : json(response, {}, 404)
      open.push(response)
      response.on('close', () => ended.push(`${type}/${id}`))
      if (read.ms < NEVER) setTimeout(() => read.send(request, response, body), read.ms)
      // Bytes that decide nothing.
      else response.writeHead(200, { 'content-type': 'application/fhir+json' }).write('{"resourceType":')
    })
  }
  const never = { ms: NEVER, send: () => undefined }
  const after = (ms: number, body: object, status = 200) => ({
    ms,
    send: (_: unknown, response: ServerResponse) => json(response, body, status, { etag: 'W/"1"' }),
  })
  const seenFrom = (from: number) => upstream.seen.slice(from).map(describeLine)
  const LONG = READ_MS + 300

  for (const name of ['read', 'history', 'patch', 'delete'] as const)
    it(`is refused before it has arrived, after the same requests as one that is absent as slowly: ${name} (ABSENT-7)`, async () => {
      serve({ hidden: never, none: after(LONG, {}, 404) })
      const requests = []
      for (const id of ['hidden', 'none']) {
        const from = upstream.seen.length
        waits.length = 0
        const reply = await REQUESTS[name]?.(ann, id)
        assert.equal(reply?.status, 403)
        assert.equal(waits.length, 1)
        requests.push(
          seenFrom(from)
            .map(line => line.replaceAll(id, '[id]'))
            .toSorted(),
        )
      }
      assert.deepEqual(requests[0], requests[1])
      assert.equal(requests[0]?.length, 3)
      assert.ok(ended.includes('Condition/hidden'))
    })

  it("is shown if it is the caller's, after one more request; none if it arrives soon (ABSENT-7)", async () => {
    const own = condition('anns', 'ann')
    waits.length = 0
    for (const [ms, requests] of [
      [LONG, 3],
      [0, 1],
    ] as const) {
      serve({ anns: after(ms, own) })
      const from = upstream.seen.length
      assert.equal((await ann('GET Condition/anns')).status, 200)
      assert.equal(upstream.seen.length - from, requests, seenFrom(from).join())
    }
    assert.deepEqual(waits, [])
  })

  it('is awaited where the upstream does not count (ABSENT-7)', async () => {
    upstream.answer((request, response) => {
      if (/_summary=count/.test(request.url ?? '')) json(response, {}, 400)
      else setTimeout(json, LONG, response, condition('anns', 'ann'))
    })
    assert.equal((await ann('GET Condition/anns')).status, 200)
  })

  it('is gone if it was deleted, unless its last content takes long (ABSENT-7)', async () => {
    const last = { resourceType: 'Bundle', type: 'history', entry: [{ resource: condition('gone', 'ann') }] }
    upstream.answer((request, response) => {
      if (/_history/.test(request.url ?? '')) json(response, last)
      else if (/_summary=count/.test(request.url ?? ''))
        setTimeout(json, 600, response, searchset([], { total: 0 }))
      else setTimeout(json, LONG, response, {}, 410)
    })
    assert.equal((await ann('GET Condition/gone')).status, 410)
    upstream.answer((request, response) => {
      if (/_history/.test(request.url ?? '')) open.push(response)
      else json(response, {}, 410)
    })
    assert.equal(readIssue(await ann('GET Condition/gone')), NOT_WITHIN)
  })

  it('is created if it is absent: the response to a PUT tells that (ABSENT-7)', async () => {
    serve({ none: after(LONG, {}, 404) })
    assert.equal((await ann('PUT Condition/none', condition('none', 'ann'))).status, 201)
  })

  it('is not read for further entries of a batch: a search decides first (ABSENT-7)', async () => {
    serve({ hidden: never, anns: after(0, condition('anns', 'ann')) })
    const from = upstream.seen.length
    const reads = ['hidden', 'hidden', 'anns', 'none'].map(entry)
    const reply = await ann('POST ', { resourceType: 'Bundle', type: 'batch', entry: reads })
    assert.deepEqual(
      reply.body.entry?.map(it => it.response?.status.slice(0, 3)),
      ['403', '403', '200', '403'],
    )
    const lines = seenFrom(from).map(line => /Condition\/(\w+)$/.exec(line)?.[1] ?? 'count')
    assert.deepEqual(
      lines.filter(it => it !== 'count'),
      ['hidden', 'anns'],
    )
  })
})

describe('a Binary that the caller may not see', () => {
  const { ann, upstream } = usual
  it('is answered later than others, like an absent one: no search finds it by its patient (ABSENT-7)', async () => {
    const binary = { resourceType: 'Binary', id: 'hidden', contentType: 'text/plain', data: 'AAAA' }
    upstream.answer((request, response) => {
      const isRead = /\/Binary\/hidden$/.test(request.url ?? '')
      if (/DocumentReference/.test(request.url ?? '')) json(response, searchset([]))
      else json(response, isRead ? binary : {}, isRead ? 200 : 404)
    })
    for (const id of ['hidden', 'none']) {
      waits.length = 0
      assert.equal((await ann(`GET Binary/${id}`)).status, 403)
      assert.ok((waits[0] ?? 0) > UNSEEN_BINARY_MS / 2, String(waits))
      const naming = {
        resourceType: 'DocumentReference',
        status: 'current',
        subject: { reference: 'Patient/ann' },
      }
      const content = [{ attachment: { url: `Binary/${id}` } }]
      waits.length = 0
      assert.equal((await ann('POST DocumentReference', { ...naming, content })).status, 403)
      assert.ok((waits[0] ?? 0) > UNSEEN_BINARY_MS / 2, String(waits))
    }
  })
})
