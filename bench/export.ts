/**
 * `node bench/export.ts`: the throughput of a file of a bulk export, compared with the same rows streamed from the database
 * without any check, the memory that it takes, and the time of reads beside two downloads.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, get } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { setTimeout } from 'node:timers/promises'
import { createAuditor, createFhirAudit } from '../src/audit/index.ts'
import { fhirServer, openRepository } from '../src/backends/sqlite/index.ts'
import { exportOperations } from '../src/fhir/index.ts'
import { createInterceptor } from '../src/interceptor/index.ts'
import { authUrl, fhirBaseUrl, TestIssuer } from '../src/interceptor/testing/test-issuer.ts'
import { samplePatients } from '../src/sample-patients/index.ts'
import { createSealer, openStore } from '../src/store/index.ts'
import { reportValues } from './shared/report.ts'

const IS_QUICK = process.env.BENCH_QUICK !== undefined
const RESOURCES = IS_QUICK ? 2_000 : Number(process.env.BENCH_RESOURCES ?? 100_000)
const ROUNDS = IS_QUICK ? 1 : 5
const FOREVER = Number.POSITIVE_INFINITY
const LEAST = 0.6
const MOST_MB = 50
const MOST_MS = 100
/** One that sees everything, and one for which each resource is parsed and checked. Both see all of the data. */
const SCOPES = {
  all: 'system/*.rs',
  granular: `system/Observation.rs?category=http://terminology.hl7.org/CodeSystem/observation-category|laboratory system/Patient.rs`,
}
const [, , role, folder = ''] = process.argv

if (role === 'export') await serve(folder)
else if (role === 'unchecked') await serveUnchecked(folder)
else await measure()

async function measure(): Promise<void> {
  const made = mkdtempSync(join(tmpdir(), 'sallyport-bench-'))
  fill(made)
  const children = ['export', 'unchecked'].map(name =>
    // The young generation is as large as that of the servers.
    fork(import.meta.filename, [name, made], { execArgv: ['--expose-gc', '--max-semi-space-size=8'] }),
  )
  const [child = fail(), plain = fail()] = children
  try {
    const [{ base, tokens }, unchecked]: [Served, Served] = await Promise.all([listen(child), listen(plain)])
    await ask(child, 'memory')
    const untouched = await ask(child, 'memory')
    const all = { url: await findFile(base, tokens.all), token: tokens.all }
    await download(all)
    const first = await ask(child, 'memory')
    const granular = { url: await findFile(base, tokens.granular), token: tokens.granular }
    await download(granular)
    await ask(child, 'memory')
    const rest = await ask(child, 'memory')
    const files = { unchecked: { url: unchecked.base, token: '' }, all, granular }
    const times = { unchecked: FOREVER, all: FOREVER, granular: FOREVER }
    for (let round = 0; round < ROUNDS; round++)
      for (const name of ['unchecked', 'all', 'granular'] as const) {
        const server = name === 'unchecked' ? plain : child
        times[name] = Math.min(times[name], await measureDownload(server, files[name]))
      }
    const largest = await ask(child, 'memory')
    const read = await measureReads(`${base}/Observation/o0`, all)
    await reportValues([
      { measured: 'export: resources per second of CPU time', value: RESOURCES / times.all },
      {
        measured: 'export: CPU time, relative to the same rows without checks',
        value: times.all / times.unchecked,
        most: 1 / LEAST,
      },
      {
        measured: 'export: CPU time with a granular scope, relative to the same rows without checks',
        value: times.granular / times.unchecked,
      },
      { measured: 'export: memory beyond that at rest (MB)', value: largest - rest, most: MOST_MB },
      {
        measured:
          'export: memory of the first download beyond that of a process that has served nothing (MB)',
        value: first - untouched,
        most: MOST_MB,
      },
      { measured: 'export: longest read beside two compressed downloads (ms)', value: read, most: MOST_MS },
    ])
  } finally {
    for (const it of children) it.kill()
    await Promise.all(children.map(it => once(it, 'exit')))
    rmSync(made, { recursive: true, force: true })
  }
}

interface Served {
  readonly base: string
  readonly tokens: Readonly<Record<keyof typeof SCOPES, string>>
}

interface File {
  readonly url: string
  readonly token: string
}

async function listen(server: ReturnType<typeof fork>): Promise<Served> {
  return ((await once(server, 'message')) as [Served])[0]
}

function fail(): never {
  throw new Error('Cannot start the servers')
}

/** The laboratory results of the sample patients, many times. */
function fill(made: string): void {
  const sample = [...samplePatients({ now: Date.UTC(2026, 10, 13), count: 10 })]
  const observations = sample.filter(
    it => it.resourceType === 'Observation' && JSON.stringify(it.category).includes('laboratory'),
  )
  const repository = openRepository({ file: join(made, 'fhir.db'), baseUrl: fhirBaseUrl })
  const copies = function* () {
    for (let at = 0; at < RESOURCES; at++) {
      const observation = observations[at % observations.length]
      if (observation) yield { ...observation, id: `o${at}` }
    }
  }
  repository.loadInBatches('bench', copies())
  repository.close()
}

