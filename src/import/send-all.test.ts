import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { openRepository, type Repository } from '../backends/sqlite/index.ts'
import { type HapiUpstream, startHapi } from '../backends/upstream/testing/hapi/start-hapi.ts'
import { isFailure } from '../core/index.ts'
import { sendAll } from './send-all.ts'

const patient = (id: string, more = {}) => ({ resourceType: 'Patient', id, ...more })
const encounter = (id: string, more: object) => ({
  resourceType: 'Encounter',
  id,
  status: 'finished',
  class: { code: 'AMB' },
  ...more,
})
const link = (id: string) => ({ link: [{ other: { reference: `Patient/${id}` }, type: 'refer' }] })

function describeBundle({ type, entry }: { type: string; entry: { request: { url: string } }[] }): string {
  return `${type} ${entry
    .map(it => it.request.url)
    .toSorted()
    .join()}`
}

function refuseAll(body: string): Response {
  const { entry } = JSON.parse(body)
  return Response.json({ entry: entry.map(() => ({ response: { status: '409 Conflict' } })) })
}

describe('sendAll', () => {
  let upstream: HapiUpstream
  /** Batches that the server refuses before it accepts one. */
  let refusals = 0
  let running = 0
  let most = 0
  before(async () => {
    upstream = await startHapi()
  })
  after(() => upstream.close())

  async function fetchCounted(url: string, init: RequestInit): Promise<Response> {
    most = Math.max(most, ++running)
    try {
      if (url === upstream.url && refusals-- > 0) return refuseAll(String(init.body))
      return await fetch(url, init)
    } finally {
      running -= 1
    }
  }

  async function send(resources: readonly object[]) {
    const { url: to } = upstream
    const repository: Repository = openRepository({ file: ':memory:', baseUrl: to })
    repository.load(resources as never)
    const options = { repository, to, fetch: fetchCounted, authorization: () => undefined }
    const sent = await sendAll(options).finally(() => repository.close())
    assert(!isFailure(sent))
    return sent
  }

  /** The Bundles since the last call: `batch Patient/a,Patient/b`. */
  let shown = 0
  function listBundles(): readonly string[] {
    const bodies = upstream.seen.slice(shown).flatMap(it => (it.path === '' ? [JSON.parse(it.body)] : []))
    shown = upstream.seen.length
    return bodies.map(describeBundle)
  }

  it('sends the resource that is referred to first, whatever its type, and its own URL as a relative reference (CLI-5)', async () => {
    const subject = { reference: `${upstream.url}/Patient/a` }
    const sent = await send([
      encounter('late', { subject, partOf: { reference: 'Encounter/early' } }),
      encounter('early', { subject }),
      patient('a'),
    ])
    assert.deepEqual(sent, { created: 3, updated: 0, unchanged: 0, refused: [] })
    assert.deepEqual(listBundles(), ['batch Patient/a', 'batch Encounter/early', 'batch Encounter/late'])
  })

  it('sends resources that refer to each other as one transaction (CLI-5)', async () => {
    const sent = await send([patient('x', link('y')), patient('y', link('x')), patient('z', link('x'))])
    assert.deepEqual([sent.created, sent.refused], [3, []])
    assert.deepEqual(listBundles(), ['transaction Patient/x,Patient/y', 'batch Patient/z'])
  })

  it('counts a resource whose version stays as unchanged', async () => {
    await send([patient('same'), patient('changed')])
    const sent = await send([patient('same'), patient('changed', { gender: 'female' })])
    assert.deepEqual(sent, { created: 0, updated: 1, unchanged: 1, refused: [] })
  })

  it('reports the reason of the server for each refused resource (CLI-5)', async () => {
    const { refused, created } = await send([
      patient('85'),
      patient('fine'),
      encounter('e', { subject: { reference: 'Patient/85' } }),
    ])
    assert.equal(created, 1)
    assert.deepEqual(
      refused.map(it => `${it.reference} ${it.status} ${it.reason}`),
      [
        'Encounter/e 400 HAPI-1094: Resource Patient/85 not found, specified in path: Encounter.subject',
        'Patient/85 400 HAPI-0960: Can not create resource with ID: no client may assign a numeric ID',
      ],
    )
  })

  it('sends refused resources again once others are stored (CLI-5)', async () => {
    refusals = 1
    listBundles()
    const sent = await send([patient('p'), encounter('q', { subject: { reference: 'Patient/p' } })])
    assert.deepEqual(sent, { created: 2, updated: 0, unchanged: 0, refused: [] })
    assert.deepEqual(listBundles(), ['batch Encounter/q', 'batch Patient/p', 'batch Encounter/q'])
  })

  it('uses several connections', async () => {
    await send(Array.from({ length: 500 }, (_, at) => patient(`many${at}`)))
    assert.equal(most, 4)
  })
})
