import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { condition, NOT_WITHIN, readIssue } from '../sqlite/testing/fhir.ts'
import { computeWait } from './concealment.ts'
import { UNSEEN_MS } from './limits.ts'
import { useHostileGateway } from './testing/hostile-gateway.ts'
import { json } from './testing/hostile-upstream.ts'

describe('computeWait', () => {
  it('makes every time a multiple of the same one', () => {
    for (const elapsed of [0, 0.1, 11, 50, UNSEEN_MS - 0.1, UNSEEN_MS, 117, 1_234.5])
      assert.equal((elapsed + computeWait(elapsed)) % UNSEEN_MS, 0, String(elapsed))
    // HAPI: an absent resource, one of 3 MB and one of 8 MB.
    for (const elapsed of [0, 11, 117, 350, UNSEEN_MS - 1])
      assert.equal(elapsed + computeWait(elapsed), UNSEEN_MS, String(elapsed))
  })
})

const waits: number[] = []
const { all, ann, upstream } = await useHostileGateway({
  responseLimit: 16 * 1024 * 1024,
  timeoutMs: 10_000,
  conceal: async elapsed => waits.push(elapsed),
})

const MEGABYTES = 3 * 1024 * 1024
const hidden = condition('hidden', 'bob', { note: [{ text: 'x'.repeat(MEGABYTES) }] })
const shown = condition('shown', 'ann')
const entry = (id: string) => ({ request: { method: 'GET', url: `Condition/${id}` } })

/** Requests for one resource, of which nothing may be shown. */
const REQUESTS: Readonly<Record<string, (id: string) => Promise<{ readonly status: number }>>> = {
  read: id => ann(`GET Condition/${id}`),
  vread: id => ann(`GET Condition/${id}/_history/1`),
  history: id => ann(`GET Condition/${id}/_history`),
  patch: id => ann(`PATCH Condition/${id}`, [], { 'content-type': 'application/json-patch+json' }),
  delete: id => ann(`DELETE Condition/${id}`),
  batch: id => ann('POST ', { resourceType: 'Bundle', type: 'batch', entry: [entry(id), entry(id)] }),
}

describe('a large resource that the caller may not see', () => {
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
        await send(id)
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
        await send(id)
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
