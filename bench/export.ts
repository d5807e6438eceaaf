/**
 * `node bench/export.ts`: the throughput of a file of a bulk export, compared with the same rows streamed from the database
 * without any check, and the memory that it takes.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { setTimeout } from 'node:timers/promises'
import { createAuditor, createFhirAudit } from '../src/audit/index.ts'
import { fhirServer, openRepository } from '../src/backends/sqlite/index.ts'
import { samplePatients } from '../src/sample-patients/index.ts'
import { fullAccess, parseScopes } from '../src/smart/index.ts'
import { createSealer, openStore } from '../src/store/index.ts'
import { reportValues } from './shared/report.ts'

const IS_QUICK = process.env.BENCH_QUICK !== undefined
const RESOURCES = IS_QUICK ? 2_000 : Number(process.env.BENCH_RESOURCES ?? 100_000)
const ROUNDS = IS_QUICK ? 1 : 5
const LEAST = 0.6
const MOST_MB = 50
const BASE = 'http://localhost:8080/fhir'
const HEADERS = { headers: { authorization: 'Bearer service', 'accept-encoding': 'identity' } }
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
    const [base = '', unchecked = ''] = await Promise.all(
      children.map(async it => (await once(it, 'message'))[0]),
    )
    const file = await findFile(base)
    // The cache of the database and the compiled code do not depend on the size.
    await download(file)
    await ask(child, 'memory')
    const rest = await ask(child, 'memory')
    const times = { file: Number.POSITIVE_INFINITY, unchecked: Number.POSITIVE_INFINITY }
    for (let round = 0; round < ROUNDS; round++) {
      times.unchecked = Math.min(times.unchecked, await measureDownload(plain, unchecked))
      times.file = Math.min(times.file, await measureDownload(child, file))
    }
    const largest = await ask(child, 'memory')
    await reportValues([
      { measured: 'export: resources per second of CPU time', value: RESOURCES / times.file },
      {
        measured: 'export: CPU time, relative to the same rows without checks',
        value: times.file / times.unchecked,
        most: 1 / LEAST,
      },
      { measured: 'export: memory beyond that at rest (MB)', value: largest - rest, most: MOST_MB },
    ])
  } finally {
    for (const it of children) it.kill()
    await Promise.all(children.map(it => once(it, 'exit')))
    rmSync(made, { recursive: true, force: true })
  }
}

function fail(): never {
  throw new Error('Cannot start the servers')
}

/** The Observations of the sample patients, many times. */
function fill(made: string): void {
  const sample = [...samplePatients({ now: Date.UTC(2026, 10, 13), count: 10 })]
  const observations = sample.filter(it => it.resourceType === 'Observation')
  const repository = openRepository({ file: join(made, 'fhir.db'), baseUrl: BASE })
  const copies = function* () {
    for (let at = 0; at < RESOURCES; at++) {
      const observation = observations[at % observations.length]
      if (observation) yield { ...observation, id: `o${at}` }
    }
  }
  repository.loadInBatches('bench', copies())
  repository.close()
}

async function findFile(base: string): Promise<string> {
  const started = await fetch(`${base}/$export?_type=Observation`, HEADERS)
  const path = (url: string) => url.replace(BASE, base)
  const status = path(started.headers.get('content-location') ?? '')
  for (;;) {
    const reply = await fetch(status, HEADERS)
    if (reply.status === 200) {
      const { output } = (await reply.json()) as { readonly output: readonly { readonly url: string }[] }
      return path(output[0]?.url ?? '')
    }
    await reply.text()
    await setTimeout(1_000)
  }
}

async function download(url: string): Promise<void> {
  const reply = await fetch(url, HEADERS)
  let lines = 0
  for await (const chunk of reply.body ?? [])
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) lines++
  if (lines !== RESOURCES) throw new Error(`Downloaded ${lines} of ${RESOURCES} resources`)
}

/** The CPU time of the server for a download, in seconds: other load on the machine does not count. */
async function measureDownload(server: ReturnType<typeof fork>, url: string): Promise<number> {
  const before = await ask(server, 'cpu')
  await download(url)
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
  const grant = { scopes: parseScopes('system/*.rs'), clientId: 'service' }
  const app = await fhirServer({
    baseUrl: BASE,
    dataFile: join(made, 'fhir.db'),
    smartConfiguration: {},
    guard: {
      authenticate: () => ({
        allowed: true,
        grant,
        decide: () => ({ allowed: true, access: fullAccess, by: 'system/*.rs' }),
      }),
    },
    audit: createFhirAudit({ auditor, store, fhirBaseUrl: BASE }),
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
  process.send?.(`http://127.0.0.1:${port}/fhir`)
}

/** The same rows, sent in chunks of the same size as the database returns them. */
async function serveUnchecked(made: string): Promise<void> {
  const { database, names } = openRepository({ file: join(made, 'fhir.db'), baseUrl: BASE })
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
  process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
}
