import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { Worker } from 'node:worker_threads'
import { gzipSync } from 'node:zlib'
import { sallyport } from '../../../test/support/command-line.ts'
import { fhirServer, openRepository } from '../../backends/sqlite/index.ts'
import { formatCount } from '../../core/index.ts'
import { samplePatients } from '../../sample-patients/index.ts'
import { createProgress } from '../progress.ts'
import { formatReport } from './data-import.ts'

const baseUrl = 'http://localhost:8080/fhir'
const sample = [...samplePatients({ now: Date.UTC(2026, 10, 13), count: 6 })]
const ndjson = sample.map(it => JSON.stringify(it)).join('\n')

function setUp() {
  const cwd = mkdtempSync(join(tmpdir(), 'sallyport-data-'))
  after(() => rmSync(cwd, { recursive: true, force: true }))
  const dataFile = join(cwd, 'data', 'fhir.db')
  const run = (args: readonly string[], env: Readonly<Record<string, string>>) =>
    sallyport(['data', 'import', ...args], { cwd, env: { SMART_DATA_DIR: join(cwd, 'data'), ...env } })
  return {
    dataFile,
    write: (name: string, content: string | Buffer) => writeFileSync(join(cwd, name), content),
    run: Object.assign((...args: string[]) => run(args, {}), {
      with:
        (env: Readonly<Record<string, string>>) =>
        (...args: string[]) =>
          run(args, env),
    }),
    look: <T>(use: (repository: ReturnType<typeof openRepository>) => T) => {
      const repository = openRepository({ file: dataFile, baseUrl })
      try {
        return use(repository)
      } finally {
        repository.close()
      }
    },
  }
}

