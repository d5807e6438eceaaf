import assert from 'node:assert/strict'
import { request as httpRequest } from 'node:http'
import { Readable } from 'node:stream'
import { after, before, beforeEach, describe, it } from 'node:test'
import type { Resource } from '../../fhir/index.ts'
import { smartOf } from '../index.ts'
import { authUrl, fhirBaseUrl, StandingAuthServer } from '../testing/auth-server.ts'
import { type Handler, leakyHosts, type RunningHost } from '../testing/leaky-hosts.ts'
import type { HostOptions } from './host.ts'

const auth = new StandingAuthServer()
const condition = (patient: string, more: object = {}) => ({
  resourceType: 'Condition',
  subject: { reference: `Patient/${patient}` },
  ...more,
})
const bundle = (...resources: object[]) => ({
  resourceType: 'Bundle',
  type: 'searchset',
  entry: resources.map(resource => ({ resource })),
})
const NOT_WITHIN = 'Not within the granted patient, user or filter.'

for (const [name, start] of Object.entries(leakyHosts)) {
  describe(`${name}Interceptor`, () => {
    let host: RunningHost
    let handler: Handler
    let asked = 0
    const store = new Map<string, Resource>()
    const options: HostOptions = {
      authUrl,
      fhirBaseUrl,
      contexts: ['patient', 'user', 'system'],
      fetch: auth.fetch,
      clock: auth.clock,
    }
    const running: RunningHost[] = []
    const run = async (more: Partial<HostOptions> = {}) => {
      const started = await start({ ...options, ...more }, (request, response) => {
        asked += 1
        handler(request, response)
      })
      running.push(started)
      return started
    }
    before(async () => {
      host = await run({ stored: async (type, id) => store.get(`${type}/${id}`) })
    })
    after(() => Promise.all(running.map(it => it.close())))
    beforeEach(() => {
      asked = 0
    })

    /** The host answers with this, whatever it is asked. */
    const answers = (body: unknown, status = 200, headers: Record<string, string> = {}) => {
      handler = (_request, response) => {
        response.writeHead(status, { 'content-type': 'application/fhir+json', etag: 'W/"1"', ...headers })
        response.end(typeof body === 'string' ? body : JSON.stringify(body))
      }
    }

    const ask = async (
      line: string,
      scope = 'patient/*.cruds',
      body?: unknown,
      on = host,
      more: object = {},
    ) => {
      const [method = '', url = ''] = line.split(' ')
      const type = typeof body === 'string' ? 'application/x-www-form-urlencoded' : 'application/fhir+json'
      const claims = { scope, fhirUser: 'Practitioner/p1' }
      const response = await fetch(`${on.url}/fhir${url}`, {
        method,
        headers: {
          authorization: auth.bearer(claims),
          ...(body !== undefined && { 'content-type': type }),
          ...more,
        },
        ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      })
      const text = await response.text()
      const outcome = text.startsWith('{"resourceType":"OperationOutcome"') ? JSON.parse(text) : undefined
      return {
        status: response.status,
        text,
        headers: response.headers,
        why: outcome?.issue[0].details?.text,
      }
    }

    it('asks for a token before all else', async () => {
      answers(condition('1'))
      for (const headers of [{}, { authorization: 'Basic YTpi' }]) {
        const response = await fetch(`${host.url}/fhir/Condition/1`, { headers })
        assert.equal(response.status, 401)
        assert.equal(response.headers.get('www-authenticate'), 'Bearer')
      }
      const token = auth.token({ scope: 'patient/*.rs' })
      assert.equal((await fetch(`${host.url}/fhir/Condition/1?access_token=${token}`)).status, 401)
      assert.equal(asked, 0)
    })

    it('refuses two Authorization headers', async () => {
      answers(condition('1'))
      const status = await new Promise(resolve => {
        const headers = ['host', 'localhost', 'authorization', auth.bearer(), 'authorization', auth.bearer()]
        httpRequest(`${host.url}/fhir/Condition/1`, { headers }, response =>
          resolve(response.resume().statusCode),
        ).end()
      })
      assert.deepEqual([status, asked], [401, 0])
    })

    it('leaves metadata, the SMART configuration and preflights to the host', async () => {
      answers({ resourceType: 'CapabilityStatement' })
      assert.equal((await fetch(`${host.url}/fhir/metadata`)).status, 200)
      assert.equal((await fetch(`${host.url}/fhir/.well-known/smart-configuration`)).status, 200)
      const headers = { origin: 'http://a.example', 'access-control-request-method': 'GET' }
      assert.equal((await fetch(`${host.url}/fhir/Patient`, { method: 'OPTIONS', headers })).status, 200)
      assert.equal((await fetch(`${host.url}/fhir/Patient`, { method: 'OPTIONS' })).status, 401)
    })

    it('does not let paths by that it does not understand', async () => {
      answers(condition('1'))
      for (const path of [
        '/%43ondition/1',
        '/Condition//1',
        '/Condition/1;x',
        '/Condition/1/',
        '/condition/1',
        '/x/y/z',
      ])
        assert.match(String((await ask(`GET ${path}`, 'system/*.cruds')).status), /^40[04]$/, path)
      assert.equal(asked, 0)
    })

    it('releases what is within the grant as the host sent it', async () => {
      answers(condition('1'), 200, { 'x-host': 'yes' })
      const { status, text, headers } = await ask('GET /Condition/1')
      assert.deepEqual([status, text], [200, JSON.stringify(condition('1'))])
      assert.deepEqual([headers.get('x-host'), headers.get('etag')], ['yes', 'W/"1"'])
    })

    it('gives one answer to what is outside, absent, gone or unchanged', async () => {
      const seen = new Set<string>()
      for (const [status, body] of [
        [200, condition('2')],
        [404, '{}'],
        [410, '{}'],
        [304, ''],
        [200, ''],
        [200, '<Condition/>'],
        [200, '[]'],
        [200, 'null'],
        [200, bundle(condition('1'))],
      ] as const) {
        answers(body, status, { 'x-secret': 'version 7' })
        const { status: told, text, headers } = await ask('GET /Condition/1')
        seen.add(JSON.stringify([told, text, headers.get('etag'), headers.get('x-secret')]))
      }
      assert.equal(seen.size, 1)
      assert.match([...seen].join(), /^\[403,.*Not within the granted patient, user or filter\./)
    })

    it('tells of a failure that there was one, and not what the host says of it', async () => {
      answers('Error: no row for Lindqvist at query.js:12', 500)
      const { status, text } = await ask('GET /Condition/1')
      assert.equal(status, 500)
      assert.equal(text.includes('Lindqvist'), false)
      const outcome = { resourceType: 'OperationOutcome', issue: [{ severity: 'error', code: 'too-costly' }] }
      answers(outcome, 429)
      assert.deepEqual(
        [(await ask('GET /Condition/1')).status, (await ask('GET /Condition/1')).text],
        [429, JSON.stringify(outcome)],
      )
    })

    it('holds back whatever way the host answers', async () => {
      const text = JSON.stringify(condition('2'))
      const WAYS: Handler[] = [
        (_, response) => response.end(text),
        (_, response) => response.end(Buffer.from(text)),
        (_, response) => {
          response.write(text.slice(0, 9))
          response.write(text.slice(9), 'utf8', () => response.end())
        },
        (_, response) => void Readable.from([text.slice(0, 5), text.slice(5)]).pipe(response),
        (_, response) => {
          response.flushHeaders()
          response.end(text, () => undefined)
        },
        (_, response) =>
          response.writeHead(200, 'OK', ['content-type', 'application/json']).end(text, 'utf8'),
        (_, response) => void setImmediate(() => response.end(text)),
      ]
      for (const way of WAYS) {
        handler = way
        assert.equal((await ask('GET /Condition/1')).why, NOT_WITHIN)
      }
    })

    it('does not judge answers of which all is reached', async () => {
      answers('<Condition/>')
      assert.equal((await ask('GET /Condition/1', 'system/Condition.rs')).text, '<Condition/>')
      assert.equal((await ask('GET /Condition', 'system/*.cruds')).text, '<Condition/>')
      assert.equal((await ask('HEAD /Condition/1', 'system/Condition.rs')).status, 200)
    })

    it('refuses HEAD where the answer would have to be judged', async () => {
      answers(condition('1'))
      assert.deepEqual([(await ask('HEAD /Condition/1')).status, asked], [403, 0])
    })

    it('lets a search by that narrows itself to the patient', async () => {
      answers(bundle(condition('1'), { resourceType: 'OperationOutcome' }))
      for (const query of [
        'patient=1',
        'patient=Patient/1',
        `patient=${fhirBaseUrl}/Patient/1`,
        'subject:Patient=1',
        'subject=Patient/1&code=x',
        'asserter=Patient/1',
      ])
        assert.equal((await ask(`GET /Condition?${query}`)).status, 200, query)
      assert.equal((await ask('POST /Condition/_search', undefined, 'patient=1&code=x')).status, 200)
      assert.equal((await ask('GET /Patient/1/Condition')).status, 200)
      answers(bundle({ resourceType: 'Patient', id: '1' }))
      assert.equal((await ask('GET /Patient?_id=1')).status, 200)
      answers(bundle({ resourceType: 'Practitioner', id: '5' }))
      assert.equal((await ask('GET /Practitioner?name=a')).status, 200)
    })

    it('does not ask the host for a search that does not', async () => {
      answers(bundle(condition('1')))
      for (const line of [
        'GET /Condition',
        'GET /Condition?patient=2',
        'GET /Condition?patient=1,2',
        'GET /Condition?subject=1',
        'GET /Condition?patient:missing=false',
        'GET /Condition?patient:identifier=1',
        'GET /Condition?_id=1',
        'GET /Patient',
        'GET /Patient?_id=1,2',
        'GET /Patient?name=a',
        'GET /Patient/1/*',
        'GET /',
        'GET /_history',
        'GET /Condition/_history',
        'GET /Condition?patient=http://other.example/fhir/Patient/1',
        'GET /Observation?focus=Patient/1',
      ])
        assert.equal((await ask(line)).why, NOT_WITHIN, line)
      assert.equal((await ask('POST /Condition/_search', undefined, 'code=x')).why, NOT_WITHIN)
      assert.equal(asked, 0)
    })

    it('wants the filters of a granular scope in the search, and in the answer', async () => {
      const scope = 'patient/Observation.rs?category=lab'
      const observation = (code: string) => ({
        resourceType: 'Observation',
        category: [{ coding: [{ code }] }],
        subject: { reference: 'Patient/1' },
      })
      answers(bundle(observation('lab')))
      assert.equal((await ask('GET /Observation?patient=1', scope)).why, NOT_WITHIN)
      assert.equal((await ask('GET /Observation?patient=1&category=lab', scope)).status, 200)
      answers(bundle(observation('lab'), observation('vital')))
      assert.equal((await ask('GET /Observation?patient=1&category=lab', scope)).why, NOT_WITHIN)
      answers(observation('vital'))
      assert.equal((await ask('GET /Observation/1', scope)).why, NOT_WITHIN)
    })

    it('does not trust the host with a search: every resource of the answer is judged', async () => {
      for (const stray of [
        condition('2'),
        { resourceType: 'Patient', id: '2' },
        { resourceType: 'Group' },
        { resourceType: 'Observation', focus: [{ reference: 'Patient/1' }] },
        'x',
        null,
      ]) {
        answers({ resourceType: 'Bundle', entry: [{ resource: condition('1') }, { resource: stray }] })
        assert.equal((await ask('GET /Condition?patient=1&_include=*')).why, NOT_WITHIN)
        assert.equal((await ask('GET /Condition/1/_history')).why, NOT_WITHIN)
        assert.equal((await ask('GET /Patient/1/$everything')).why, NOT_WITHIN)
      }
      answers(bundle({ resourceType: 'Patient', id: '1' }))
      assert.equal(
        (await ask('GET /Condition?patient=1&_include=Condition:subject', 'patient/Condition.rs')).why,
        NOT_WITHIN,
      )
      assert.equal(
        (await ask('GET /Condition?_include=Condition:subject', 'system/Condition.rs')).why,
        NOT_WITHIN,
      )
    })

    it('refuses chains into what is not reached as a whole', async () => {
      answers(bundle())
      for (const line of [
        'GET /Practitioner?_has:Observation:performer:patient=2',
        'GET /Condition?patient=1&encounter.status=planned',
        'GET /Practitioner?_has:Foo:bar:baz=1',
      ])
        assert.equal((await ask(line)).why, NOT_WITHIN, line)
      assert.equal(asked, 0)
      assert.equal(
        (await ask('GET /Practitioner?_has:Observation:performer:patient=2', 'system/*.rs')).status,
        200,
      )
    })

    it('judges the content of a create, and shows it only to those who may read', async () => {
      answers(condition('1', { id: '9' }), 201, { location: `${fhirBaseUrl}/Condition/9` })
      assert.equal((await ask('POST /Condition', undefined, condition('2'))).why, NOT_WITHIN)
      assert.equal((await ask('POST /Condition', undefined, { resourceType: 'Observation' })).status, 400)
      assert.equal((await ask('POST /Condition', undefined, undefined)).why, NOT_WITHIN)
      assert.equal(asked, 0)
      const shown = await ask('POST /Condition', undefined, condition('1'))
      assert.deepEqual([shown.status, JSON.parse(shown.text).id], [201, '9'])
      const unseen = await ask('POST /Condition', 'patient/Condition.c', condition('1'))
      assert.deepEqual([unseen.status, unseen.text, unseen.headers.get('etag')], [201, '', null])
      assert.equal(unseen.headers.get('location'), `${fhirBaseUrl}/Condition/9`)
    })

    it('judges what is stored before an update or delete, where the host tells it', async () => {
      answers('', 200)
      store.set('Condition/own', { ...condition('1'), id: 'own' })
      store.set('Condition/other', { ...condition('2'), id: 'other' })
      const put = (id: string, patient = '1', on = host) =>
        ask(`PUT /Condition/${id}`, undefined, condition(patient, { id }), on)
      assert.equal((await put('own')).status, 200)
      assert.equal((await put('new')).status, 200)
      assert.equal((await ask('DELETE /Condition/own')).status, 200)
      asked = 0
      assert.equal((await put('other')).why, NOT_WITHIN)
      assert.equal((await put('own', '2')).why, NOT_WITHIN)
      assert.equal((await ask('DELETE /Condition/other')).why, NOT_WITHIN)
      assert.equal((await ask('DELETE /Condition/absent')).why, NOT_WITHIN)
      const untold = await run()
      assert.equal((await put('own', '1', untold)).why, NOT_WITHIN)
      assert.equal((await ask('DELETE /Condition/own', undefined, undefined, untold)).why, NOT_WITHIN)
      assert.equal(asked, 0)
      assert.equal((await ask('DELETE /Condition/own', 'system/*.d', undefined, untold)).status, 200)
    })

    it('refuses patches and conditional writes under a limited grant', async () => {
      answers('', 200)
      const patch = [{ op: 'replace', path: '/code/text', value: 'x' }]
      assert.equal((await ask('PATCH /Condition/own', undefined, patch)).why, NOT_WITHIN)
      assert.equal((await ask('PUT /Condition?code=1', undefined, condition('1'))).why, NOT_WITHIN)
      assert.equal((await ask('DELETE /Condition?patient=1')).why, NOT_WITHIN)
      assert.equal(
        (await ask('POST /Condition', undefined, condition('1'), host, { 'if-none-exist': 'code=1' })).why,
        NOT_WITHIN,
      )
      assert.equal(asked, 0)
      assert.equal((await ask('PATCH /Condition/own', 'system/*.cruds', patch)).status, 200)
      assert.equal((await ask('DELETE /Condition?code=1', 'system/*.cruds')).status, 200)
    })

    it('judges every entry of a Bundle, and every entry of its answer', async () => {
      const batch = (...lines: [string, object?][]) => ({
        resourceType: 'Bundle',
        type: 'batch',
        entry: lines.map(([line, resource]) => ({
          request: { method: line.split(' ')[0], url: line.split(' ')[1] },
          resource,
        })),
      })
      const replied = (...entry: object[]) =>
        answers({ resourceType: 'Bundle', type: 'batch-response', entry })
      const both = batch(['GET Condition/1'], ['POST Condition', condition('1')])
      replied({ resource: condition('1'), response: { status: '200' } }, { response: { status: '201' } })
      assert.equal((await ask('POST /', undefined, both)).status, 200)
      asked = 0
      for (const line of ['GET Patient/2', 'GET Condition', 'DELETE Condition/other', 'GET ../Condition/1'])
        assert.match(
          String((await ask('POST /', undefined, batch(['GET Condition/1'], [line]))).status),
          /^40[03]$/,
          line,
        )
      assert.match(
        (await ask('POST /', 'patient/Condition.rs', both)).why,
        /^Insufficient scope for POST on Condition/,
      )
      assert.equal((await ask('POST /', undefined, undefined)).status, 400)
      assert.equal(asked, 0)
      for (const first of [
        { resource: condition('2'), response: { status: '200' } },
        { response: { status: '404 Not Found' } },
        {}.constructor,
      ]) {
        replied(first, { response: { status: '201' } })
        assert.equal((await ask('POST /', undefined, both)).why, NOT_WITHIN)
      }
      replied({ resource: condition('1') })
      assert.equal((await ask('POST /', undefined, both)).why, NOT_WITHIN)
      replied({ response: { status: '201' }, resource: condition('1') })
      const unseen = await ask('POST /', 'patient/Condition.c', batch(['POST Condition', condition('1')]))
      assert.deepEqual([unseen.status, unseen.text], [200, ''])
    })

    it('lets no conditional reference by that the host would resolve from all of its data', async () => {
      const linked = (reference: string) => ({
        resourceType: 'Bundle',
        type: 'transaction',
        entry: [
          {
            request: { method: 'POST', url: 'Condition' },
            resource: condition('1', { encounter: { reference } }),
          },
        ],
      })
      const subject = (reference: string) => ({
        resourceType: 'Bundle',
        type: 'transaction',
        entry: [
          {
            request: { method: 'POST', url: 'Condition' },
            resource: { resourceType: 'Condition', subject: { reference } },
          },
        ],
      })
      answers({ resourceType: 'Bundle', entry: [{ response: { status: '201' } }] })
      assert.equal((await ask('POST /', undefined, subject('Patient?identifier=bob'))).why, NOT_WITHIN)
      assert.equal((await ask('POST /', undefined, linked('Encounter?identifier=5'))).why, NOT_WITHIN)
      assert.equal(asked, 0)
      assert.equal((await ask('POST /', undefined, linked('Encounter/5'))).status, 200)
      assert.equal((await ask('POST /', 'system/*.cruds', subject('Patient?identifier=bob'))).status, 200)
    })

    it('leaves the limits to a host that says it applies them, and tells it which', async () => {
      const applying = await run({ appliesAccess: true })
      let told: unknown
      handler = (request, response) => {
        const smart = smartOf(request)
        told = [smart?.grant.patient, smart?.interaction.kind, smart?.decision.access.reach('Condition', 's')]
        response.end('{}')
      }
      assert.equal((await ask('GET /Condition', undefined, undefined, applying)).status, 200)
      assert.deepEqual(told, ['1', 'search-type', [{ patient: '1' }]])
      assert.match(
        (await ask('GET /Condition', 'patient/Patient.rs', undefined, applying)).why,
        /^Insufficient scope/,
      )
      assert.equal((await ask('POST /Condition', undefined, condition('2'), applying)).why, NOT_WITHIN)
    })

    it('refuses when something throws inside', async () => {
      const errors: unknown[] = []
      const broken = await run({
        onError: error => errors.push(error),
        stored: () => Promise.reject(new Error('store away')),
      })
      answers('')
      assert.equal((await ask('DELETE /Condition/own', undefined, undefined, broken)).status, 500)
      assert.deepEqual([errors.length, asked], [1, 0])
    })
  })
}
