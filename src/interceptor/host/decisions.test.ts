import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import { after, before, beforeEach, describe, it } from 'node:test'
import type { AuditRecord } from '../../audit-record/index.ts'
import type { DecisionTrail, HostOptions } from '../interceptor.ts'
import { auth, leakyHosts, makeBundle, makeCondition, TestHost } from '../testing/test-host.ts'

for (const [name, start] of Object.entries(leakyHosts))
  describe(`onDecision in front of ${name}`, () => {
    const host = new TestHost(start)
    let records: AuditRecord[] = []
    const errors: unknown[] = []
    let listener: NonNullable<HostOptions['onDecision']> = () => {}
    let running: Awaited<ReturnType<TestHost['run']>>
    const condition = makeCondition('1', { id: 'c1' })
    /** The request is recorded after its response was sent. */
    let recorded = Promise.withResolvers<void>()
    const send = async (line: string, scope?: string, body?: unknown, more: object = {}) => {
      recorded = Promise.withResolvers<void>()
      const answer = await host.send(line, scope, body, running, more)
      await recorded.promise
      return answer
    }
    before(async () => {
      running = await host.run({
        onError: error => errors.push(error),
        onDecision: record => {
          records.push(record)
          recorded.resolve()
          return listener(record)
        },
        stored: async () => condition,
      })
    })
    after(() => host.close())
    beforeEach(() => {
      records = []
      errors.length = 0
      listener = () => {}
      host.respondWith(condition)
    })

    it('has a request that cannot be read as refused, without quoting its body (LIBRARY-10)', async () => {
      const scope = 'patient/*.cruds'
      // Each framework has its own types.
      const unsupported = name === 'express' ? 'application/fhir+json; charset=x' : 'text/nonsense'
      const unreadable: readonly [body: string, type: string, reason: string, status: number][] = [
        ['{"family": Lindqvist}', 'application/fhir+json', 'it is malformed', 400],
        [`"${'x'.repeat(2_000_000)}"`, 'application/fhir+json', 'it is too large', 413],
        ['{}', unsupported, 'its content type is not supported', 415],
      ]
      for (const [body, type, reason, status] of unreadable) {
        const answer = await send('POST /Condition', scope, body, { 'content-type': type })
        const [record] = records.splice(0)
        const expected = [false, status, `Cannot read request: ${reason}`]
        assert.deepEqual([record?.allowed, answer.status, record?.reason], expected, type)
      }
    })

    it('has who, what, for which patient and by which scope, without a token or name (LIBRARY-10)', async () => {
      const trace = '0af7651916cd43dd8448eb211c80319c'
      await send('GET /Condition/c1?_format=json', 'patient/Condition.rs', undefined, {
        traceparent: `00-${trace}-b7ad6b7169203331-01`,
      })
      assert.deepEqual(JSON.parse(JSON.stringify(records)), [
        {
          at: auth.now,
          server: 'fhir',
          kind: 'fhir',
          interaction: 'read',
          allowed: true,
          status: 200,
          method: 'GET',
          request: 'Condition/c1?_format=json',
          type: 'Condition',
          id: 'c1',
          patient: '1',
          client: 'app',
          subject: 'c-1',
          fhirUser: 'Practitioner/p1',
          by: 'patient/Condition.rs',
          token: 'j-1',
          requestId: trace,
          address: '127.0.0.1',
          anonymous: false,
        },
      ])
    })

    it('has the X-Request-Id of the response: of the host, the client or the trace, or a new one (LIBRARY-14)', async () => {
      const trace = '0af7651916cd43dd8448eb211c80319c'
      const cases: readonly (readonly [sent: Record<string, string>, own: string | undefined, id: RegExp])[] =
        [
          [{}, undefined, /^[\da-f-]{36}$/],
          [{ 'x-request-id': 'client-7' }, undefined, /^client-7$/],
          [{ 'x-request-id': '<script>' }, undefined, /^[\da-f-]{36}$/],
          [{ 'x-request-id': 'x'.repeat(129) }, undefined, /^[\da-f-]{36}$/],
          [{ traceparent: `00-${trace}-b7ad6b7169203331-01` }, undefined, new RegExp(`^${trace}$`)],
          [{ 'x-request-id': 'client-7' }, 'host-8', /^host-8$/],
        ]
      for (const [sent, own, id] of cases)
        for (const scope of ['patient/*.rs', 'system/*.rs']) {
          host.respondWith(condition, 200, own === undefined ? {} : { 'X-Request-Id': own })
          const { headers } = await send('GET /Condition/c1', scope, undefined, sent)
          assert.match(headers.get('x-request-id') ?? '', id)
          assert.equal(records.at(-1)?.requestId, headers.get('x-request-id'))
        }
      for (const authorization of ['', auth.bearer({ scope: 'patient/Patient.rs' })]) {
        const { headers } = await send('GET /Condition/c1', '', undefined, { authorization })
        assert.match(headers.get('x-request-id') ?? '', /^[\da-f-]{36}$/)
        assert.equal(records.at(-1)?.requestId, headers.get('x-request-id'))
      }
      host.respondWith({ resourceType: 'CapabilityStatement' })
      for (const path of ['/metadata', '/.well-known/smart-configuration']) {
        const sent = { 'x-request-id': 'm-1' }
        const { headers } = await host.send(`GET ${path}`, '', undefined, running, sent)
        assert.equal(headers.get('x-request-id'), 'm-1')
      }
    })

    it('names the patients of a response that no scope limits (LIBRARY-10)', async () => {
      const two = makeBundle(condition, makeCondition('2', { id: 'c2' }))
      for (const scope of ['user/*.rs', 'system/*.rs']) {
        host.respondWith(two)
        await send('GET /Condition', scope)
        assert.deepEqual(records.at(-1)?.patients, ['1', '2'], scope)
        host.handler = (_request, response) => {
          response.write(JSON.stringify(two).slice(0, 50))
          response.end(Buffer.from(JSON.stringify(two).slice(50)))
        }
        await send('GET /Condition', scope)
        assert.deepEqual(records.at(-1)?.patients, ['1', '2'], `${scope} in parts`)
      }
      host.respondWith('x'.repeat(5_000_000))
      await send('GET /Condition', 'system/*.rs')
      assert.deepEqual(records.at(-1)?.patients, ['*'])
    })

    it('is called for refusals, by token, scope, patient and content (LIBRARY-10)', async () => {
      const refusals: readonly (readonly [line: string, scope: string, more: object, reason: RegExp])[] = [
        ['GET /Condition/c1', '', { authorization: 'Basic eDp5' }, /^Missing or non-Bearer/],
        ['GET /Condition/c1', '', { authorization: 'Bearer x.y.z' }, /^The token is not accepted: it is not/],
        ['GET /Condition/c1', 'patient/Patient.rs', {}, /^Insufficient scope for GET on Condition/],
        ['GET /Condition?patient=2', 'patient/*.rs', {}, /cannot limit the request|Not within/],
        ['GET /nothing/like/this/here', 'patient/*.rs', {}, /./],
      ]
      for (const [line, scope, more, reason] of refusals) {
        const { status } = await send(line, scope, undefined, more)
        const [record] = records.splice(0)
        assert.deepEqual([record?.allowed, record?.status], [false, status], line)
        assert.match(record?.reason ?? '', reason)
        assert.equal(record?.anonymous, 'authorization' in more)
      }
      host.respondWith(makeCondition('2', { id: 'c1' }))
      assert.equal((await send('GET /Condition/c1')).status, 403)
      assert.deepEqual([records[0]?.allowed, records[0]?.status, records[0]?.patient], [false, 403, '1'])
    })

    it('has the reason of a refusal as in the diagnostics of the response (LIBRARY-10)', async () => {
      let tell = Promise.withResolvers<AuditRecord>()
      const strict = await host.run({ contexts: ['patient'], onDecision: record => tell.resolve(record) })
      const refusals: readonly (readonly [line: string, scope: string, body: unknown, reason: RegExp])[] = [
        ['GET /Condition', 'patient/*.rs', undefined, /the search must name the patient of the token/],
        ['GET /Condition?patient=1', 'user/*.rs', undefined, /This server accepts no user\/ scopes\. /],
        ['GET /Patient/2', 'patient/*.rs', undefined, /covers only the patient of the token/],
        ['PUT /Condition/c1', 'patient/*.cud', condition, /it does not provide the stored content/],
        ['POST /Condition', 'patient/*.cud', makeCondition('2'), /The content of the write is not within/],
        ['POST /Condition', 'patient/*.cud', undefined, /the body was not read/],
      ]
      for (const [line, scope, body, reason] of refusals) {
        tell = Promise.withResolvers()
        const { text } = await host.send(line, scope, body, strict)
        const record = await tell.promise
        assert.match(record.reason ?? '', reason)
        assert.equal(record.reason, JSON.parse(text).issue[0].diagnostics)
      }
    })

    it('names a resource outside the grant in the response of the host, but not to the client (LIBRARY-13)', async () => {
      const z = makeCondition('2', { id: 'z', note: [{ text: 'Lindqvist' }] })
      const contained = /contained Condition\/z, which is not within the grant$/
      const cases: readonly (readonly [line: string, body: unknown, expected: RegExp])[] = [
        ['GET /Condition?patient=1', makeBundle(condition, z), contained],
        ['GET /Patient/1/Condition', makeBundle(z), contained],
        ['GET /Condition/c1', z, contained],
        ['GET /Practitioner/p2', z, contained],
        ['GET /Condition?patient=1', '<html>', /was not a FHIR resource in JSON$/],
      ]
      for (const [line, body, expected] of cases) {
        host.respondWith(body)
        const { status, text } = await send(line)
        assert.equal(status, 403)
        assert.doesNotMatch(text, /contained|z\b|was not/)
        const [record] = records.splice(0)
        assert.deepEqual([record?.allowed, record?.status], [false, 403])
        assert.match(record?.reason ?? '', expected)
        assert.match(String(errors.splice(0)), expected)
      }
      host.respondWith(makeCondition('2', { id: 'c1' }))
      await send('GET /Condition/c1')
      const entry = { response: { status: '200' }, resource: makeBundle(z) }
      host.respondWith({ resourceType: 'Bundle', type: 'batch-response', entry: [entry] })
      assert.doesNotMatch(JSON.stringify([records, errors]), /contained/)
      const search = { request: { method: 'GET', url: 'Condition?patient=1' } }
      const batch = { resourceType: 'Bundle', type: 'batch', entry: [search] }
      assert.doesNotMatch((await send('POST /', 'patient/*.cruds', batch)).text, /Condition\/z|Lindqvist/)
      assert.match(String(errors.splice(0)), contained)
    })

    it('reports a response that cannot be checked, and sends a 500 even if onError fails', async () => {
      host.respondWith(condition, 200, { 'content-encoding': 'gzip' })
      assert.equal((await send('GET /Condition/c1')).status, 500)
      assert.deepEqual([records[0]?.allowed, records[0]?.status], [false, 500])
      assert.match(String(errors), /The response to GET \/fhir\/Condition\/c1 was refused: /)
      const onError = () => {
        throw new Error('broken')
      }
      const failing = await host.run({ onError })
      assert.equal((await host.send('GET /Condition/c1', 'patient/*.rs', undefined, failing)).status, 500)
    })

    it('tells a failure of the host from a refusal, and names the user of an expired token', async () => {
      host.respondWith('stack trace', 500)
      assert.equal((await send('GET /Condition/c1')).status, 500)
      assert.deepEqual([records[0]?.allowed, records[0]?.status], [true, 500])
      const token = { authorization: auth.bearer({ jti: 'launch.1', exp: auth.now / 1000 + 1 }) }
      await send('GET /Condition/c1', '', undefined, token)
      auth.now += 2000
      await send('GET /Condition/c1', '', undefined, token)
      const { allowed, status, subject, launch, anonymous } = records.at(-1) ?? {}
      assert.deepEqual([allowed, status, subject, launch, anonymous], [false, 401, 'c-1', 'launch', false])
    })

    it('has a record for a write, and for each entry of a Bundle', async () => {
      host.handler = (_request, response) =>
        response.writeHead(201, { location: 'Condition/new/_history/1' }).end()
      await send('POST /Condition', 'patient/*.cruds', makeCondition('1'))
      assert.deepEqual([records[0]?.interaction, records[0]?.id, records[0]?.patient], ['create', 'new', '1'])
      records = []
      const entry = [{ response: { status: '200' }, resource: condition }]
      host.respondWith({ resourceType: 'Bundle', type: 'batch-response', entry })
      await send('POST /', 'patient/*.cruds', {
        resourceType: 'Bundle',
        type: 'batch',
        entry: [{ request: { method: 'GET', url: 'Condition/c1' } }],
      })
      assert.deepEqual(
        records.map(it => [it.interaction, it.by, it.patient]),
        [
          ['batch', 'entries', '1'],
          ['read', 'patient/*.cruds', '1'],
        ],
      )
    })

    it('records the refusal of an entry whose content is outside the grant', async () => {
      const entry = [
        { response: { status: '200' }, resource: condition },
        { response: { status: '200' }, resource: makeCondition('2', { id: 'c2' }) },
      ]
      host.respondWith({ resourceType: 'Bundle', type: 'batch-response', entry })
      const read = (id: string) => ({ request: { method: 'GET', url: `Condition/${id}` } })
      const batch = { resourceType: 'Bundle', type: 'batch', entry: [read('c1'), read('c2')] }
      assert.equal((await send('POST /', 'patient/*.cruds', batch)).status, 200)
      assert.deepEqual(
        records.map(it => [it.interaction, it.id, it.allowed, it.status]),
        [
          ['batch', undefined, true, 200],
          ['read', 'c1', true, 200],
          ['read', 'c2', false, 403],
        ],
      )
    })

    it('records a request whose client left before the response, with an unknown outcome', async () => {
      const arrived = Promise.withResolvers<void>()
      host.handler = () => arrived.resolve()
      recorded = Promise.withResolvers<void>()
      const sent = request(`${running.url}/fhir/Condition/c1`, {
        headers: { authorization: auth.bearer({ scope: 'system/*.rs' }) },
      })
      sent.on('error', () => {})
      sent.end()
      await arrived.promise
      sent.destroy()
      await recorded.promise
      assert.deepEqual([records[0]?.allowed, records[0]?.status, records[0]?.patients], [true, 0, ['*']])
      if (!sent.closed) await once(sent, 'close')
    })

    it('breaks no request, and reports an error once until it succeeds again (LIBRARY-10)', async () => {
      const bad = [
        () => {
          throw new Error('broken')
        },
        () => Promise.reject(new Error('broken')) as unknown as undefined,
      ]
      for (const broken of bad) {
        errors.length = 0
        for (const next of [broken, broken, () => {}, broken, () => {}]) {
          listener = next
          assert.equal((await send('GET /Condition/c1')).status, 200)
        }
        assert.deepEqual(errors.map(String), ['Error: broken', 'Error: broken'])
      }
    })

    it('is not called for metadata and preflights, which are not decided', async () => {
      assert.equal((await host.send('GET /metadata', '', undefined, running)).status, 200)
      const preflight = { origin: 'http://app.test', 'access-control-request-method': 'GET' }
      assert.equal((await host.send('OPTIONS /Condition', '', undefined, running, preflight)).status, 204)
      await send('GET /Condition/c1')
      assert.equal(records.length, 1)
    })

    it('refuses every request while the trail has no room, and records it as soon as it has (LIBRARY-11)', async () => {
      const taken: AuditRecord[] = []
      let hasRoom = false
      const done = Promise.withResolvers<void>()
      const trail: DecisionTrail = {
        hasRoom: () => hasRoom,
        send(record) {
          taken.push(record)
          done.resolve()
        },
      }
      const audited = await host.run({ trail })
      const before = host.requests
      const refused = await host.send('GET /Condition/c1', 'patient/*.rs', undefined, audited)
      assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '2'])
      assert.match(refused.why, /cannot be recorded/)
      assert.equal(host.requests, before)
      hasRoom = true
      assert.equal((await host.send('GET /Condition/c1', 'patient/*.rs', undefined, audited)).status, 200)
      await done.promise
      assert.equal(taken.length, 1)
    })
  })
