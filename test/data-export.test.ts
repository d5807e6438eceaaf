/** `data export --from`: a backend service that exports from real servers, and from servers that misbehave. */
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, beforeEach, describe, it } from 'node:test'
import { startUpstream, type Upstream } from '../examples/upstream.ts'
import { sallyport } from './support/command-line.ts'
import { freePorts } from './support/free-ports.ts'
import { newPlace, type Place, runProgram, type Started, startProcess } from './support/started.ts'

type Json = { readonly resourceType: string; readonly id: string; readonly meta: object }

/** The resources of the files of a folder, without what every server makes itself. */
function readFolder(folder: string): ReadonlyMap<string, object> {
  const lines = readdirSync(folder)
    .filter(name => name.endsWith('.ndjson'))
    .flatMap(name => readFileSync(join(folder, name), 'utf8').trimEnd().split('\n'))
    .map((line): Json => JSON.parse(line))
  return new Map(
    lines.map(({ meta, ...resource }) => {
      const { versionId: _, lastUpdated: __, ...kept }: Readonly<Record<string, unknown>> = { ...meta }
      return [`${resource.resourceType}/${resource.id}`, { ...resource, meta: kept }]
    }),
  )
}

const NOTE = { resourceType: 'Binary', id: 'note', contentType: 'text/plain', data: 'aGk=' }
const DOCUMENT = {
  resourceType: 'DocumentReference',
  id: 'document',
  status: 'current',
  subject: { reference: 'Patient/patient-1' },
  content: [{ attachment: { contentType: 'text/plain', url: 'Binary/note' } }],
}

function addKeys(folder: string): void {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-384' })
  const key = { ...publicKey.export({ format: 'jwk' }), kid: 'k1', alg: 'ES384', use: 'sig' }
  writeFileSync(join(folder, 'jwks.json'), JSON.stringify({ keys: [key] }))
  writeFileSync(join(folder, 'key.pem'), privateKey.export({ type: 'pkcs8', format: 'pem' }))
  writeFileSync(
    join(folder, 'key.json'),
    JSON.stringify({ ...privateKey.export({ format: 'jwk' }), kid: 'k1' }),
  )
}

async function run(place: Place, line: string, env: Readonly<Record<string, string>> = {}) {
  return runProgram(line.split(' '), { folder: place.folder, env: { ...place.env, ...env } })
}

async function succeed(...[place, line, env]: Parameters<typeof run>): Promise<string> {
  const { exitCode, stdout, stderr } = await run(place, line, env)
  assert.equal(exitCode, 0, stdout + stderr)
  return stdout
}

describe('data export --from', () => {
  let place: Place
  let servers: Started
  let upstream: Upstream | undefined
  const open = async (env: Readonly<Record<string, string>>) => {
    place = await newPlace({ SMART_WORKERS: '1', ...env })
    addKeys(place.folder)
    await succeed(place, 'client add --id exporter --jwks-file jwks.json --scope system/*.rs')
    servers = startProcess(['start'], place)
    await servers.printed(/is running/)
  }
  afterEach(async () => {
    servers?.child.kill('SIGKILL')
    await upstream?.close()
    upstream = undefined
    place?.remove()
  })

  it('exports the embedded server as it exports itself, and fills an empty one (CLI-8)', async () => {
    await open({})
    writeFileSync(
      join(place.folder, 'more.ndjson'),
      [NOTE, DOCUMENT].map(it => JSON.stringify(it)).join('\n'),
    )
    await succeed(place, 'data import more.ndjson')
    const from = `data export --from ${place.fhirUrl} --client exporter`
    await succeed(place, 'data export own')
    const own = readFolder(join(place.folder, 'own'))
    await succeed(place, `${from} --key key.pem --kid k1 all`)
    assert.deepEqual(readFolder(join(place.folder, 'all')), own)
    const created = new RegExp(`created +${own.size}\n`)
    assert.match(await succeed(place, 'data import all', { SMART_DATA_DIR: 'empty' }), created)
    await succeed(place, 'data export again', { SMART_DATA_DIR: join(place.folder, 'empty') })
    assert.deepEqual(readFolder(join(place.folder, 'again')), own)
    for (const [options, name] of [
      ['--patient patient-1', 'patient'],
      ['--since 1h --type Patient', 'since'],
    ] as const) {
      await succeed(place, `${from} --key key.json ${options} from-${name}`)
      await succeed(place, `data export ${options} own-${name}`)
      const exported = readFolder(join(place.folder, `from-${name}`))
      assert.deepEqual(exported, readFolder(join(place.folder, `own-${name}`)), options)
      assert.ok(exported.size > 0)
    }
    const { stdout, stderr } = await run(place, 'bulk-export list')
    assert.deepEqual([stdout, stderr], ['', 'No app exports data.\n'])
  })

  it('exports from a server behind the gateway, whose upstream has no such operation (CLI-8)', async () => {
    const [port = 0] = await freePorts(1)
    upstream = await startUpstream(port, 2)
    await open({ SMART_FHIR_UPSTREAM_URL: upstream.url })
    await succeed(place, `data export --from ${place.fhirUrl} --client exporter --key key.json out`)
    const data = { SMART_FHIR_UPSTREAM_URL: '', SMART_DATA_DIR: join(place.folder, 'empty') }
    await succeed(place, 'data import out', data)
    await succeed(place, 'data export again', data)
    const exported = readFolder(join(place.folder, 'again'))
    assert.deepEqual(exported, readFolder(join(place.folder, 'out')))
    const all = await fetch(`${upstream.url}?_summary=count`)
    assert.equal(exported.size, (JSON.parse(await all.text()) as { total: number }).total)
  })

  it('says why it gets no token', async () => {
    await open({})
    const from = `data export --from ${place.fhirUrl}`
    for (const [options, why] of [
      ['', /: it answered 401 to the start of an export/],
      [
        '--client nobody --key key.json',
        /: Cannot get a token for system\/\*\.rs as nobody: 401 invalid_client\n$/,
      ],
      ['--client exporter --key jwks.json', /: Cannot use --key: expected a private key as PEM or JWK\n$/],
      ['--client exporter --key none.pem', /: Cannot use --key: none\.pem cannot be read\n$/],
      ['--client exporter', /Missing --key or --secret-file/],
    ] as const) {
      const { exitCode, stderr } = await run(place, `${from} ${options} out`.replace('  ', ' '))
      assert.notEqual(exitCode, 0)
      assert.match(stderr, why)
    }
    assert.equal(readdirSync(place.folder).includes('out'), false)
  })
})

