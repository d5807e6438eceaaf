import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, describe, it } from 'node:test'
import {
  ADMIN,
  type GuardedFhir,
  NOT_WITHIN,
  startGuardedFhir,
  type TestCaller,
} from '../../../../test/support/guarded-fhir.ts'
import { openSqliteStore } from '../../../../test/support/sqlite-store.ts'
import { createAuditor, createFhirAudit, findRecords } from '../../../audit/index.ts'
import { listGatewayOperations, parsePassedOperation, type Resource } from '../../../fhir/index.ts'
import type { Store } from '../../../store/index.ts'
import { createGateway } from '../server.ts'
import { type HostileUpstream, json, METADATA, searchset, startHostile } from '../testing/hostile-upstream.ts'
import { NO_WAIT } from '../testing/start-gateway.ts'

const ann = (scope = 'patient/*.rs'): TestCaller => ({ scope, patient: 'ann' })
const all: TestCaller = { scope: 'system/*.rs', patient: null }
const to = (reference: string) => ({ reference })
const patient = (id: string) => ({ resourceType: 'Patient', id })
const condition = (id: string, of: string): Resource => ({
  resourceType: 'Condition',
  id,
  subject: to(`Patient/${of}`),
})

let upstream: HostileUpstream
let fhir: GuardedFhir
let store: Store
const folder = mkdtempSync(join(tmpdir(), 'sallyport-test-'))
const names = ['$meta', 'Patient/$match:read', '$export', '$export-poll-status', '$graphql:read']
const passed = names.flatMap(it => parsePassedOperation(it) ?? [])
const operations = listGatewayOperations(passed)

const operation = ['summary', '$match', 'merge'].map(name => ({ name, definition: 'http://x' }))
const metadata = {
  ...METADATA,
  rest: [
    {
      ...METADATA.rest[0],
      operation: ['export', 'reindex'].map(name => ({ name, definition: 'http://x' })),
      resource: [
        { type: 'Patient', operation },
        { type: 'ValueSet', operation: [{ name: 'expand' }] },
      ],
    },
  ],
}

before(async () => {
  upstream = await startHostile()
  upstream.answerMetadata((_request, response) => json(response, metadata))
  store = await openSqliteStore(`sqlite:${join(folder, 'audit.db')}`)
  fhir = await startGuardedFhir([], { operations }, (guard, baseUrl) =>
    createGateway({
      baseUrl,
      guard,
      operations,
      profile: 'strict',
      upstreamUrl: upstream.url,
      smartConfiguration: {},
      conceal: NO_WAIT,
      audit: createFhirAudit({ auditor: createAuditor({ store }), store, fhirBaseUrl: baseUrl }),
    }),
  )
})
after(async () => {
  await fhir.close()
  await upstream.close()
  await store.close()
  rmSync(folder, { recursive: true, force: true })
})
beforeEach(() => upstream.answerJson({}, 404))

const ask = (line: string, asking: TestCaller = ann(), body?: unknown) => fhir.ask(line, asking, body)
const lastRequest = () => decodeURIComponent(upstream.seen.at(-1)?.line ?? '')

/** Answers reads of the resources, and everything else with the answer. */
function serve(resources: readonly Resource[], answer: unknown): void {
  upstream.answer((request, response) => {
    const path = (request.url ?? '').slice('/up/'.length)
    const found = resources.find(it => path === `${it.resourceType}/${it.id}`)
    json(response, found ?? answer)
  })
}

