/**
 * `node bench/gateway.ts`: Patient reads with full enforcement through the gateway, beside `@fastify/http-proxy` without
 * checks, and nginx where it is installed. Each is a process of its own in front of the same upstream; they take turns, with
 * the same number of connections, in one run. The ratio compares CPU time per request, which other load on the machine
 * does not change. Each of many apps reads its own patient repeatedly; two more lines show the gateway when every response
 * is new, and with the audit trail on. Exits 1 when the gateway's ratio is below 1.
 */
import { type ChildProcess, fork, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createServer as createProbe } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import httpProxy from '@fastify/http-proxy'
import fastify from 'fastify'
import { Pool } from 'undici'
import { samplePatients } from '../sample-patients/index.ts'
import { createAuditor, type FhirAudit, fhirAudit } from '../src/audit/index.ts'
import { createGateway } from '../src/backends/upstream/index.ts'
import { createInterceptor } from '../src/interceptor/index.ts'
import { authUrl, TestIssuer } from '../src/interceptor/testing/test-issuer.ts'
import { openStore } from '../src/store/index.ts'

const CONNECTIONS = 16
const WARM_ROUNDS = 6
const ROUNDS = 9
const REQUESTS = 3_200
const patients = [...samplePatients({ count: 60, now: Date.UTC(2026, 0, 1) })].filter(
  it => it.resourceType === 'Patient',
)
// Not the URL that the gateway listens on here: only the audience of the token has to match.
const baseUrl = 'http://gateway.test/fhir'

type Role = 'upstream' | 'gateway' | 'http-proxy' | 'changing' | 'audited'

async function serve(as: Role, upstream: string): Promise<void> {
  const { port, tokens } = await SERVERS[as](upstream)
  process.on('message', () => process.send?.({ ...process.cpuUsage(), memory: process.memoryUsage().rss }))
  process.on('disconnect', () => process.exit(0))
  process.send?.({ port, tokens })
}

interface Served {
  readonly port: number
  /** One for each patient, in their order. */
  readonly tokens?: readonly string[]
}

const SERVERS: Readonly<Record<Role, (upstream: string) => Promise<Served>>> = {
  async upstream() {
    const bodies = new Map(patients.map(it => [`/fhir/Patient/${it.id}`, JSON.stringify(it)]))
    let version = 0
    const server = createServer(({ url = '' }, response) => {
      const isChanging = url.startsWith('/changing')
      const kept = bodies.get(isChanging ? url.slice('/changing'.length) : url) ?? '{}'
      const body = isChanging ? kept.replace('{', `{"meta":{"versionId":"${++version}"},`) : kept
      response
        .writeHead(200, {
          'content-type': 'application/fhir+json',
          etag: 'W/"1"',
          'content-length': Buffer.byteLength(body),
        })
        .end(body)
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    return { port: (server.address() as AddressInfo).port }
  },

  gateway: upstream => startGateway(upstream),

  changing: upstream => startGateway(upstream.replace('/fhir', '/changing/fhir')),

  async audited(upstream) {
    const folder = mkdtempSync(join(tmpdir(), 'gateway-bench-'))
    process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
    const store = await openStore(`sqlite:${join(folder, 'audit.db')}`)
    return startGateway(
      upstream,
      fhirAudit({ auditor: createAuditor({ store }), store, fhirBaseUrl: baseUrl }),
    )
  },

  async 'http-proxy'(upstream) {
    const app = fastify()
    await app.register(httpProxy, {
      upstream: new URL(upstream).origin,
      prefix: '/fhir',
      rewritePrefix: '/fhir',
    })
    await app.listen({ port: 0, host: '127.0.0.1' })
    return { port: (app.server.address() as AddressInfo).port }
  },
}

async function startGateway(upstreamUrl: string, audit?: FhirAudit): Promise<Served> {
  const auth = new TestIssuer()
  const guard = createInterceptor({ authUrl, fhirBaseUrl: baseUrl, fetch: auth.fetch, clock: auth.clock })
  const app = await createGateway({ baseUrl, upstreamUrl, guard, smartConfiguration: {}, audit })
  await app.listen({ port: 0, host: '127.0.0.1' })
  const scope = 'patient/Patient.rs patient/Condition.rs'
  const tokens = patients.map(({ id }) => auth.token({ aud: baseUrl, scope, patient: id }))
  return { port: (app.server.address() as AddressInfo).port, tokens }
}

interface Contender {
  readonly name: string
  readonly port: number
  readonly tokens: readonly string[]
  /** Microseconds of processor time so far, and memory in bytes. */
  usage(): Promise<{ readonly cpu: number; readonly memory: number }>
  end(): void
}

async function measure(): Promise<number> {
  const upstream = await start('upstream')
  const url = `http://127.0.0.1:${upstream.port}/fhir`
  const contenders = [
    await start('gateway', url),
    await start('http-proxy', url),
    ...(await startNginx(url)),
    await start('changing', url),
    await start('audited', url),
  ]
  const results = new Map(
    contenders.map(it => [it.name, { cpu: [] as number[], rate: [] as number[], late: [] as number[] }]),
  )
  for (let at = 0; at < WARM_ROUNDS; at++) for (const contender of contenders) await round(contender)
  const before = await Promise.all(contenders.map(it => it.usage()))
  for (let at = 0; at < ROUNDS; at++)
    for (const contender of contenders) {
      const { cpu, rate, p99 } = await round(contender)
      const result = results.get(contender.name)
      result?.cpu.push(cpu)
      result?.rate.push(rate)
      result?.late.push(p99)
    }
  const after = await Promise.all(contenders.map(it => it.usage()))
  for (const [at, { name }] of contenders.entries()) {
    const { cpu = [], rate = [], late = [] } = results.get(name) ?? {}
    const grown = ((after[at]?.memory ?? 0) - (before[at]?.memory ?? 0)) / 2 ** 20
    print(
      `${(TITLES[name] ?? name).padEnd(32)} ${median(cpu).toFixed(0).padStart(5)} us of processor a request, ${median(rate).toFixed(0)} requests/s,` +
        ` p99 ${median(late).toFixed(1)} ms, memory ${((after[at]?.memory ?? 0) / 2 ** 20).toFixed(0)} MB (${grown >= 0 ? '+' : ''}${grown.toFixed(0)} MB over the run)`,
    )
  }
  const computeRatio = (name: string) =>
    median(results.get('http-proxy')?.cpu ?? []) / median(results.get(name)?.cpu ?? [])
  print('Throughput of one core, over that of http-proxy with no check:')
  for (const name of ['gateway', 'changing', 'audited', 'nginx'])
    if (results.has(name)) print(`${(TITLES[name] ?? name).padEnd(32)} ${computeRatio(name).toFixed(2)}`)
  for (const it of [...contenders, upstream]) it.end()
  return computeRatio('gateway') >= 1 ? 0 : 1
}

const TITLES: Readonly<Record<string, string>> = {
  gateway: 'gateway, full enforcement',
  changing: 'the same, every response new',
  audited: 'the same, with audit on',
  'http-proxy': 'http-proxy, no check',
  nginx: 'nginx, no check',
}

async function round({
  port,
  tokens,
  usage,
}: Contender): Promise<{ cpu: number; rate: number; p99: number }> {
  const pool = new Pool(`http://127.0.0.1:${port}`, { connections: CONNECTIONS })
  const times: number[] = []
  const before = await usage()
  const begun = performance.now()
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async (_, first) => {
      for (let done = 0; done < REQUESTS / CONNECTIONS; done++) {
        const at = (first + done) % patients.length
        const asked = performance.now()
        const reply = await pool.request({
          method: 'GET',
          path: `/fhir/Patient/${patients[at]?.id}`,
          headers: { authorization: `Bearer ${tokens[at] ?? NO_TOKEN}` },
        })
        await reply.body.dump()
        if (reply.statusCode !== 200) throw new Error(`Cannot bench: answered ${reply.statusCode}`)
        times.push(performance.now() - asked)
      }
    }),
  )
  const seconds = (performance.now() - begun) / 1000
  const cpu = ((await usage()).cpu - before.cpu) / REQUESTS
  await pool.close()
  return {
    cpu,
    rate: REQUESTS / seconds,
    p99: times.toSorted((a, b) => a - b)[Math.floor(times.length * 0.99)] ?? 0,
  }
}