type Answer = (request: IncomingMessage, response: ServerResponse, base: string) => void

describe('data export --from a server', () => {
  let folder: string
  let server: Server
  let base: string
  let asked: string[]
  let answers: Readonly<Record<string, Answer>>

  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'sallyport-from-'))
  })
  after(() => rmSync(folder, { recursive: true, force: true }))

  beforeEach(async () => {
    asked = []
    server = createServer((request, response) => {
      const line = `${request.method} ${request.url}`
      asked.push(line)
      const answer = answers[line] ?? DEFAULTS[line]
      if (answer) answer(request, response, base)
      else response.writeHead(404).end()
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    base = `http://127.0.0.1:${(server.address() as AddressInfo).port}/fhir`
  })
  afterEach(() => {
    server.closeAllConnections()
    server.close()
    rmSync(join(folder, 'out'), { recursive: true, force: true })
  })

  const manifest = (base: string, more: object = {}) =>
    JSON.stringify({
      transactionTime: '2026-11-13T00:00:00Z',
      request: `${base}/$export`,
      requiresAccessToken: true,
      output: [{ type: 'Patient', url: `${base}/file/1` }],
      error: [],
      ...more,
    })
  const PATIENTS = '{"resourceType":"Patient","id":"a"}\n{"resourceType":"Patient","id":"b"}\n'
  const DEFAULTS: Readonly<Record<string, Answer>> = {
    'GET /fhir/$export': (_, response, url) =>
      response.writeHead(202, { 'content-location': `${url}/status` }).end(),
    'GET /fhir/status': (_, response, url) => response.end(manifest(url)),
    'GET /fhir/file/1': (_, response) => response.end(PATIENTS),
    'DELETE /fhir/status': (_, response) => response.writeHead(202).end(),
  }

  const exportNow = (env: Readonly<Record<string, string>> = {}, options = '') =>
    sallyport(`data export --from ${base}${options} out`.split(' '), { cwd: folder, env })
  /** The answers one after the other, the last one for ever. */
  const inTurn = (...turns: readonly Answer[]): Answer => {
    let at = 0
    return (...parts) => turns[Math.min(at++, turns.length - 1)]?.(...parts)
  }

  it('waits as it is told, downloads a file that broke off again, and ends the export', async () => {
    answers = {
      'GET /fhir/status': inTurn(
        (_, response) => response.writeHead(202, { 'retry-after': '1', 'x-progress': '5%' }).end(),
        (_, response) => response.writeHead(429, { 'retry-after': '1' }).end(),
        (_, response, url) => response.end(manifest(url)),
      ),
      'GET /fhir/file/1': inTurn(
        (_, response) => {
          response.write(PATIENTS.slice(0, 50), () => response.destroy())
        },
        (_, response) => response.writeHead(503, { 'retry-after': '1' }).end(),
        (_, response) => response.end(PATIENTS),
      ),
    }
    const { exitCode, stdout, stderr } = await exportNow()
    assert.deepEqual([exitCode, stdout], [0, 'Exported 2 resources to out\n'], stderr)
    assert.equal(readFileSync(join(folder, 'out/Patient.ndjson'), 'utf8'), PATIENTS)
    assert.equal(asked.filter(line => line.endsWith('/file/1')).length, 3)
    assert.equal(asked.at(-1), 'DELETE /fhir/status')
  })

  it('keeps nothing of an export that is refused, incomplete or not what the manifest says', async () => {
    const outcome = JSON.stringify({
      resourceType: 'OperationOutcome',
      issue: [{ diagnostics: 'Not today' }],
    })
    const cases: readonly (readonly [Readonly<Record<string, Answer>>, RegExp])[] = [
      [
        { 'GET /fhir/$export': (_, response) => response.writeHead(403).end(outcome) },
        /: it answered 403 to the start of an export: Not today\n$/,
      ],
      [{ 'GET /fhir/$export': (_, response) => response.end('{}') }, /: it answered 200 to the start/],
      [{ 'GET /fhir/status': (_, response) => response.end('{}') }, /: its manifest is not one of Bulk Data/],
      [
        { 'GET /fhir/status': (_, response) => response.writeHead(404).end(outcome) },
        /: it answered 404 to a request for the status: Not today\n$/,
      ],
      [
        { 'GET /fhir/file/1': (_, response) => response.writeHead(404).end(outcome) },
        /: it answered 404 to a file of Patient: Not today\n$/,
      ],
      [
        { 'GET /fhir/file/1': (_, response) => response.end(`${PATIENTS}{"resourceType":"Group"}\n`) },
        /: line 3 of a file of Patient is not such a resource\n$/,
      ],
      [
        {
          'GET /fhir/status': (_, response, url) =>
            response.end(manifest(url, { output: [{ type: 'Patient', url: `${url}/file/1`, count: 3 }] })),
        },
        /: a file of Patient has 2 lines instead of 3\n$/,
      ],
      [
        {
          'GET /fhir/status': (_, response, url) =>
            response.end(manifest(url, { output: [{ type: '../../etc', url: `${url}/file/1` }] })),
        },
        /: its manifest names a file without a type or a URL\n$/,
      ],
      [
        {
          'GET /fhir/status': (_, response, url) =>
            response.end(manifest(url, { output: [{ type: 'Patient', url: 'http://other.test/1' }] })),
        },
        /: it refers to http:\/\/other\.test, which would get the credentials\./,
      ],
    ]
    for (const [given, why] of cases) {
      answers = given
      const { exitCode, stderr } = await exportNow()
      assert.equal(exitCode, 1)
      assert.match(stderr, why)
      assert.deepEqual(readdirSync(folder), [])
    }
  })

  it('sends no credentials to a place that needs none, and says what the server left out', async () => {
    const header: (string | undefined)[] = []
    answers = {
      'POST /fhir/Patient/$export': async (request, response, url) => {
        const chunks: Buffer[] = []
        for await (const chunk of request) chunks.push(chunk)
        asked.push(Buffer.concat(chunks).toString())
        response.writeHead(202, { 'content-location': `${url}/status` }).end()
      },
      'GET /fhir/status': (_, response, url) =>
        response.end(
          manifest(url, {
            requiresAccessToken: false,
            error: [{ type: 'OperationOutcome', url: `${url}/file/e` }],
          }),
        ),
      'GET /fhir/file/1': (request, response) => {
        header.push(request.headers.authorization)
        response.end(PATIENTS)
      },
      'GET /fhir/file/e': (_, response) =>
        response.end('{"resourceType":"OperationOutcome","issue":[{"diagnostics":"No\\r\\nDevice"}]}\n'),
    }
    const env = {
      SMART_FHIR_UPSTREAM_URL: base,
      SMART_FHIR_UPSTREAM_AUTH: 'bearer',
      SMART_FHIR_UPSTREAM_TOKEN: 'upstream-token',
    }
    const { exitCode, stderr } = await exportNow(env, ' --patient a --type Patient')
    assert.deepEqual([exitCode, stderr, header], [1, 'Not exported: No Device\n', [undefined]])
    assert.deepEqual(JSON.parse(asked[1] ?? ''), {
      resourceType: 'Parameters',
      parameter: [
        { name: '_type', valueString: 'Patient' },
        { name: 'patient', valueReference: { reference: 'Patient/a' } },
      ],
    })
    assert.deepEqual(readdirSync(join(folder, 'out')).sort(), ['Patient.ndjson', 'manifest.json'])
  })

  it('leaves nothing after Ctrl-C, and no file under its name after kill -9', async () => {
    for (const signal of ['SIGINT', 'SIGKILL'] as const) {
      const { promise, resolve } = Promise.withResolvers<void>()
      answers = {
        'GET /fhir/file/1': (_, response) => {
          response.write(
            `${PATIENTS}${`{"resourceType":"Patient","id":"${'c'.repeat(60)}"}\n`.repeat(5_000)}`,
          )
          setTimeout(resolve, 500)
        },
      }
      const started = startProcess(`data export --from ${base} out`.split(' '), { folder, env: {} })
      await promise
      started.child.kill(signal)
      const { exitCode } = await started.ended()
      if (signal === 'SIGINT') {
        assert.deepEqual(
          [exitCode, started.stderr(), readdirSync(folder)],
          [1, 'Cannot export to out: it was interrupted\n', []],
        )
        assert.equal(asked.at(-1), 'DELETE /fhir/status')
      } else assert.deepEqual(readdirSync(join(folder, 'out')), ['.Patient.ndjson.part'])
    }
    const { exitCode, stderr } = await exportNow()
    assert.equal(exitCode, 1)
    assert.match(stderr, /the folder is not empty: it has \.Patient\.ndjson\.part\n$/)
  })
})
