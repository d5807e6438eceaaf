import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { after, before, describe, it } from 'node:test'
import { fullAccess } from '../../../smart/index.ts'
import { condition, createAuthenticator, type Fhir, patientAccess } from '../../sqlite/testing/fhir.ts'
import { chunk } from '../chunk.ts'
import type { GatewayOptions } from '../index.ts'
import { type HostileUpstream, json, searchset, startHostile } from '../testing/hostile-upstream.ts'
import { startGateway } from '../testing/start-gateway.ts'

const identified = (more: object = {}) =>
  condition('c', 'ann', { identifier: [{ system: 'urn:test', value: '1' }], ...more })
const created = { ...identified(), id: undefined }
const changed = identified({ code: { text: 'Cold' } })
const entry = (method: string, url: string, more: object = {}, resource?: object) => ({
  ...(resource && { resource }),
  request: { method, url, ...more },
})
const transaction = (...entries: readonly object[]) => ({
  resourceType: 'Bundle',
  type: 'transaction',
  entry: entries,
})
const ONCE = 'identifier=urn:test|1'
const PATCH = { 'content-type': 'application/json-patch+json' }

interface Write {
  readonly line: string
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** Whether the resource exists before the write. */
  readonly exists?: true
}

/** Every kind of write. */
const WRITES: Readonly<Record<string, Write>> = {
  create: { line: 'POST Condition', body: created },
  'conditional create': { line: 'POST Condition', body: created, headers: { 'if-none-exist': ONCE } },
  update: { line: 'PUT Condition/c', body: changed, exists: true },
  'update that creates': { line: 'PUT Condition/c', body: changed },
  'conditional update': { line: `PUT Condition?${ONCE}`, body: changed, exists: true },
  'conditional update that creates': { line: `PUT Condition?${ONCE}`, body: created },
  patch: {
    line: 'PATCH Condition/c',
    body: [{ op: 'add', path: '/note', value: [{ text: 'once' }] }],
    headers: PATCH,
    exists: true,
  },
  'patch that adds to a list': {
    line: 'PATCH Condition/c',
    body: [{ op: 'add', path: '/identifier/-', value: { value: 'once' } }],
    headers: PATCH,
    exists: true,
  },
  'conditional patch': {
    line: `PATCH Condition?${ONCE}`,
    body: [{ op: 'add', path: '/identifier/-', value: { value: 'once' } }],
    headers: PATCH,
    exists: true,
  },
  delete: { line: 'DELETE Condition/c', exists: true },
  'conditional delete': { line: `DELETE Condition?${ONCE}`, exists: true },
  'transaction of a create': { line: 'POST ', body: transaction(entry('POST', 'Condition', {}, created)) },
  'transaction of a conditional create': {
    line: 'POST ',
    body: transaction(entry('POST', 'Condition', { ifNoneExist: ONCE }, created)),
  },
  'transaction of an update': {
    line: 'POST ',
    body: transaction(entry('PUT', 'Condition/c', {}, changed)),
    exists: true,
  },
  'transaction of a delete': {
    line: 'POST ',
    body: transaction(entry('DELETE', 'Condition/c')),
    exists: true,
  },
  'transaction of several': {
    line: 'POST ',
    body: transaction(
      entry('POST', 'Condition', {}, created),
      entry('PUT', 'Condition/c', {}, changed),
      entry('PUT', 'Condition/new', {}, condition('new', 'ann')),
    ),
    exists: true,
  },
}

type Answer = (response: ServerResponse, body: object, version: number) => void
const JSON_HEADERS = { 'content-type': 'application/fhir+json' }
const withStatus =
  (status: number): Answer =>
  (response, body, version) =>
    status === 204 ? response.writeHead(204).end() : json(response, body, status, { etag: `W/"${version}"` })

