import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, describe, it } from 'node:test'
import { createBulkClient, type Manifest } from '../../../../test/support/bulk-client.ts'
import {
  bearerOf,
  type GuardedFhir,
  startGuardedFhir,
  type TestCaller,
} from '../../../../test/support/guarded-fhir.ts'
import { openSqliteStore } from '../../../../test/support/sqlite-store.ts'
import { createAuditor, createFhirAudit, findRecords } from '../../../audit/index.ts'
import { exportOperations, listGatewayOperations } from '../../../fhir/index.ts'
import { createSealer, type Store } from '../../../store/index.ts'
import { createGateway } from '../server.ts'
import { type HostileUpstream, json, searchset, startHostile } from '../testing/hostile-upstream.ts'
import { NO_WAIT } from '../testing/start-gateway.ts'

const SERVICE: TestCaller = { scope: 'system/*.rs', patient: null, client_id: 'service' }
const UNKNOWN = 'Cannot find this export: it has ended or expired, or another client has started it'
const STARTED = 'GET /up/$export?_type=Patient,Observation'

const ann = { resourceType: 'Patient', id: 'ann', name: [{ family: 'Ann' }] }
const vital = { resourceType: 'Observation', id: 'o', subject: { reference: 'Patient/bob' } }
const toLines = (...resources: readonly object[]) => resources.map(it => `${JSON.stringify(it)}\n`).join('')

/** The members of a manifest that a test sets, with `{up}` for the upstream's base URL. */
const OUTPUT = [
  { type: 'Patient', url: '{up}/Binary/secret-1', count: 1 },
  { type: 'Observation', url: '{up}/Binary/secret-2' },
]

let upstream: HostileUpstream
let fhir: GuardedFhir
let store: Store
let ahead = 0
const folder = mkdtempSync(join(tmpdir(), 'sallyport-relay-'))

/** What the upstream answers, by the path below its base. */
type Answers = Record<string, (response: ServerResponse, request: IncomingMessage) => void>
let answers: Answers

before(async () => {
  upstream = await startHostile()
  store = await openSqliteStore(`sqlite:${join(folder, 'store.db')}`)
  const operations = [...exportOperations, ...listGatewayOperations()]
  fhir = await startGuardedFhir([], { operations }, (guard, baseUrl) =>
    createGateway({
      baseUrl,
      guard,
      operations,
      profile: 'strict',
      upstreamUrl: upstream.url,
      smartConfiguration: {},
      conceal: NO_WAIT,
      relaysExports: true,
      clock: () => Date.now() + ahead,
      audit: createFhirAudit({ auditor: createAuditor({ store }), store, fhirBaseUrl: baseUrl }),
      exports: { store, sealer: createSealer('secret'), lifetimeMs: 3_600_000, fileResources: 100 },
    }),
  )
})
after(async () => {
  await fhir.close()
  await upstream.close()
  await store.close()
  rmSync(folder, { recursive: true, force: true })
})

const sendFile =
  (text: string, type = 'application/fhir+ndjson') =>
  (response: ServerResponse) =>
    response.writeHead(200, { 'content-type': type }).end(text)

/** Answers the status with a manifest. */
function showManifest(members: object = {}, status = 200): Answers[string] {
  return response => {
    const manifest = {
      transactionTime: '2026-11-19T00:00:00Z',
      request: '{up}/$export',
      requiresAccessToken: false,
      output: OUTPUT,
      error: [],
      ...members,
    }
    const body = JSON.stringify(manifest).replaceAll('{up}', upstream.url)
    response.writeHead(status, { 'content-type': 'application/json' }).end(body)
  }
}

beforeEach(() => {
  answers = {
    $export: response => response.writeHead(202, { 'content-location': `${upstream.url}/$poll?job=1` }).end(),
    '$poll?job=1': showManifest(),
    'Binary/secret-1': sendFile(toLines(ann)),
    'Binary/secret-2': sendFile(toLines(vital)),
  }
  upstream.answer((request, response) => {
    const path = decodeURIComponent(request.url ?? '').slice('/up/'.length)
    const answer = answers[path] ?? answers[path.replace(/\?.*/, '')]
    if (answer) answer(response, request)
    else json(response, searchset([]))
  })
})

const as = (caller: Partial<TestCaller> = {}) =>
  createBulkClient(fhir.app, { ...SERVICE, ...caller }, seconds => {
    ahead += seconds * 1000
  })
const start = () => as().start('GET $export?_type=Patient,Observation')
const lines = () => upstream.seen.map(({ line }) => decodeURIComponent(line))