function acceptPlain(token: string) {
  return { authorization: token, 'accept-encoding': 'identity' }
}

async function findFile(base: string, token: string): Promise<string> {
  const headers = acceptPlain(token)
  const started = await fetch(`${base}/$export?_type=Observation`, { headers })
  const path = (url: string) => url.replace(fhirBaseUrl, base)
  const status = path(started.headers.get('content-location') ?? '')
  for (;;) {
    const reply = await fetch(status, { headers })
    if (reply.status === 200) {
      const { output } = (await reply.json()) as { readonly output: readonly { readonly url: string }[] }
      return path(output[0]?.url ?? '')
    }
    await reply.text()
    await setTimeout(1_000)
  }
}

async function download({ url, token }: File): Promise<void> {
  const reply = await fetch(url, { headers: acceptPlain(token) })
  let lines = 0
  for await (const chunk of reply.body ?? [])
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) lines++
  if (lines !== RESOURCES) throw new Error(`Downloaded ${lines} of ${RESOURCES} resources`)
}

/** The longest of many reads beside two downloads, in milliseconds. `fetch` would decompress them in this process. */
async function measureReads(resource: string, { url, token }: File): Promise<number> {
  const headers = { authorization: token, 'accept-encoding': 'gzip' }
  let running = 2
  for (let at = 0; at < 2; at++)
    get(url, { headers }, reply => {
      if (reply.headers['content-encoding'] !== 'gzip') throw new Error('The download is not compressed')
      reply.resume().on('close', () => running--)
    })
  let largest = 0
  while (running > 0) {
    const start = performance.now()
    await (await fetch(resource, { headers })).text()
    largest = Math.max(largest, performance.now() - start)
    await setTimeout(5)
  }
  return largest
}

/** The CPU time of the server for a download, in seconds: other load on the machine does not count. */
async function measureDownload(server: ReturnType<typeof fork>, file: File): Promise<number> {
  const before = await ask(server, 'cpu')
  await download(file)
  return (await ask(server, 'cpu')) - before
}

/** The CPU time of a server in seconds, or its largest resident memory since it was asked last, in MB. */
async function ask(server: ReturnType<typeof fork>, about: 'cpu' | 'memory'): Promise<number> {
  server.send(about)
  return ((await once(server, 'message')) as [number])[0]
}

function answerQuestions(): void {
  let largest = 0
  setInterval(() => {
    largest = Math.max(largest, process.memoryUsage.rss() / 1e6)
  }, 20).unref()
  process.on('message', about => {
    const { user, system } = process.cpuUsage()
    process.send?.(about === 'cpu' ? (user + system) / 1e6 : largest)
    if (about === 'cpu') return
    globalThis.gc?.()
    largest = process.memoryUsage.rss() / 1e6
  })
}

async function serve(made: string): Promise<void> {
  const store = await openStore(`sqlite:${join(made, 'store.db')}`)
  const auditor = createAuditor({ store })
  const issuer = new TestIssuer()
  const { fetch, clock } = issuer
  const app = await fhirServer({
    baseUrl: fhirBaseUrl,
    dataFile: join(made, 'fhir.db'),
    smartConfiguration: {},
    guard: createInterceptor({
      authUrl,
      fhirBaseUrl,
      fetch,
      clock,
      contexts: ['system'],
      operations: exportOperations,
    }),
    audit: createFhirAudit({ auditor, store, fhirBaseUrl }),
    exports: {
      store,
      sealer: createSealer('a secret of the benchmark'),
      lifetimeMs: 3_600_000,
      fileResources: RESOURCES,
    },
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as AddressInfo
  answerQuestions()
  const makeToken = (scope: string) => issuer.bearer({ scope, patient: undefined, client_id: 'service' })
  const tokens = { all: makeToken(SCOPES.all), granular: makeToken(SCOPES.granular) }
  process.send?.({ base: `http://127.0.0.1:${port}/fhir`, tokens } satisfies Served)
}

/** The same rows, sent in chunks of the same size as the database returns them. */
async function serveUnchecked(made: string): Promise<void> {
  const { database, names } = openRepository({ file: join(made, 'fhir.db'), baseUrl: fhirBaseUrl })
  const tid = names.typeId('Observation')
  const sql = 'SELECT content FROM resource WHERE deleted = 0 AND tid = ? ORDER BY rid'
  function* read() {
    let chunk = ''
    for (const [content] of database.each(sql, [tid])) {
      chunk += `${content}\n`
      if (chunk.length < 65_536) continue
      yield Buffer.from(chunk)
      chunk = ''
    }
    yield Buffer.from(chunk)
  }
  const server = createServer((_, response) => {
    Readable.from(read(), { objectMode: false }).pipe(response)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  answerQuestions()
  const { port } = server.address() as AddressInfo
  process.send?.({ base: `http://127.0.0.1:${port}`, tokens: { all: '', granular: '' } } satisfies Served)
}