/** Answers to a write that was carried out, and the statuses of the gateway that are true. */
const DONE: Readonly<Record<string, readonly [answer: Answer, expected: RegExp]>> = {
  ...Object.fromEntries([200, 201, 202].map(it => [String(it), [withStatus(it), /^20[0-4]$/]])),
  ...Object.fromEntries([500, 502].map(it => [String(it), [withStatus(it), /^502$/]])),
  // A transaction is answered with a Bundle.
  '204': [withStatus(204), /^(?:20[0-4]|502)$/],
  '503': [withStatus(503), /^503$/],
  '504': [withStatus(504), /^504$/],
  'a redirect': [
    (it: ServerResponse) => it.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(),
    /^502$/,
  ],
  'a page': [
    (it: ServerResponse) => it.writeHead(200, { 'content-type': 'text/html' }).end('<p>Sign in'),
    /^502$/,
  ],
  'broken JSON': [(it: ServerResponse) => it.writeHead(201, JSON_HEADERS).end('{"resourceType":'), /^502$/],
  'another resource': [(it: ServerResponse) => json(it, { resourceType: 'Basic', id: 'b' }, 201), /^502$/],
  'broken gzip': [
    (it: ServerResponse) => it.writeHead(201, { ...JSON_HEADERS, 'content-encoding': 'gzip' }).end('no'),
    /^502$/,
  ],
  'a cut before the response': [(it: ServerResponse) => it.destroy(), /^503$/],
  'a cut in the body': [
    (it: ServerResponse) => {
      it.writeHead(201, { ...JSON_HEADERS, 'content-length': '1000' }).write('{')
      setImmediate(() => it.destroy())
    },
    /^503$/,
  ],
}

const LATE: readonly Answer[] = [() => undefined, it => it.writeHead(201, JSON_HEADERS).write('{')]

const REFUSED = [400, 401, 403, 404, 405, 409, 410, 412, 413, 415, 422, 429] as const
/** A transaction is sent by POST, which proxies do not repeat. */
const isRepeatedByProxies = (name: string) => !name.startsWith('transaction')

/** A server that counts what it stores, and answers a write as a test says. */
class Storing {
  #stored = new Map<string, Stored>()
  /** How often the same write was carried out. */
  carriedOut = 0
  received = 0
  answer: Answer = withStatus(200)
  /** Carries out a write before its answer. */
  isDone = true

  begin(exists: boolean): void {
    this.#stored = new Map(exists ? [['Condition/c', { resource: identified(), version: 1 }]] : [])
    this.carriedOut = 0
    this.received = 0
  }

  handle(request: IncomingMessage, response: ServerResponse, body: string): void {
    const url = new URL(request.url ?? '', 'http://localhost')
    const path = url.pathname.replace(/^\/up\/?/, '')
    if (request.method === 'GET') this.#read(response, path, url.searchParams)
    else this.#write(response, path, request, body === '' ? undefined : JSON.parse(body))
  }

