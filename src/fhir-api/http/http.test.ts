import assert from 'node:assert/strict'
import { type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { json } from 'node:stream/consumers'
import { describe, it } from 'node:test'
import type { FastifyInstance, InjectOptions } from 'fastify'
import { AuditUnavailable, type FhirAudit, type FinishedRequest } from '../../audit/index.ts'
import { createOutcome, failFor, formatExact, type Refused } from '../../fhir/index.ts'
import { type Authenticated, type Authenticator, fullAccess, noAccess } from '../../smart/index.ts'
import {
  createAccessCache,
  createFhirApi,
  type Failure,
  type FhirRequest,
  type FhirResponse,
} from '../index.ts'

interface TestApi {
  readonly app: FastifyInstance
  /** The steps of the last request, in order. */
  readonly events: string[]
  readonly requests: FhirRequest[]
  readonly finished: FinishedRequest[]
  ask(line: string, more?: InjectOptions): Promise<string>
}

interface Setting {
  readonly guard?: Authenticator
  /** Replaces functions of an audit trail that records everything. `none` for no trail. */
  readonly audit?: Partial<FhirAudit> | 'none'
  readonly perform?: (request: FhirRequest) => Promise<FhirResponse | Failure>
}

const unknown: Refused = { allowed: false, status: 401, headers: {}, outcome: createOutcome('login', 'Who?') }

/** Permits everything except Observations. */
const caller: Authenticated = {
  allowed: true,
  decide: interaction =>
    'type' in interaction && interaction.type === 'Observation'
      ? { allowed: false, status: 403, headers: {}, outcome: createOutcome('forbidden', 'Not this') }
      : { allowed: true, access: fullAccess, by: 'user/*.cruds' },
}

const OBSERVATION = { kind: 'read', type: 'Observation', id: '1', params: [] } as const

const authenticate = (authorization: string | undefined) =>
  authorization === 'Bearer all' ? caller : unknown

/** Starts a FHIR API whose backend only records that it was called. */
async function open(setting: Setting = {}): Promise<TestApi> {
  const { guard = { authenticate }, audit = {}, perform = answer } = setting
  const [events, requests, finished]: [string[], FhirRequest[], FinishedRequest[]] = [[], [], []]
  const recordAuthentication: Authenticator['authenticate'] = authorization => {
    // A request with a body is authenticated again when it has arrived.
    if (events.at(-1) !== 'authenticated') events.push('authenticated')
    return guard.authenticate(authorization)
  }
  const trail: FhirAudit = {
    serve: async () => ({ status: 200, body: '"from the trail"' }),
    prepare: async () => void events.push('prepared'),
    deliver: async () => true,
    redeliver: async () => {},
    recordPatients: async () => {},
    createRecords: async () => [],
    createBegunRecords: async () => [],
    async intend() {
      events.push('announced')
      return 'intent'
    },
    async complete(_intent, it) {
      events.push(`completed ${it.status}`)
      finished.push(it)
    },
    async record(it) {
      events.push(`recorded ${it.status}`)
      finished.push(it)
    },
  }
  const app = await createFhirApi(
    {
      baseUrl: 'http://fhir.test/fhir',
      guard: { authenticate: recordAuthentication },
      audit: audit === 'none' ? undefined : { ...trail, ...audit },
      clock: () => 7,
      bodyLimit: 100,
      smartConfiguration: {},
    },
    {
      capabilities() {
        events.push('performed')
        return '{}'
      },
      pages: { parameter: '_page', seal: () => '', open: () => undefined },
      accessCache: createAccessCache(),
      forRequest(request) {
        requests.push(request)
        const performed = (it: FhirRequest) => {
          events.push('performed')
          return perform(it)
        }
        return {
          get rows() {
            return notHere()
          },
          read: notHere,
          search: notHere,
          collect: notHere,
          history: notHere,
          everything: notHere,
          findDocuments: () => [],
          findMatch: () => ({ match: undefined }),
          commit: () => ({ kind: 'committed', committed: [] }),
          panelMembers: () => ({ includes: () => false }),
          passThrough: performed,
        }
      },
    },
  )
  const failed = new WeakSet<object>()
  app.addHook('onError', async request => void failed.add(request))
  app.addHook('onSend', async (request, reply) => {
    if (!failed.has(request) && /^\/fhir(?:\/|$)/.test(request.url)) events.push(`sent ${reply.statusCode}`)
  })
  const ask: TestApi['ask'] = async (line, more) => {
    const [method = '', path = ''] = line.split(' ')
    events.length = 0
    const reply = await app.inject({
      method: method as 'GET',
      url: `/fhir${path}`,
      headers: { authorization: 'Bearer all', 'content-type': 'application/json' },
      ...more,
    })
    return `${events.join(', ')}; ${reply.statusCode}`
  }
  return { app, events, requests, finished, ask }
}

function notHere(): never {
  throw new Error('Not expected here')
}

async function answer(): Promise<FhirResponse> {
  return { status: 200, body: '"done"' }
}

const withoutToken: InjectOptions = { headers: {} }

describe('the FHIR API', () => {
  it('authenticates, decides, performs and records a request before it responds (AUDIT-2)', async () => {
    const { ask, requests, finished } = await open()
    assert.equal(await ask('GET /Patient/1'), 'authenticated, performed, recorded 200, sent 200; 200')
    const [{ interaction, access, by, authenticated } = assert.fail()] = requests
    assert.deepEqual(
      [interaction.kind, access, by, authenticated.allowed],
      ['read', fullAccess, 'user/*.cruds', true],
    )
    const [{ at, method, address, authenticated: recorded, status, responseBody: body } = assert.fail()] =
      finished
    assert.deepEqual(
      [at, method, address, recorded, status, body],
      [7, 'GET', '/Patient/1', authenticated, 200, '"done"'],
    )
  })

  it('records the intent of a write before it writes, and the result before it responds', async () => {
    const { ask, requests } = await open()
    const line = 'authenticated, announced, performed, completed 200, sent 200; 200'
    assert.equal(await ask('POST /Patient', { payload: '{"a":1.0}' }), line)
    assert.equal(formatExact(requests[0]?.body), '{"a":1.0}')
    const refuse = async () => {
      throw new AuditUnavailable('unreachable')
    }
    assert.equal(
      await (await open({ audit: { intend: refuse } })).ask('DELETE /Patient/1'),
      'authenticated; 503',
    )
    const fail = () => Promise.reject(new Error('Cannot work'))
    const failing = 'authenticated, announced, performed, completed 500; 500'
    assert.equal(await (await open({ perform: fail })).ask('DELETE /Patient/1'), failing)
  })

  it('responds in the same way without an audit trail', async () => {
    const { ask } = await open({ audit: 'none' })
    assert.equal(await ask('GET /Patient/1'), 'authenticated, performed, sent 200; 200')
    assert.equal(await ask('GET /AuditEvent/1'), 'authenticated, performed, sent 200; 200')
    assert.equal(await ask('GET /Patient/1', withoutToken), 'authenticated, sent 401; 401')
    const absent = async () => failFor('absent', { type: 'Patient', id: '1' })
    const { ask: miss } = await open({ audit: 'none', perform: absent })
    assert.equal(await miss('GET /Patient/1'), 'authenticated, performed, sent 404; 404')
  })

  it('refuses a caller that a synchronous or asynchronous authenticator rejects', async () => {
    for (const guard of [authenticate, async (it?: string) => authenticate(it)]) {
      const { ask, finished } = await open({ guard: { authenticate: guard } })
      assert.equal(await ask('GET /Patient/1', withoutToken), 'authenticated, recorded 401, sent 401; 401')
      assert.equal(await ask('POST /Patient', withoutToken), 'authenticated, recorded 401, sent 401; 401')
      assert.deepEqual(
        finished.map(it => [it.interaction.kind, it.problem?.reason, it.authenticated]),
        [
          ['read', 'refused', undefined],
          ['create', 'refused', undefined],
        ],
      )
      assert.equal(await ask('GET /Patient/1'), 'authenticated, performed, recorded 200, sent 200; 200')
    }
  })

  it('counts decisions by outcome and reason, and whether tokens were cached (METRIC-2)', async () => {
    const outside = async () => failFor('outside-access')
    const { ask, app } = await open({ perform: outside })
    await ask('GET /Patient/1')
    await ask('GET /Observation/1')
    await ask('GET /Patient/1', withoutToken)
    const { body } = await app.inject('/metrics')
    const lines = body.match(/^sallyport_(?:decisions|cache_lookups)_total.*(?= )..$/gm)
    assert.deepEqual(lines, [
      'sallyport_decisions_total{outcome="allowed",reason="scope"} 1',
      'sallyport_decisions_total{outcome="refused",reason="outside-access"} 1',
      'sallyport_decisions_total{outcome="refused",reason="other"} 2',
      'sallyport_cache_lookups_total{cache="token",result="hit"} 2',
      'sallyport_cache_lookups_total{cache="token",result="miss"} 0',
      'sallyport_cache_lookups_total{cache="access",result="hit"} 0',
      'sallyport_cache_lookups_total{cache="access",result="miss"} 0',
    ])
  })

  it('refuses every request if the authenticator fails', async () => {
    const rejects = await open({
      guard: { authenticate: () => Promise.reject(new Error('Cannot authenticate')) },
    })
    assert.equal(await rejects.ask('GET /Patient/1'), 'authenticated; 500')
    assert.equal(await rejects.ask('POST /Patient', { payload: '{}' }), 'authenticated; 500')
  })

  it('responds with 401 before it reads the body', async () => {
    const { app, events } = await open()
    await app.listen({ port: 0, host: '127.0.0.1' })
    const { port } = app.server.address() as AddressInfo
    const reply = await new Promise<IncomingMessage>((resolve, reject) => {
      const headers = { 'content-type': 'application/json', 'content-length': 50 }
      const signal = AbortSignal.timeout(5_000)
      const url = `http://127.0.0.1:${port}/fhir/Patient`
      const sent = request(url, { method: 'POST', headers, signal, agent: false })
      sent.once('response', resolve).once('error', reject).flushHeaders()
    })
    const { resourceType } = (await json(reply)) as { readonly resourceType: string }
    reply.destroy()
    await app.close()
    assert.deepEqual([reply.statusCode, resourceType], [401, 'OperationOutcome'])
    assert.deepEqual(events, ['authenticated', 'recorded 401', 'sent 401'])
  })

  it('requires no token for public documents, and grants no access there', async () => {
    const { ask, requests } = await open()
    assert.equal(await ask('GET /metadata', withoutToken), 'performed, recorded 200, sent 200; 200')
    assert.equal(
      await ask('GET /.well-known/smart-configuration', withoutToken),
      'recorded 200, sent 200; 200',
    )
    assert.deepEqual(
      requests.map(it => [it.access, it.by, it.authenticated.grant]),
      [
        [noAccess, 'public', undefined],
        [noAccess, 'public', undefined],
      ],
    )
    assert.equal(await ask('OPTIONS /Patient/1', withoutToken), 'sent 204; 204')
  })

  it('performs no request that is refused, malformed or in an unsupported format', async () => {
    const { ask, finished } = await open()
    const cases: readonly (readonly [line: string, status: number, problem: string, more?: InjectOptions])[] =
      [
        ['GET /Observation/1', 403, 'refused'],
        ['GET /Nothing/1', 404, 'resource-type-unknown'],
        ['GET /Patient/1?_format=xml', 406, 'not-acceptable'],
        ['POST /Patient', 400, 'body-malformed', { payload: '{' }],
      ]
    for (const [line, status, problem, more] of cases) {
      assert.equal(await ask(line, more), `authenticated, recorded ${status}, sent ${status}; ${status}`)
      assert.equal(finished.at(-1)?.problem?.reason, problem)
    }
    assert.equal(await ask('POST /Patient', { payload: '1'.repeat(101) }), 'authenticated; 413')
  })

  it('performs no request whose token ends while the body arrives (BEARER-10)', async () => {
    let isRevoked = false
    const guard: Authenticator = { authenticate: () => (isRevoked ? unknown : caller) }
    const { ask } = await open({ guard })
    const body = async function* () {
      isRevoked = true
      yield '{}'
    }
    const more = { payload: Readable.from(body()) }
    assert.equal(await ask('POST /Patient', more), 'authenticated, recorded 401, sent 401; 401')
  })

  it('refuses a request that no scope permits before its body is read (BUNDLE-1)', async () => {
    const refuses = (kind: string): Authenticator => ({
      authenticate: () => ({
        ...caller,
        decide: (it, work) => caller.decide(it.kind === kind ? OBSERVATION : it, work),
      }),
    })
    const cases = [
      ['bundle', 'POST /', 'application/fhir+json'],
      ['create', 'POST /Patient', 'application/fhir+json'],
      ['update', 'PUT /Patient/1', 'application/fhir+json'],
      ['patch', 'PATCH /Patient/1', 'application/json-patch+json'],
      ['search-type', 'POST /Patient/_search', 'application/x-www-form-urlencoded'],
    ] as const
    for (const [kind, line, type] of cases) {
      const { app, events } = await open({ guard: refuses(kind) })
      await app.listen({ port: 0, host: '127.0.0.1' })
      const { port } = app.server.address() as AddressInfo
      const [method, path = ''] = line.split(' ')
      // The body never comes.
      const headers = { authorization: 'Bearer all', 'content-type': type, 'content-length': '50' }
      const sending = request({ port, host: '127.0.0.1', method, path: `/fhir${path}`, headers })
      sending.flushHeaders()
      const reply = await new Promise<IncomingMessage>((resolve, reject) =>
        sending.once('response', resolve).once('error', reject),
      )
      assert.equal(reply.statusCode, 403, line)
      assert.deepEqual(events, ['authenticated', 'recorded 403', 'sent 403'], line)
      sending.destroy()
      await app.close()
    }
  })

  it('reads the parameters of a posted search from the form', async () => {
    const { ask, requests } = await open()
    const headers = { authorization: 'Bearer all', 'content-type': 'application/x-www-form-urlencoded' }
    await ask('POST /Patient/_search', { headers, payload: 'name=x' })
    assert.deepEqual(requests[0]?.interaction, {
      kind: 'search-type',
      type: 'Patient',
      posted: true,
      params: [['name', 'x']],
    })
  })

  it('serves AuditEvents from the audit trail, never from the backend', async () => {
    const { ask, app } = await open()
    assert.equal(await ask('GET /AuditEvent/1'), 'authenticated, recorded 200, sent 200; 200')
    assert.equal(
      await ask('POST /AuditEvent', { payload: '{}' }),
      'authenticated, recorded 200, sent 200; 200',
    )
    const reply = await app.inject({ url: '/fhir/AuditEvent', headers: { authorization: 'Bearer all' } })
    assert.equal(reply.body, '"from the trail"')
    const refused = await open({ audit: { serve: async () => failFor('outside-access') } })
    assert.equal(await refused.ask('GET /AuditEvent/1'), 'authenticated, recorded 403, sent 403; 403')
    assert.equal(refused.finished[0]?.problem?.reason, 'outside-access')
  })

  it('sends no response that it cannot record', async () => {
    const record = async () => {
      throw new AuditUnavailable('unreachable')
    }
    const { ask } = await open({ audit: { record } })
    assert.equal(await ask('GET /Patient/1'), 'authenticated, performed; 503')
    assert.equal(await ask('GET /Patient/1', withoutToken), 'authenticated; 503')
    assert.equal(await ask('GET /Nothing/1'), 'authenticated; 503')
  })

  it('records a failed request, and a response that could not be recorded', async () => {
    const fail = async () => {
      throw new Error('Cannot work')
    }
    const failing = await open({ perform: fail })
    assert.equal(await failing.ask('GET /Patient/1'), 'authenticated, performed, recorded 500; 500')
    const statuses: number[] = []
    const record = async ({ status }: FinishedRequest) => {
      statuses.push(status)
      if (status === 200) throw new Error('Cannot read the answer')
    }
    const unrecorded = await open({ audit: { record } })
    assert.equal(await unrecorded.ask('GET /Patient/1'), 'authenticated, performed; 500')
    assert.deepEqual(statuses, [200, 500])
  })

  it('responds with 503 and Retry-After if the database is unavailable', async () => {
    const full = Object.assign(new Error('database or disk is full'), { errcode: 13 })
    const { app, ask } = await open({ perform: () => Promise.reject(full) })
    assert.equal(await ask('GET /Patient/1'), 'authenticated, performed, recorded 503; 503')
    assert.equal(await ask('DELETE /Patient/1'), 'authenticated, announced, performed, completed 503; 503')
    const reply = await app.inject({ url: '/fhir/Patient/1', headers: { authorization: 'Bearer all' } })
    assert.ok(reply.headers['retry-after'])
    const { ask: askBug } = await open({ perform: () => Promise.reject(new Error('a bug')) })
    assert.equal(await askBug('GET /Patient/1'), 'authenticated, performed, recorded 500; 500')
  })

  it('serves only URLs below the base', async () => {
    const { app, events } = await open()
    assert.equal((await app.inject({ url: '/healthz' })).statusCode, 200)
    assert.equal((await app.inject({ url: '/Patient/1' })).statusCode, 404)
    assert.equal((await app.inject({ url: '/fhirs/Patient/1' })).statusCode, 404)
    assert.deepEqual(events, [])
    assert.equal((await app.inject({ url: '/fhir' })).statusCode, 401)
  })
})