describe('a document of the upstream', () => {
  const composition = (of: string) => ({
    resourceType: 'Composition',
    id: 'c',
    status: 'final',
    subject: to(`Patient/${of}`),
    section: [{ title: 'Problems', text: { status: 'generated', div: '<div>Secret diagnosis</div>' } }],
  })
  const entry = (resource: object, fullUrl?: string) => ({ resource, ...(fullUrl && { fullUrl }) })
  const summary = () => ({
    resourceType: 'Bundle',
    id: 'x',
    type: 'document',
    timestamp: '2024-01-01T00:00:00Z',
    identifier: { system: 'urn:ietf:rfc:3986', value: 'urn:uuid:1' },
    signature: { data: 'x' },
    entry: [
      entry(composition('ann'), 'urn:uuid:c'),
      entry(patient('ann'), `${upstream.url}/Patient/ann`),
      entry(condition('ca', 'ann')),
      entry(condition('cb', 'bob')),
      entry({ resourceType: 'Group', id: 'g' }),
    ],
  })
  const typesIn = (reply: Awaited<ReturnType<typeof ask>>) =>
    reply.body.entry?.map(({ resource }) => `${resource?.resourceType}/${resource?.id}`)

  it('contains only resources within the grant', async () => {
    serve([patient('ann')], summary())
    const reply = await ask('GET /Patient/ann/$summary?profile=x')
    assert.equal(lastRequest(), 'GET /up/Patient/ann/$summary?profile=x')
    assert.deepEqual(typesIn(reply), ['Composition/c', 'Patient/ann', 'Condition/ca'])
    const { type, identifier, timestamp, id, signature } = reply.body
    assert.deepEqual([type, identifier, timestamp], ['document', summary().identifier, summary().timestamp])
    assert.deepEqual([id, signature], [undefined, undefined])
    assert.match(reply.text, /"fullUrl":"urn:uuid:c"/)
    assert.doesNotMatch(reply.text, /\bbob\b|\/up\//)
  })

  it('has no Composition for a caller who may not read all sources of its narrative', async () => {
    serve([patient('ann')], summary())
    const reply = await ask(
      'GET /Patient/ann/$summary',
      ann('patient/Patient.rs patient/Composition.rs patient/Condition.rs'),
    )
    assert.deepEqual([reply.body.type, typesIn(reply)], ['collection', ['Patient/ann', 'Condition/ca']])
    assert.doesNotMatch(reply.text, /Secret/)
  })

  it('has resources that belong to no patient only if a resource within the grant refers to them (OPERATION-6)', async () => {
    const document = summary()
    document.entry.push(
      entry({ ...condition('ce', 'ann'), recorder: to('urn:uuid:p1'), asserter: to('Practitioner/p2') }),
      entry({
        resourceType: 'MedicationRequest',
        id: 'mr',
        subject: to('Patient/ann'),
        medicationReference: to('Medication/m'),
        requester: to('Practitioner/p3'),
      }),
      entry({ resourceType: 'Medication', id: 'm' }),
      ...['p1', 'p2', 'p3'].map(id => entry({ resourceType: 'Practitioner', id }, `urn:uuid:${id}`)),
    )
    serve([patient('ann')], document)
    const shared = async (scope: string) =>
      typesIn(await ask('GET /Patient/ann/$summary', ann(scope)))?.filter(it =>
        /^Pract|^Medication\//.test(it),
      )
    const scope = 'patient/Patient.rs patient/Condition.rs patient/Practitioner.rs patient/Medication.rs'
    assert.deepEqual(await shared(scope), ['Practitioner/p1', 'Practitioner/p2'])
    assert.equal((await shared('patient/*.rs'))?.length, 4)
  })

  it('is generated only from a Composition that the caller may read', async () => {
    serve([composition('ann')], summary())
    const reply = await ask('GET /Composition/c/$document', ann('patient/Composition.rs'))
    assert.deepEqual([reply.body.type, typesIn(reply)], ['document', ['Composition/c']])
    serve([composition('bob')], summary())
    assert.equal((await ask('GET /Composition/c/$document')).why, NOT_WITHIN)
    assert(!lastRequest().includes('$document'))
    assert.equal((await ask('GET /Patient/bob/$summary')).why, NOT_WITHIN)
  })

  it('is never stored, and is refused with other parameters', async () => {
    serve([composition('ann'), patient('ann')], summary())
    assert.equal((await ask('GET /Composition/c/$document?persist=true')).status, 400)
    assert.equal((await ask('GET /Composition/c/$document?persist=false')).status, 200)
    assert.equal((await ask('GET /Patient/ann/$summary?identifier=x')).status, 400)
  })

  it('causes a 502 if it is not a valid Bundle', async () => {
    for (const answer of [patient('ann'), { resourceType: 'Bundle', entry: ['x'] }, 'x']) {
      serve([composition('ann')], answer)
      assert.equal((await ask('GET /Composition/c/$document')).status, 502)
    }
  })
})

describe('$docref', () => {
  const document = (id: string, of: string) => ({
    resourceType: 'DocumentReference',
    id,
    status: 'current',
    subject: to(`Patient/${of}`),
  })

  it('is requested for the patient of the token, and every document is checked', async () => {
    upstream.answerJson(searchset([document('da', 'ann'), document('db', 'bob'), patient('bob')]))
    const reply = await ask(
      'GET /DocumentReference/$docref?patient=ann&start=2020',
      ann('patient/DocumentReference.rs'),
    )
    assert.equal(lastRequest(), 'GET /up/DocumentReference/$docref?patient=ann&start=2020')
    assert.deepEqual(
      reply.body.entry?.map(({ resource }) => resource?.id),
      ['da'],
    )
    const body = { resourceType: 'Parameters', parameter: [{ name: 'patient', valueId: 'Patient/ann' }] }
    assert.equal((await ask('POST /DocumentReference/$docref', ann(), body)).status, 200)
    assert.equal((await ask('GET /DocumentReference/$docref?patient=bob', all)).status, 200)
  })

  it('is refused for another patient or with unknown parameters', async () => {
    const before = upstream.seen.length
    for (const query of ['patient=bob', 'patient=Patient/bob'])
      assert.equal((await ask(`GET /DocumentReference/$docref?${query}`)).why, NOT_WITHIN)
    for (const query of ['', 'patient=ann&patient=bob', 'patient=ann&_include=x', 'patient=Group/ann'])
      assert.equal((await ask(`GET /DocumentReference/$docref?${query}`)).status, 400, query)
    assert.equal(upstream.seen.length, before)
  })
})

describe('a terminology operation', () => {
  const expansion = { resourceType: 'ValueSet', status: 'active', expansion: { contains: [{ code: 'x' }] } }

  it('is allowed with a scope that covers its type (GATEWAY-15)', async () => {
    upstream.answerJson(expansion)
    const reply = await ask('GET /ValueSet/$expand?url=http://x&_format=json', ann('patient/ValueSet.rs'))
    assert.equal(lastRequest(), 'GET /up/ValueSet/$expand?url=http://x')
    assert.deepEqual([reply.status, reply.body], [200, expansion])
    upstream.answerJson({ resourceType: 'Parameters', parameter: [{ name: 'result', valueBoolean: true }] })
    const body = { resourceType: 'Parameters', parameter: [{ name: 'code', valueCode: 'x' }] }
    assert.equal((await ask('POST /CodeSystem/$validate-code', ann(), body)).status, 200)
    assert.deepEqual(JSON.parse(upstream.seen.at(-1)?.body ?? ''), body)
    assert.equal((await ask('GET /ConceptMap/1/$translate?code=x')).status, 200)
    assert.equal((await ask('GET /CodeSystem/$lookup', ann('patient/Patient.rs'))).status, 403)
  })

  it('returns no other resources', async () => {
    for (const answer of [
      patient('bob'),
      { resourceType: 'Parameters', parameter: [{ name: 'x', resource: patient('bob') }] },
      { ...expansion, contained: [patient('bob')] },
    ]) {
      upstream.answerJson(answer)
      assert.equal((await ask('GET /ValueSet/$expand?url=x')).status, 502)
    }
    upstream.answerJson({ resourceType: 'OperationOutcome', issue: [{ diagnostics: 'bob' }] }, 422)
    const reply = await ask('GET /ValueSet/$expand?url=x')
    assert.equal(reply.status, 422)
    assert.doesNotMatch(reply.text, /\bbob\b/)
  })
})

describe('an operation that the configuration allows', () => {
  it('is sent unchanged for a caller with access to everything', async () => {
    upstream.answerJson({ resourceType: 'Parameters', parameter: [{ name: 'return', valueMeta: {} }] })
    assert.equal((await ask('GET /Patient/1/$meta?x=y', all)).status, 200)
    assert.equal(lastRequest(), 'GET /up/Patient/1/$meta?x=y')
    const body = { resourceType: 'Parameters', parameter: [{ name: 'n', valueDecimal: 1.5 }] }
    assert.equal((await ask('POST /Patient/$match', all, body)).status, 200)
    assert.deepEqual(
      [lastRequest(), upstream.seen.at(-1)?.body],
      ['POST /up/Patient/$match', JSON.stringify(body)],
    )
  })

  it('is refused for any other caller, as is any other operation (GATEWAY-15)', async () => {
    const before = upstream.seen.length
    for (const line of ['GET /$meta', 'GET /Patient/ann/$meta', 'POST /Patient/$match'])
      assert.equal((await ask(line, ann('patient/*.cruds'))).why, NOT_WITHIN, line)
    assert.equal((await ask('POST /$meta', all)).why, NOT_WITHIN)
    for (const line of ['GET /$meta-add', 'GET /Practitioner/$match', 'POST /Patient/$expunge'])
      assert.equal((await ask(line, { scope: 'system/*.cruds' })).status, 404, line)
    assert.equal(upstream.seen.length, before)
  })

  it('may answer asynchronously with a Content-Location', async () => {
    upstream.answer((_request, response) =>
      response
        .writeHead(202, {
          'content-location': `${upstream.url}/$export-poll-status?_jobId=1`,
          'content-length': '0',
        })
        .end(),
    )
    const reply = await ask('GET /$export', { ...all, headers: { prefer: 'respond-async' } })
    assert.equal(upstream.seen.at(-1)?.headers.prefer, 'respond-async')
    assert.equal(reply.status, 202)
    const place = String(reply.headers['content-location'])
    assert.match(place, /\/fhir\/\$export-poll-status\?_gateway-page=[\w.-]+$/)
    assert.doesNotMatch(place, /_jobId/)
  })

  it('is refused in a transaction, which could not undo it', async () => {
    const entry = [{ request: { method: 'POST', url: '$meta' }, resource: { resourceType: 'Parameters' } }]
    const reply = await ask('POST /', ADMIN, { resourceType: 'Bundle', type: 'transaction', entry })
    assert.equal(reply.status, 404)
    upstream.answerJson({ resourceType: 'Parameters' })
    const batch = await ask('POST /', ADMIN, { resourceType: 'Bundle', type: 'batch', entry })
    assert.equal(batch.body.entry?.[0]?.response?.status.slice(0, 3), '200')
  })
})

describe('$graphql', () => {
  const query = '{Patient(id:"bob"){id}}'
  const data = { data: { Patient: { id: 'bob' } } }
  const by = (type: string, asking = all): TestCaller => ({ ...asking, headers: { 'content-type': type } })

  it('is passed with the media types that servers expect, and its response stays plain JSON (GATEWAY-15)', async () => {
    for (const [type, body] of [
      ['application/graphql', query],
      ['application/json', { query, variables: { a: 1 } }],
      ['application/fhir+json', { query }],
    ] as const) {
      upstream.answerJson(data, 200, { 'content-type': 'application/json;charset=UTF-8' })
      const reply = await ask('POST /$graphql', by(type), body)
      assert.deepEqual([reply.status, reply.body], [200, data], reply.text)
      assert.equal(reply.headers['content-type'], 'application/json; charset=utf-8')
      const { headers, body: sent = '' } = upstream.seen.at(-1) ?? {}
      assert.equal(headers?.['content-type'], 'application/json; charset=utf-8')
      assert.deepEqual(JSON.parse(sent), typeof body === 'string' ? { query } : body)
    }
    assert.equal((await ask('GET /Patient/bob/$graphql?query=%7Bid%7D', all)).status, 200)
  })

  it('is recorded as data of unknown patients', async () => {
    upstream.answerJson(data, 200, { 'content-type': 'application/json' })
    await ask('POST /$graphql', by('application/graphql'), query)
    const [record] = await findRecords(store, { limit: 1 })
    assert.deepEqual([record?.request, record?.patients], ['$graphql', ' * '])
  })

  it('is refused with a reason for a caller who may see a part of the data', async () => {
    const before = upstream.seen.length
    const reply = await ask('POST /$graphql', by('application/graphql', ann()), query)
    assert.equal(reply.status, 403)
    assert.match(reply.text, /This operation needs access to all data, such as system\/\*\.rs/)
    assert.equal(upstream.seen.length, before)
  })

  it('is refused if it names a type that does not come from the upstream', async () => {
    const sent = upstream.seen.length
    const naming = '{Patient(id:"bob"){ audits: AuditEventList(_reference: entity){id} }}'
    for (const [type, body] of [
      ['application/graphql', naming],
      ['application/json', { query: naming }],
    ] as const)
      assert.equal((await ask('POST /$graphql', by(type), body)).status, 404)
    assert.equal((await ask(`GET /$graphql?query=${encodeURIComponent(naming)}`, all)).status, 404)
    const parameter = [{ name: '_type', valueString: 'Patient,AuditEvent' }]
    assert.equal((await ask('POST /$export', ADMIN, { resourceType: 'Parameters', parameter })).status, 404)
    for (const query of ['_type=Patient,AuditEvent', '_typeFilter=AuditEvent%3Faction=R'])
      assert.equal((await ask(`GET /$export?${query}`, all)).status, 404, query)
    assert.equal(upstream.seen.length, sent)
  })

  it('is refused with another media type, or if it is not text', async () => {
    assert.equal((await ask('POST /$graphql', by('text/plain'), query)).status, 415)
    assert.equal((await ask('POST /$meta', by('application/graphql', ADMIN), query)).status, 415)
  })
})

describe('an asynchronous job', () => {
  const unsealed = '/$export-poll-status?_jobId=1'
  let status: string
  before(async () => {
    status = await startJob(ADMIN)
  })

  /** The status URL that the caller gets, below the base. */
  async function startJob(caller: TestCaller): Promise<string> {
    respond(202, { 'content-location': `${upstream.url}${unsealed}` })
    const { headers } = await ask('GET /$export', { ...caller, headers: { prefer: 'respond-async' } })
    return String(headers['content-location']).replace(/^.*\/fhir/, '')
  }

  const respond = (code: number, headers: Readonly<Record<string, string>>) =>
    upstream.answer((_request, response) => response.writeHead(code, headers).end())

  it('shows its progress (GATEWAY-15)', async () => {
    respond(202, { 'x-progress': 'Build in progress', 'retry-after': '120', 'x-other': 'x' })
    const { status: code, headers } = await ask(`GET ${status}`, all)
    assert.deepEqual(
      [code, headers['x-progress'], headers['retry-after'], headers['x-other']],
      [202, 'Build in progress', '120', undefined],
    )
    respond(429, { 'retry-after': '60' })
    const early = await ask(`GET ${status}`, all)
    assert.deepEqual([early.status, early.headers['retry-after']], [429, '60'])
  })

  it('shows its result as plain JSON, with the time at which it expires', async () => {
    const expires = 'Tue, 17 Nov 2026 20:00:00 GMT'
    const manifest = {
      transactionTime: '2026-11-17',
      output: [{ type: 'Patient', url: `${upstream.url}/Binary/1` }],
    }
    upstream.answerJson(manifest, 200, { 'content-type': 'application/json', expires })
    const reply = await ask(`GET ${status}`, all)
    assert.deepEqual(
      [reply.headers['content-type'], reply.headers.expires],
      ['application/json; charset=utf-8', expires],
    )
    assert.match(reply.text, /\/fhir\/Binary\/1"/)
    assert.doesNotMatch(reply.text, /\/up\//)
  })

  it('ends with a DELETE of its status URL, which needs permission to write, and is recorded (GATEWAY-15)', async () => {
    // As HAPI: an OperationOutcome without Content-Type.
    upstream.answer((_request, response) =>
      response.writeHead(202).end('{"resourceType":"OperationOutcome"}'),
    )
    const ended = await ask(`DELETE ${status}`, ADMIN)
    assert.deepEqual([ended.status, ended.text], [202, ''])
    assert.equal(lastRequest(), 'DELETE /up/$export-poll-status?_jobId=1')
    const [record] = await findRecords(store, { limit: 1 })
    assert.deepEqual(
      [record?.method, record?.request, record?.status],
      ['DELETE', '$export-poll-status?_gateway-page=…', 202],
    )
    const before = upstream.seen.length
    assert.equal((await ask(`DELETE ${status}`, all)).why, NOT_WITHIN)
    assert.equal((await ask('DELETE /$reindex', ADMIN)).status, 404)
    assert.equal((await ask('DELETE /Patient/ann/$everything', ADMIN)).status, 405)
    const entry = [{ request: { method: 'DELETE', url: status.slice(1) } }]
    const transaction = { resourceType: 'Bundle', type: 'transaction', entry }
    assert.equal((await ask('POST /', ADMIN, transaction)).status, 404)
    assert.equal(upstream.seen.length, before)
  })

  it('belongs to the client and user that started it: others get 404, however they name it', async () => {
    respond(202, {})
    const others = [
      { ...ADMIN, client_id: 'other' },
      { ...ADMIN, sub: 'other' },
    ]
    const sent = upstream.seen.length
    for (const caller of others)
      for (const method of ['GET', 'DELETE'])
        for (const url of [status, unsealed])
          assert.equal((await ask(`${method} ${url}`, caller)).status, 404, `${method} ${url}`)
    const entry = [{ request: { method: 'GET', url: unsealed.slice(1) } }]
    const batch = await ask('POST /', ADMIN, { resourceType: 'Bundle', type: 'batch', entry })
    assert.equal(batch.body.entry?.[0]?.response?.status.slice(0, 3), '404')
    assert.equal((await ask(`GET ${status.slice(0, -4)}`, ADMIN)).status, 404)
    assert.equal((await ask(`GET ${status.replace('$export-poll-status', '$meta')}`, ADMIN)).status, 404)
    assert.equal(upstream.seen.length, sent)
    // With other scopes it is still the same client.
    assert.equal((await ask(`GET ${status}`, all)).status, 202)
    const theirs = await startJob({ ...ADMIN, client_id: 'other' })
    assert.equal((await ask(`GET ${theirs}`, ADMIN)).status, 404)
  })
})

describe('metadata', () => {
  it('lists the operations of the gateway, and those of the upstream that it allows (GATEWAY-29)', async () => {
    const { body } = await ask('GET /metadata')
    const [section] = body.rest as readonly {
      operation: readonly { name: string }[]
      resource: readonly { operation: readonly { name: string }[] }[]
    }[]
    const names = (list: readonly { name: string }[] | undefined) => list?.map(({ name }) => name)
    assert.deepEqual(names(section?.operation), ['export'])
    assert.deepEqual(names(section?.resource[0]?.operation), ['validate', 'summary', '$match'])
    assert.deepEqual(names(section?.resource[1]?.operation), ['validate', 'expand'])
  })
})
