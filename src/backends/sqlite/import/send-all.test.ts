import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import type { FastifyInstance } from 'fastify'
import { fhirServer, openRepository, type Repository } from '../index.ts'
import { sendAll } from './send-all.ts'

const to = 'http://other.test/fhir'

interface Put {
  readonly resource: { readonly id: string }
  readonly request: { readonly url: string }
}

/** The embedded server, which refuses references to absent resources and ids of digits, as HAPI does by default. */
class StrictServer {
  readonly bundles: { readonly type: string; readonly urls: readonly string[] }[] = []
  /** Batches that it refuses before it accepts one. */
  refusals = 0
  most = 0
  #running = 0
  readonly #app: FastifyInstance
  constructor(app: FastifyInstance) {
    this.#app = app
  }

  readonly fetch = async (url: string, init: RequestInit): Promise<Response> => {
    this.most = Math.max(this.most, ++this.#running)
    try {
      const payload = String(init.body)
      if (url.endsWith('/_search')) return await this.#inject('POST', url, payload, init.headers)
      const bundle: { type: string; entry: Put[] } = JSON.parse(payload)
      const { type, entry } = bundle
      this.bundles.push({ type, urls: entry.map(it => it.request.url) })
      if (this.refusals-- > 0)
        return Response.json({
          entry: entry.map(() => ({ response: { status: '409', outcome: outcomeOf('Busy') } })),
        })
      if (type === 'batch') return Response.json({ entry: await this.#putEach(entry) })
      const [missing] = await this.#findMissing(entry, entry)
      return missing
        ? Response.json(missing, { status: 400 })
        : await this.#inject('POST', url, payload, init.headers)
    } finally {
      this.#running -= 1
    }
  }

  async #putEach(entries: readonly Put[]): Promise<readonly object[]> {
    const found: object[] = []
    for (const entry of entries) {
      const [outcome] = await this.#findMissing([entry], [])
      const put = outcome ? new Response('', { status: 400 }) : await this.#put(entry)
      // HAPI writes the version alone.
      const etag = /"(.*)"/.exec(put.headers.get('etag') ?? '')?.[1]
      found.push({ response: { status: String(put.status), etag, outcome } })
    }
    return found
  }

  /** As HAPI does, a `PUT` that changes nothing keeps the version. */
  async #put({ resource, request: { url } }: Put): Promise<Response> {
    const read = await this.#app.inject({ url: `/fhir/${url}` })
    const { meta: _, ...stored } = read.json()
    return isDeepStrictEqual(stored, resource)
      ? new Response('', { status: 200, headers: { etag: String(read.headers.etag) } })
      : this.#inject('PUT', `${to}/${url}`, JSON.stringify(resource))
  }

  async #findMissing(entries: readonly Put[], together: readonly Put[]): Promise<readonly object[]> {
    const outcomes: object[] = []
    for (const { resource } of entries) {
      if (/^\d+$/.test(resource.id))
        outcomes.push(outcomeOf(`HAPI-0960: Can not create resource with ID[${resource.id}]`))
      for (const [, target = ''] of JSON.stringify(resource).matchAll(/"reference":"([^"]*)"/g)) {
        if (together.some(it => it.request.url === target)) continue
        const read = await this.#app.inject({ url: `/fhir/${target}` })
        if (read.statusCode !== 200) outcomes.push(outcomeOf(`HAPI-1094: Resource ${target} not found`))
      }
    }
    return outcomes
  }

  async #inject(
    method: 'POST' | 'PUT',
    url: string,
    payload: string,
    headers: RequestInit['headers'] = TYPE,
  ) {
    const reply = await this.#app.inject({
      method,
      url: url.slice(to.length - '/fhir'.length),
      payload,
      headers: { ...headers } as typeof TYPE,
    })
    const { etag } = reply.headers
    return new Response(reply.body, {
      status: reply.statusCode,
      ...(etag && { headers: { etag: String(etag) } }),
    })
  }
}

const TYPE = { 'content-type': 'application/fhir+json' }

function outcomeOf(diagnostics: string): object {
  return { resourceType: 'OperationOutcome', issue: [{ severity: 'error', code: 'processing', diagnostics }] }
}

const patient = (id: string, more = {}) => ({ resourceType: 'Patient', id, ...more })
const encounter = (id: string, more: object) => ({
  ...{ resourceType: 'Encounter', id, status: 'finished', class: { code: 'AMB' } },
  ...more,
})
const link = (id: string) => ({ link: [{ other: { reference: `Patient/${id}` }, type: 'refer' }] })

describe('sendAll', () => {
  let app: FastifyInstance
  let server: StrictServer
  before(async () => {
    app = await fhirServer({ baseUrl: to, dataFile: ':memory:', smartConfiguration: {} })
    server = new StrictServer(app)
  })
  after(() => app.close())

  function send(resources: readonly object[]) {
    const repository: Repository = openRepository({ file: ':memory:', baseUrl: to })
    repository.load(resources as never)
    const { fetch } = server
    server.bundles.length = 0
    return sendAll({ repository, to, fetch, authorization: () => undefined }).finally(() =>
      repository.close(),
    )
  }

  it('sends the resource that is referred to first, whatever its type, and its own URL as a relative reference', async () => {
    const subject = { reference: `${to}/Patient/a` }
    const sent = await send([
      encounter('late', { subject, partOf: { reference: 'Encounter/early' } }),
      encounter('early', { subject }),
      patient('a'),
    ])
    assert.deepEqual(sent, { created: 3, updated: 0, unchanged: 0, refused: [] })
    assert.deepEqual(
      server.bundles.map(it => it.urls.join()),
      ['Patient/a', 'Encounter/early', 'Encounter/late'],
    )
  })

  it('sends resources that refer to each other as one transaction', async () => {
    const sent = await send([patient('x', link('y')), patient('y', link('x')), patient('z', link('x'))])
    assert.deepEqual([sent.created, sent.refused], [3, []])
    assert.deepEqual(
      server.bundles.map(({ type, urls }) => `${type} ${urls.toSorted().join()}`),
      ['transaction Patient/x,Patient/y', 'batch Patient/z'],
    )
  })

  it('counts a resource whose version stays as unchanged', async () => {
    await send([patient('same'), patient('changed')])
    const sent = await send([patient('same'), patient('changed', { gender: 'female' })])
    assert.deepEqual(sent, { created: 0, updated: 1, unchanged: 1, refused: [] })
  })

  it('reports the reason of the server for each refused resource', async () => {
    const { refused, created } = await send([
      patient('85'),
      patient('fine'),
      encounter('e', { subject: { reference: 'Patient/85' } }),
    ])
    assert.equal(created, 1)
    assert.deepEqual(
      refused.map(it => `${it.reference} ${it.status} ${it.reason}`),
      [
        'Encounter/e 400 HAPI-1094: Resource Patient/85 not found',
        'Patient/85 400 HAPI-0960: Can not create resource with ID[85]',
      ],
    )
  })

  it('sends refused resources again once others are stored', async () => {
    server.refusals = 1
    const sent = await send([patient('p'), encounter('q', { subject: { reference: 'Patient/p' } })])
    assert.deepEqual(sent, { created: 2, updated: 0, unchanged: 0, refused: [] })
    assert.deepEqual(
      server.bundles.map(it => it.urls.join()),
      ['Patient/p', 'Encounter/q', 'Patient/p', 'Encounter/q'],
    )
  })

  it('uses several connections', async () => {
    await send(Array.from({ length: 500 }, (_, at) => patient(`many${at}`)))
    assert.equal(server.most, 4)
  })
})