describe('a bulk export of the upstream', () => {
  it('has files whose URLs reveal nothing, and are streamed to the client that started it', async () => {
    const from = upstream.seen.length
    const status = await start()
    assert.match(status, /\/fhir\/\$export-status\?job=[\w-]+$/)
    assert.equal(lines()[from], STARTED)
    assert.equal(upstream.seen[from]?.headers.prefer, 'respond-async')
    const reply = await as().ask('GET', status)
    assert.doesNotMatch(reply.text, /secret|Binary|\/up\/|\$poll/)
    const manifest: Manifest = JSON.parse(reply.text)
    assert.equal(manifest.requiresAccessToken, true)
    assert.match(manifest.request, /\/fhir\/\$export\?_type=/)
    assert.deepEqual(
      manifest.output.map(({ type, count }) => [type, count]),
      [
        ['Patient', 1],
        ['Observation', undefined],
      ],
    )
    assert.deepEqual(await as().list(manifest), ['Observation/o', 'Patient/ann'])
    assert.equal(upstream.seen.at(-1)?.headers.accept, 'application/fhir+ndjson')
    const { files } = await store.db.selectFrom('export_job').select('files').executeTakeFirstOrThrow()
    assert.equal(files, 2)
  })

  it('leaves out every spelling of the format that files have anyway', async () => {
    for (const format of [
      'application/fhir%2Bndjson',
      'application/fhir+ndjson',
      'application/ndjson',
      'ndjson',
    ]) {
      const from = upstream.seen.length
      await as().start(`GET $export?_type=Patient,Observation&_outputFormat=${format}`)
      assert.equal(lines()[from], STARTED)
    }
    const from = upstream.seen.length
    await as().start('GET $export?_type=Patient,Observation&_outputFormat=csv')
    assert.equal(lines()[from], `${STARTED}&_outputFormat=csv`)
  })

  it('leaves them out of the body of a POST too', async () => {
    const types = { name: '_type', valueString: 'Patient,Observation' }
    for (const [format, sent] of [
      ['ndjson', [types]],
      ['application/ndjson', [types]],
      ['application/fhir+ndjson', [types]],
      ['csv', [{ name: '_outputFormat', valueCode: 'csv' }, types]],
    ] as const) {
      const from = upstream.seen.length
      const parameter = [{ name: '_outputFormat', valueCode: format }, types]
      await as().start('POST $export', { body: { resourceType: 'Parameters', parameter } })
      assert.deepEqual(JSON.parse(upstream.seen[from]?.body ?? ''), {
        resourceType: 'Parameters',
        parameter: sent,
      })
    }
    const from = upstream.seen.length
    const parameter = [{ name: '_outputFormat', valueString: 'ndjson' }]
    await as().start('POST $export', { body: { resourceType: 'Parameters', parameter } })
    assert.equal(upstream.seen[from]?.body, '{"resourceType":"Parameters"}')
  })

  it('passes on the progress of the upstream, and its refusals', async () => {
    const status = await start()
    answers['$poll?job=1'] = response =>
      response.writeHead(202, { 'x-progress': 'half', 'retry-after': '120', 'x-other': 'x' }).end()
    const { status: code, headers } = await as().ask('GET', status)
    assert.deepEqual(
      [code, headers['x-progress'], headers['retry-after'], headers['x-other']],
      [202, 'half', '120', undefined],
    )
    answers['$poll?job=1'] = response => response.writeHead(429, { 'retry-after': '60' }).end()
    const early = await as().ask('GET', status)
    assert.deepEqual([early.status, early.headers['retry-after']], [429, '60'])
  })

  it('records a file with its lines and patients', async () => {
    const { output } = await as().poll(await start())
    for (const { url } of output) await as().download(url)
    const records = await findRecords(store, { limit: 10 })
    const found = records.filter(it => it.reason === 'Exported file with 1 line').slice(0, 2)
    assert.deepEqual(found.map(it => it.patient_id).sort(), ['ann', 'bob'])
    assert.doesNotMatch(JSON.stringify(records), /secret|Binary/)
  })

  it('is unknown to other clients, and to tokens that may not see everything', async () => {
    const status = await start()
    const { output } = await as().poll(status)
    const from = upstream.seen.length
    for (const caller of [{ client_id: 'other' }, { scope: 'system/Patient.rs system/Observation.rs' }])
      for (const [method, url] of [
        ['GET', status],
        ['DELETE', status],
        ['GET', output[0]?.url ?? ''],
      ] as const) {
        const { status: code, why } = await as(caller).ask(method, url)
        assert.deepEqual([code, why], [404, UNKNOWN], `${JSON.stringify(caller)} ${method}`)
      }
    const personal = await as({ scope: 'user/*.rs' }).ask('GET', output[0]?.url ?? '')
    assert.equal(personal.status, 403)
    assert.equal(upstream.seen.length, from)
  })

  it('ends with its DELETE or its time: then its files are unknown', async () => {
    const end: readonly ((status: string) => Promise<void>)[] = [
      async status => {
        // As HAPI, for an export that is complete.
        answers['$poll?job=1'] = (response, { method }) =>
          response.writeHead(method === 'DELETE' ? 404 : 500).end()
        assert.equal((await as().ask('DELETE', status)).status, 202)
        assert.equal(lines().at(-1), 'DELETE /up/$poll?job=1')
      },
      async () => {
        ahead += 3_600_000
      },
    ]
    for (const endIt of end) {
      answers['$poll?job=1'] = showManifest()
      const status = await start()
      const { output } = await as().poll(status)
      await endIt(status)
      const from = upstream.seen.length
      for (const url of [status, output[0]?.url ?? '']) {
        const { status: code, why } = await as().ask('GET', url)
        assert.deepEqual([code, why], [404, UNKNOWN])
      }
      assert.equal(upstream.seen.length, from)
    }
  })

  it('goes on if the upstream cannot end it', async () => {
    const status = await start()
    answers['$poll?job=1'] = response => response.writeHead(503).end()
    assert.equal((await as().ask('DELETE', status)).status, 503)
    answers['$poll?job=1'] = showManifest()
    assert.equal((await as().ask('GET', status)).status, 200)
  })

  it('breaks off a file whose export ends meanwhile', async () => {
    const status = await start()
    const { output } = await as().poll(status)
    answers['Binary/secret-1'] = response => {
      response.writeHead(200, { 'content-type': 'application/fhir+ndjson' })
      void sendMany(response, status)
    }
    await assert.rejects(fetchText(output[0]?.url ?? ''))
    // The file, the DELETE and what was sent, by their times: the DELETE may be before or after the file.
    const reasons = (await findRecords(store, { limit: 3 })).map(it => it.reason)
    assert(
      reasons.some(it => /^Exported file that broke off after \d+ lines$/.test(it ?? '')),
      String(reasons),
    )
  })

  /** Over a connection, which breaks off. */
  async function fetchText(url: string): Promise<string> {
    const { server } = fhir.app
    if (!server.listening) await fhir.app.listen({ port: 0, host: '127.0.0.1' })
    const address = server.address()
    assert(typeof address === 'object' && address)
    const { pathname, search } = new URL(url)
    const headers = { authorization: bearerOf(SERVICE), host: 'localhost:8080' }
    const reply = await fetch(`http://127.0.0.1:${address.port}${pathname}${search}`, { headers })
    return reply.text()
  }

  /** More than is kept in memory; the export ends before the second half. */
  async function sendMany(response: ServerResponse, status: string): Promise<void> {
    const many = toLines(
      ...Array.from({ length: 1_000 }, (_, at) => ({ ...vital, id: `o${at}`, x: 'x'.repeat(1_000) })),
    )
    for (let at = 0; at < 20; at++) response.write(many)
    answers['$poll?job=1'] = gone => gone.writeHead(202).end()
    await as().ask('DELETE', status)
    ahead += 10_000
    for (let at = 0; at < 20; at++) response.write(many)
    response.end()
  }

  it('breaks off a file that the upstream breaks off', async () => {
    const { output } = await as().poll(await start())
    for (const size of [1, 20_000]) {
      const file = toLines(...Array.from({ length: size }, () => ({ ...vital, x: 'x'.repeat(1_000) })))
      answers['Binary/secret-1'] = response => {
        response.writeHead(200, { 'content-type': 'application/fhir+ndjson' })
        response.write(file, () => response.destroy())
      }
      const broken = await fetchText(output[0]?.url ?? '').catch(() => 'broken')
      assert.match(broken, /^broken$|OperationOutcome/, String(size))
    }
    assert.equal((await as().ask('GET', output[1]?.url ?? '')).status, 200)
  })

  it('counts its files among the running downloads', async () => {
    const { output } = await as().poll(await start())
    const url = output[0]?.url ?? ''
    const held: ServerResponse[] = []
    answers['Binary/secret-1'] = response => held.push(response)
    const running = [as().ask('GET', url), as().ask('GET', url), as().ask('GET', url)]
    while (held.length < 2) await new Promise(resolve => setTimeout(resolve, 5))
    await new Promise(resolve => setTimeout(resolve, 50))
    assert.equal(held.length, 2)
    const finish = sendFile(toLines(ann))
    answers['Binary/secret-1'] = finish
    for (const response of held) finish(response)
    for (const { status } of await Promise.all(running)) assert.equal(status, 200)
  })

  it('breaks off a file with a line that is not a resource, and says nothing of its content', async () => {
    const { output } = await as().poll(await start())
    for (const text of [`${toLines(ann)}{"Secret`, `${toLines(ann)}[1]\n`]) {
      answers['Binary/secret-1'] = sendFile(text)
      const { status, text: shown } = await as().ask('GET', output[0]?.url ?? '')
      assert.equal(status, 500)
      assert.doesNotMatch(shown, /Secret|Ann/)
    }
    answers['Binary/secret-1'] = sendFile(JSON.stringify({ resourceType: 'Binary' }), 'application/fhir+json')
    const { status, why } = await as().ask('GET', output[0]?.url ?? '')
    assert.equal(status, 502)
    assert.match(String(why), /upstream/i)
  })

  it('is made by the gateway for a token that may see a part of the data', async () => {
    const from = upstream.seen.length
    const status = await as({ scope: 'system/Patient.rs' }).start('GET $export?_type=Patient')
    await as({ scope: 'system/Patient.rs' }).poll(status)
    assert.ok(
      lines()
        .slice(from)
        .every(it => !it.includes('$export')),
      lines().join('\n'),
    )
  })

  it('does not start with a type that the upstream never serves, or without a status URL below its base', async () => {
    const from = upstream.seen.length
    assert.equal((await as().ask('GET', '$export?_type=AuditEvent')).status, 404)
    assert.equal(upstream.seen.length, from)
    for (const place of [undefined, 'https://elsewhere.test/up/$poll', `${upstream.url}/../other`]) {
      answers.$export = response =>
        response.writeHead(202, place === undefined ? undefined : { 'content-location': place }).end()
      assert.equal((await as().ask('GET', '$export')).status, 502, `${place}`)
    }
  })
})