describe('sallyport data import', () => {
  it('creates the database before the first start and reports created resources', async () => {
    const { write, run, look } = setUp()
    write('export.ndjson.gz', gzipSync(ndjson))
    const { exitCode, stdout, stderr } = await run('export.ndjson.gz')
    assert.equal(exitCode, 0, stderr)
    const all = sample.length.toLocaleString('en')
    assert.match(
      stdout,
      new RegExp(`^Read ${all} resources from 1 file in \\d+\\.\\d s\n  created    +${all}\n  updated +0\n`),
    )
    assert.equal(
      look(repository => repository.count()),
      sample.length,
    )
  })

  it('changes nothing the second time (CLI-5)', async () => {
    const { write, run } = setUp()
    write('export.ndjson', ndjson)
    await run('export.ndjson')
    const { exitCode, stdout } = await run('export.ndjson')
    assert.equal(exitCode, 0)
    assert.match(
      stdout,
      new RegExp(`created +0\n +updated +0\n +unchanged +${sample.length}\n +refused +0\n$`),
    )
  })

  it('works while a server writes to the same data', async () => {
    const { write, run, look, dataFile } = setUp()
    write('first.ndjson', JSON.stringify({ resourceType: 'Patient', id: 'first' }))
    await run('first.ndjson')
    write('export.ndjson', ndjson)
    const server = await startWriter(dataFile)
    const { exitCode, stderr } = await run('export.ndjson')
    const written = await server.stop()
    assert.equal(exitCode, 0, stderr)
    assert.ok(written > 0)
    assert.equal(
      look(repository => repository.count()),
      1 + sample.length + written,
    )
  })

  it('lists refused resources by reason with file and line, without values, and exits with 1', async () => {
    const { write, run, look } = setUp()
    const bad = {
      resourceType: 'Patient',
      id: 'bad',
      birthDate: 'Rumpelstiltskin',
      name: [{ family: 'Rumpelstiltskin' }],
    }
    write(
      'mixed.ndjson',
      `${JSON.stringify({ resourceType: 'Patient', id: 'good' })}\n${JSON.stringify(bad)}\nRumpelstiltskin\n`,
    )
    const { exitCode, stdout, stderr } = await run('mixed.ndjson')
    assert.equal(exitCode, 1)
    assert.match(stdout, /^Read 2 resources, and 1 line or entry that is not a resource, from 1 file in /)
    assert.match(stdout, /created +1\n.*\n.*\n +refused +2\nRefused, by reason:\n/)
    assert.match(stdout, /1 x Patient\.birthDate: .* \(mixed\.ndjson:2\)\n/)
    assert.match(stdout, /1 x Not JSON \(mixed\.ndjson:3\)\n/)
    assert.doesNotMatch(stdout + stderr, /Rumpel/)
    assert.equal(
      look(repository => repository.count()),
      1,
    )
  })

  it('names unreadable files, imports the rest, and exits with 1', async () => {
    const { write, run } = setUp()
    const packed = gzipSync(ndjson)
    write('cut.ndjson.gz', packed.subarray(0, packed.length - 500))
    write('fine.ndjson', JSON.stringify({ resourceType: 'Patient', id: 'fine' }))
    const { exitCode, stdout } = await run('cut.ndjson.gz', 'none.json', 'fine.ndjson')
    assert.equal(exitCode, 1)
    assert.match(stdout, /Cannot read none\.json: There is no such file or folder\n/)
    assert.match(
      stdout,
      /Cannot read cut\.ndjson\.gz after line \d+: The gzip data end early: the file is cut off\n/,
    )
    assert.match(stdout, /refused +0\n/)
  })

  for (const [name, args, code, line] of [
    [
      'a file that is not there',
      ['none.json'],
      1,
      /^Cannot read none\.json: There is no such file or folder\n$/,
    ],
    ['a folder without a file of ours', ['.'], 1, /^Cannot import: no file is named .* 1 skipped\n$/],
    ['nothing', [], 2, /^Missing argument: see npm run -s sallyport -- data import --help\n$/],
  ] as const) {
    it(`explains in one line why it refuses ${name}`, async () => {
      const { write, run } = setUp()
      write('notes.txt', '')
      const { exitCode, stdout, stderr } = await run(...args)
      assert.deepEqual({ exitCode, stdout }, { exitCode: code, stdout: '' })
      assert.match(stderr, line)
    })
  }

  it("sends to another server, with the gateway's credentials only for its upstream (CLI-5)", async () => {
    const { write, run } = setUp()
    write('sample.ndjson', `${ndjson}\n{"resourceType":"Patient","id":"bad","gender":"nonsense"}`)
    const seen: (string | undefined)[] = []
    const app = await fhirServer({
      baseUrl: 'http://other.test/r4',
      dataFile: ':memory:',
      smartConfiguration: {},
    })
    app.addHook('onRequest', async request => {
      seen.push(request.headers.authorization)
    })
    const url = `${await app.listen({ port: 0, host: '127.0.0.1' })}/r4`
    try {
      const first = await run('--to', url, 'sample.ndjson')
      assert.equal(first.exitCode, 1, 'one was refused')
      assert.match(first.stdout, new RegExp(`created +${sample.length}\\n`))
      assert.match(first.stdout, /refused +1\n/)
      assert.equal((await app.inject({ url: '/r4/Patient?_summary=count' })).json().total, 6)
      const env = {
        SMART_FHIR_UPSTREAM_URL: url,
        SMART_FHIR_UPSTREAM_AUTH: 'bearer',
        SMART_FHIR_UPSTREAM_TOKEN: 'abc',
      }
      const again = await run.with(env)('--to', `${url}/`, 'sample.ndjson')
      assert.match(again.stdout, new RegExp(`updated +${sample.length}\\n`))
      assert.deepEqual([seen[0], seen.at(-1)], [undefined, 'Bearer abc'])
    } finally {
      await app.close()
    }
    const unreachable = await run('--to', url, 'sample.ndjson')
    assert.equal(unreachable.exitCode, 1)
    assert.match(unreachable.stderr, /^Cannot send to http.*: ECONNREFUSED\n$/)
    // fetch blocks this port; its error has no code.
    const banned = await run('--to', 'http://localhost:1/r4', 'sample.ndjson')
    assert.equal(banned.stderr, 'Cannot send to http://localhost:1/r4: bad port\n')
    assert.match(
      (await run('--to', 'ftp://x', 'sample.ndjson')).stderr,
      /^Cannot import: --to is not an http/,
    )
  })

  it('names the credential settings if the server requires authentication', async () => {
    const { write, run } = setUp()
    write('sample.ndjson', ndjson)
    const server = createServer((request, response) => {
      request.resume()
      response.writeHead(401).end()
    })
    await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/r4`
    try {
      const other = await run('--to', url, 'sample.ndjson')
      const upstream = await run.with({ SMART_FHIR_UPSTREAM_URL: url })('--to', url, 'sample.ndjson')
      assert.deepEqual([other.exitCode, upstream.exitCode], [1, 1])
      const refused = `Cannot send to ${url}: it answered 401 to a batch; `
      assert.equal(
        other.stderr,
        `${refused}set SMART_FHIR_UPSTREAM_URL to this URL, and SMART_FHIR_UPSTREAM_AUTH with its settings\n`,
      )
      assert.equal(upstream.stderr, `${refused}check SMART_FHIR_UPSTREAM_AUTH and its settings\n`)
    } finally {
      server.close()
    }
  })

  it("groups the server's reasons without ids, and names the setting that numeric ids need", async () => {
    const { write, run } = setUp()
    write('two.ndjson', '{"resourceType":"Patient","id":"85"}\n{"resourceType":"Patient","id":"355"}')
    const refuse = (id: string) => ({
      resourceType: 'OperationOutcome',
      issue: [{ diagnostics: `HAPI-0960: Can not create resource with ID[${id}]` }],
    })
    const entry = ['85', '355'].map(id => ({ response: { status: '400 Bad Request', outcome: refuse(id) } }))
    const server = createServer((request, response) => {
      request.resume()
      response.end(JSON.stringify({ resourceType: 'Bundle', entry }))
    })
    await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
    try {
      const { port } = server.address() as AddressInfo
      const { exitCode, stdout } = await run('--to', `http://127.0.0.1:${port}/r4`, 'two.ndjson')
      assert.equal(exitCode, 1)
      const [reason] = /2 x Patient: .*\n/.exec(stdout) ?? []
      assert.equal(
        reason,
        '2 x Patient: server returned 400: HAPI-0960: Can not create resource with ID[…]. To keep numeric ids, set hapi.fhir.client_id_strategy: ANY in the application.yaml of HAPI (Patient/85, Patient/355)\n',
      )
    } finally {
      server.close()
    }
  })

  it('does not import beside an upstream server', async () => {
    const { exitCode, stderr } = await sallyport(['data', 'import', 'x.json'], {
      env: { SMART_FHIR_UPSTREAM_URL: 'http://localhost:9999/fhir' },
    })
    assert.equal(exitCode, 1)
    assert.match(stderr, /SMART_FHIR_UPSTREAM_URL is set/)
  })
})