  #read(response: ServerResponse, path: string, params: URLSearchParams): void {
    const found = this.#stored.get(path)
    if (!path.includes('/') || params.size > 0)
      json(response, searchset([...this.#stored.values()].map(it => it.resource)))
    else if (found) json(response, found.resource, 200, { etag: `W/"${found.version}"` })
    else json(response, {}, 404)
  }

  #write(
    response: ServerResponse,
    path: string,
    { method = '', headers }: IncomingMessage,
    body: Body,
  ): void {
    this.received += 1
    const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = headers
    const alone = { request: { method, url: path, ifMatch, ifNoneMatch }, ...(body && { resource: body }) }
    const writes = path === '' ? (body?.entry ?? []) : [alone]
    if (!writes.every(it => this.#isCurrent(it))) json(response, {}, 412)
    else {
      if (this.isDone) this.carriedOut += 1
      const made = writes.map(it => (this.isDone ? this.#store(it) : { resource: {}, version: 1 }))
      const entry = made.map(({ version }) => ({ response: { status: '200 OK', etag: `W/"${version}"` } }))
      const bundle = { resourceType: 'Bundle', type: 'transaction-response', entry }
      this.answer(response, path === '' ? bundle : (made[0]?.resource ?? {}), made[0]?.version ?? 1)
    }
  }

  #isCurrent({ request: { url, ifMatch, ifNoneMatch } }: Sent): boolean {
    const current = this.#stored.get(url)
    return (!ifMatch || ifMatch === `W/"${current?.version}"`) && !(ifNoneMatch === '*' && current)
  }

  #store({ request: { method, url }, resource }: Sent): Stored {
    const key = method === 'POST' ? `Condition/made${this.carriedOut}` : url
    const version = (this.#stored.get(key)?.version ?? 0) + 1
    const made = { resource: { ...resource, resourceType: 'Condition', id: key.split('/')[1] }, version }
    if (method === 'DELETE') this.#stored.delete(key)
    else this.#stored.set(key, made)
    return made
  }
}

interface Stored {
  readonly resource: object
  readonly version: number
}

type Body = { readonly entry?: readonly Sent[] } | undefined

interface Sent {
  readonly request: {
    readonly method: string
    readonly url: string
    readonly ifMatch?: string | undefined
    readonly ifNoneMatch?: string | undefined
  }
  readonly resource?: object
}

const guard = createAuthenticator({ all: fullAccess, ann: patientAccess('ann') })
const CASES = Object.entries(WRITES).flatMap(([name, write]) =>
  ['ann', 'all'].map(caller => ({ title: `${name} of ${caller}`, write, caller })),
)

interface Setup {
  readonly storing: Storing
  readonly upstream: HostileUpstream
  readonly fhir: Fhir
}

async function open(options: Partial<GatewayOptions> = {}): Promise<Setup> {
  const storing = new Storing()
  const upstream = await startHostile()
  upstream.answer((request, response, body) => storing.handle(request, response, body))
  return { storing, upstream, fhir: await startGateway(upstream.url, { guard, ...options }) }
}

async function close({ fhir, upstream }: Setup): Promise<void> {
  await fhir.close()
  await upstream.close()
}

async function send({ storing, fhir }: Setup, caller: string, { line, body, headers, exists }: Write) {
  storing.begin(exists === true)
  // A response closes the circuit, which a failed write may have opened.
  await fhir.as('all')('GET Condition/absent')
  return fhir.as(caller)(line, body, headers)
}

describe('a write', () => {
  let setup: Setup
  before(async () => {
    setup = await open()
  })
  after(() => close(setup))

  for (const { title, write, caller } of CASES) {
    it(`is carried out once, whatever the answer to it: ${title} (GATEWAY-8)`, async () => {
      const { storing } = setup
      storing.isDone = true
      for (const [kind, [answer, expected]] of Object.entries(DONE)) {
        storing.answer = answer
        const reply = await send(setup, caller, write)
        assert.equal(storing.carriedOut, 1, `${kind}: ${reply.status} ${reply.text}`)
        assert.match(String(reply.status), expected, `${kind}: ${reply.text}`)
        if (reply.status >= 500) assert.match(reply.text, /may have been carried out/, kind)
      }
    })

    it(`is reported as refused if it was: ${title}`, async () => {
      const { storing } = setup
      storing.isDone = false
      for (const status of REFUSED) {
        storing.answer = withStatus(status)
        const reply = await send(setup, caller, write)
        assert.equal(storing.carriedOut, 0)
        assert.equal(reply.status, status === 401 || status === 403 ? 502 : status, reply.text)
        assert.doesNotMatch(reply.text, /may have been carried out/, String(status))
        const mayBeSentAgain = status === 409 || status === 412 || status === 401
        assert(mayBeSentAgain || storing.received === 1, String(status))
      }
    })

    if (isRepeatedByProxies(title))
      it(`is carried out once if a proxy sends it twice: ${title} (GATEWAY-8)`, async () => {
        const { storing } = setup
        storing.isDone = true
        for (const status of [409, 412]) {
          storing.answer = withStatus(status)
          await send(setup, caller, write)
          assert.equal(storing.carriedOut, 1, String(status))
        }
      })
  }

  it('is carried out once if the answer is late (GATEWAY-8)', async () => {
    for (const answer of LATE)
      for (const some of chunk(CASES, 16))
        await Promise.all(
          some.map(async ({ title, write, caller }) => {
            const late = await open({ timeoutMs: 1_000 })
            late.storing.answer = answer
            const { status, text } = await send(late, caller, write)
            await close(late)
            assert.deepEqual([late.storing.carriedOut, status], [1, 504], title)
            assert.match(text, /may have been carried out/, title)
          }),
        )
  })
})