describe('a manifest of the upstream', () => {
  it('has sealed URLs in every member', async () => {
    answers['Binary/secret-3'] = sendFile(toLines({ resourceType: 'Bundle', type: 'transaction' }))
    answers['$poll?job=1'] = showManifest({
      output: [{ type: 'Patient', url: 'Binary/secret-1', continuesInFile: '{up}/Binary/secret-2' }],
      deleted: [{ type: 'Bundle', url: '{up}/Binary/secret-3' }],
      error: [{ type: 'OperationOutcome', url: '{up}/Binary/secret-3' }],
      extension: { index: '{up}/Binary/secret-1', of: [{ deep: '{up}/Binary/secret-2' }], plain: 'text' },
    })
    const reply = await as().ask('GET', await start())
    assert.doesNotMatch(reply.text, /secret|Binary|\/up\//)
    const manifest = JSON.parse(reply.text)
    const urls = [...reply.text.matchAll(/"([^"]*\$export-file\?of=[^"]*)"/g)].map(([, url = '']) => url)
    assert.equal(urls.length, 6)
    for (const url of urls) assert.equal((await as().ask('GET', url)).status, 200)
    assert.equal(manifest.extension.plain, 'text')
  })

  it('leads to further manifests by sealed links, which are not files', async () => {
    answers['$poll?job=1'] = showManifest({ link: [{ relation: 'next', url: '{up}/$poll?job=1&page=2' }] })
    answers['$poll?job=1&page=2'] = showManifest({ output: [OUTPUT[1]] })
    const status = await start()
    const { link, output } = await as().poll(status)
    const next = link?.[0]?.url ?? ''
    assert.match(next, /\/\$export-status\?job=[\w-]+&manifest=/)
    assert.doesNotMatch(decodeURIComponent(next), /page|poll/)
    const page = await as().poll(next)
    assert.deepEqual(await as().list(page), ['Observation/o'])
    assert.equal((await as({ client_id: 'other' }).ask('GET', next)).status, 404)
    const sealed = new URL(next).searchParams.get('manifest')
    const file = new URL(output[0]?.url ?? '').searchParams.get('of')
    const another = await start()
    for (const url of [
      `$export-file?of=${sealed}`,
      `${status}&manifest=${file}`,
      `${status}&manifest=2`,
      `${another}&manifest=${sealed}`,
    ]) {
      const { status: code, why } = await as().ask('GET', url)
      assert.deepEqual([code, why], [404, UNKNOWN], url)
    }
  })

  it('is refused with a URL that is not below the base of the upstream, wherever it is', async () => {
    const elsewhere = 'https://storage.test/secret'
    const status = await start()
    for (const members of [
      { output: [{ type: 'Patient', url: elsewhere }] },
      { output: [{ type: 'Patient', url: '{up}/../other/Binary/1' }] },
      { output: [{ type: 'Patient', url: '{up}extra/Binary/1' }] },
      { error: [{ type: 'OperationOutcome', url: '//storage.test/secret' }] },
      { deleted: [{ type: 'Bundle', url: elsewhere }] },
      { link: [{ relation: 'next', url: elsewhere }] },
      { extension: { of: [elsewhere] } },
      { extension: { [elsewhere]: 1 } },
      { another: `See ${elsewhere}` },
    ]) {
      answers['$poll?job=1'] = showManifest(members)
      const reply = await as().ask('GET', status)
      assert.equal(reply.status, 502, JSON.stringify(members))
      assert.doesNotMatch(reply.text, /storage|secret/)
    }
  })
})