// As long as an access token.
const NO_TOKEN = 'x'.repeat(700)

async function start(name: Role, url = ''): Promise<Contender> {
  const child: ChildProcess = fork(new URL(import.meta.url).pathname, [name, url])
  const [{ port, tokens = [] }] = (await once(child, 'message')) as [Served]
  return {
    name,
    port,
    tokens,
    async usage() {
      child.send('usage')
      const [answer] = (await once(child, 'message')) as [{ user: number; system: number; memory: number }]
      return { cpu: answer.user + answer.system, memory: answer.memory }
    },
    end: () => child.disconnect(),
  }
}

/** nginx without any check, where it is installed. */
async function startNginx(url: string): Promise<readonly Contender[]> {
  if (spawnSync('nginx', ['-v']).error) {
    print('nginx        is not installed here')
    return []
  }
  const folder = mkdtempSync(join(tmpdir(), 'nginx-bench-'))
  const port = await findFreePort()
  const file = join(folder, 'nginx.conf')
  writeFileSync(
    file,
    `daemon off; master_process off; pid ${folder}/pid; error_log ${folder}/error; events {}
http { access_log off; upstream u { server ${new URL(url).host}; keepalive 64; }
server { listen 127.0.0.1:${port}; location / { proxy_pass http://u; proxy_http_version 1.1; proxy_set_header Connection ""; } } }`,
  )
  const child = spawn('nginx', ['-c', file, '-p', folder], { stdio: 'ignore' })
  await new Promise(resolve => setTimeout(resolve, 300))
  return [
    {
      name: 'nginx',
      port,
      tokens: [],
      usage: async () => readProcessUsage(child.pid ?? 0),
      end: () => {
        child.kill()
        rmSync(folder, { recursive: true, force: true })
      },
    },
  ]
}

/** The usage of a process that cannot report its own, in ticks of 10 ms. */
function readProcessUsage(pid: number): { readonly cpu: number; readonly memory: number } {
  const parts = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return { cpu: (Number(parts[11]) + Number(parts[12])) * 10_000, memory: Number(parts[21]) * 4096 }
}

function findFreePort(): Promise<number> {
  return new Promise(resolve => {
    const probe = createProbe()
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as AddressInfo
      probe.close(() => resolve(port))
    })
  })
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

const [role, upstreamUrl = ''] = process.argv.slice(2)
if (role === undefined) process.exitCode = await measure()
else await serve(role as Role, upstreamUrl)