/** Writes small resources to the same file from another thread, as a server does. */
async function startWriter(file: string) {
  const code = `
    import { parentPort, workerData } from 'node:worker_threads'
    const { openRepository } = await import(workerData.module)
    const repository = openRepository({ file: workerData.file, baseUrl: workerData.baseUrl })
    let written = 0, running = true
    parentPort.once('message', () => { running = false })
    while (running) {
      repository.load([{ resourceType: 'Basic', id: 'b' + written++, code: { text: 'x' } }])
      if (written === 1) parentPort.postMessage('writes')
      await new Promise(done => setTimeout(done, 2))
    }
    repository.close()
    parentPort.postMessage(written)
    parentPort.close()`
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(code)}`), {
    workerData: { file, baseUrl, module: new URL('../../backends/sqlite/index.ts', import.meta.url).href },
  })
  await once(worker, 'message')
  return {
    async stop(): Promise<number> {
      worker.postMessage('stop')
      const [written] = await once(worker, 'message')
      return Number(written)
    },
  }
}

const nothing = {
  files: 1,
  created: 0,
  updated: 0,
  unchanged: 0,
  refused: 0,
  reasons: [],
  unreadable: [],
  unresolved: 0,
  notResources: 0,
}

const place = (line: number) => `a.ndjson:${line}`

describe('formatReport', () => {
  it('aligns the numbers', () => {
    assert.equal(
      formatReport({ ...nothing, files: 2, created: 12_345, unchanged: 7 }, 0, 2345),
      'Read 12,352 resources from 2 files in 2.3 s\n  created    12,345\n  updated         0\n  unchanged       7\n  refused         0\n',
    )
  })

  it('prints the first locations of a reason and notes that there are more', () => {
    const reasons = [
      { text: 'Patient.birthDate: Expected a date', count: 1200, places: [place(1), place(2), place(9)] },
      { text: 'Not JSON', count: 1, places: [place(4)] },
    ]
    const text = formatReport({ ...nothing, refused: 1201, reasons }, 0, 10)
    assert.match(
      text,
      /\n {2}1,200 x Patient\.birthDate: Expected a date \(a\.ndjson:1, a\.ndjson:2, a\.ndjson:9, …\)\n/,
    )
    assert.match(text, /\n {2}1 x Not JSON \(a\.ndjson:4\)\n/)
  })

  it('summarizes reasons beyond the twentieth', () => {
    const reasons = Array.from({ length: 25 }, (_, at) => ({ text: `R${at}`, count: 2, places: [place(at)] }))
    const text = formatReport({ ...nothing, refused: 50, reasons }, 0, 10)
    assert.match(text, /2 x R19 /)
    assert.doesNotMatch(text, /R20 /)
    assert.match(text, /\n {2}10 x for 5 other reasons\n/)
  })

  it('reports truncated files, unresolved references and skipped files', () => {
    const unreadable = [
      { file: 'a.gz', line: 12, reason: 'The gzip data are damaged' },
      { file: 'b.json', reason: 'Permission is denied' },
    ]
    const text = formatReport({ ...nothing, unreadable, unresolved: 1 }, 3, 10)
    assert.match(
      text,
      /\nCannot read a\.gz after line 12: The gzip data are damaged\nCannot read b\.json: Permission is denied\n/,
    )
    assert.match(text, /\nKept 1 conditional reference as written: /)
    assert.match(text, /\nSkipped 3 files not named /)
  })
})

describe('counted', () => {
  it('uses singular and plural', () => {
    assert.deepEqual(
      [formatCount(0, 'file'), formatCount(1, 'file'), formatCount(2000, 'file')],
      ['0 files', '1 file', '2,000 files'],
    )
  })
})

function watch(options: { isTTY?: boolean; columns?: number }, steps: readonly [ms: number, read: number][]) {
  const written: string[] = []
  let now = 1000
  const progress = createProgress({ ...options, write: text => written.push(text) }, () => now)
  for (const [ms, read] of steps) {
    now += ms
    progress.show({ read, total: 1000, resources: read * 10 })
  }
  progress.end()
  return written
}

describe('createProgress', () => {
  it('draws a bar on a terminal, at most ten times a second, and clears it', () => {
    const written = watch({ isTTY: true, columns: 80 }, [
      [50, 100],
      [60, 250],
      [20, 300],
      [890, 1000],
    ])
    assert.deepEqual(written, [
      `\r[${'#'.repeat(10)}${'-'.repeat(30)}] 25 %  2,500 resources  22,727/s\x1b[K`,
      `\r[${'#'.repeat(40)}] 100 %  10,000 resources  9,804/s\x1b[K`,
      '\r\x1b[K',
    ])
  })

  it('assumes 80 columns if the terminal width is unknown', () => {
    const [line = ''] = watch({ isTTY: true, columns: 0 }, [[100, 500]])
    assert.match(line, /^\r\[#{20}-{20}\] 50 %/)
  })

  it('omits the bar if the terminal is too narrow', () => {
    const [line = ''] = watch({ isTTY: true, columns: 30 }, [[100, 500]])
    assert.equal(line, '\r50 %  5,000 resources  50,000/s\x1b[K')
  })

  it('writes occasional plain lines elsewhere, and nothing for a quick import', () => {
    assert.deepEqual(watch({}, [[4000, 900]]), [])
    const written = watch({}, [
      [4000, 400],
      [1000, 500],
      [100, 510],
    ])
    assert.deepEqual(written, ['50 %  5,000 resources  1,000/s\n'])
  })
})
