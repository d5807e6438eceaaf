/**
 * `node bench/gateway.ts`: a Patient read with full enforcement through the gateway, beside `@fastify/http-proxy` with
 * no check at all, and nginx where it is installed. Each is a process of its own in front of the same upstream, asked
 * in turns in one run; the ratio is of processor time a request, so that the company on the machine does not count.
 * Exits 1 when the gateway does less than the proxy.
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
import { samplePatients } from '../src/fhir-server/sample/index.ts'
import { gateway } from '../src/gateway/index.ts'
import { createInterceptor } from '../src/interceptor/index.ts'
import { authUrl, StandingAuthServer } from '../src/interceptor/testing/auth-server.ts'

const CONNECTIONS = 16
const WARM_ROUNDS = 4
const ROUNDS = 8
const REQUESTS = 4_000
const patient = [...samplePatients({ count: 1, now: Date.UTC(2026, 0, 1) })].find(
  it => it.resourceType === 'Patient',
)
const id = String(patient?.id)
// The gateway's own address is not the one that it listens on here: only the audience of the token counts.
const baseUrl = 'http://gateway.test/fhir'

type Role = 'upstream' | 'gateway' | 'http-proxy'

async function serve(as: Role, upstream: string): Promise<void> {
  const { port, token } = await SERVERS[as](upstream)
  process.on('message', () => process.send?.({ ...process.cpuUsage(), memory: process.memoryUsage().rss }))
  process.on('disconnect', () => process.exit(0))
  process.send?.({ port, token })
}

interface Served {
  readonly port: number
  readonly token?: string
}

const SERVERS: Readonly<Record<Role, (upstream: string) => Promise<Served>>> = {
  async upstream() {
    const body = JSON.stringify(patient)
    const server = createServer((_request, response) =>
      response
        .writeHead(200, {
          'content-type': 'application/fhir+json',
          etag: 'W/"1"',
          'content-length': Buffer.byteLength(body),
        })
        .end(body),
    )
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    return { port: (server.address() as AddressInfo).port }
  },

  async gateway(upstream) {
    const auth = new StandingAuthServer()
    const guard = createInterceptor({ authUrl, fhirBaseUrl: baseUrl, fetch: auth.fetch, clock: auth.clock })
    const app = await gateway({ baseUrl, upstreamUrl: upstream, guard, smartConfiguration: {} })
    await app.listen({ port: 0, host: '127.0.0.1' })
    const token = auth.token({ aud: baseUrl, scope: 'patient/Patient.rs patient/Condition.rs', patient: id })
    return { port: (app.server.address() as AddressInfo).port, token }
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

interface Contender {
  readonly name: string
  readonly port: number
  readonly token: string
  /** Microseconds of processor time so far, and memory in bytes. */
  usage(): Promise<{ readonly cpu: number; readonly memory: number }>
  end(): void
}

async function measure(): Promise<number> {
  const upstream = await started('upstream')
  const url = `http://127.0.0.1:${upstream.port}/fhir`
  const contenders = [
    await started('gateway', url),
    await started('http-proxy', url),
    ...(await startedNginx(url)),
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
      `${name.padEnd(12)} ${median(cpu).toFixed(0).padStart(5)} us of processor a request, ${median(rate).toFixed(0)} requests/s,` +
        ` p99 ${median(late).toFixed(1)} ms, memory ${((after[at]?.memory ?? 0) / 2 ** 20).toFixed(0)} MB (${grown >= 0 ? '+' : ''}${grown.toFixed(0)} MB over the run)`,
    )
  }
  const ratio = median(results.get('http-proxy')?.cpu ?? []) / median(results.get('gateway')?.cpu ?? [])
  print(
    `gateway with full enforcement over http-proxy with none: ${ratio.toFixed(2)} times the throughput of one core`,
  )
  for (const it of [...contenders, upstream]) it.end()
  return ratio >= 1 ? 0 : 1
}

async function round({ port, token, usage }: Contender): Promise<{ cpu: number; rate: number; p99: number }> {
  const pool = new Pool(`http://127.0.0.1:${port}`, { connections: CONNECTIONS })
  const times: number[] = []
  const before = await usage()
  const begun = performance.now()
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      for (let done = 0; done < REQUESTS / CONNECTIONS; done++) {
        const asked = performance.now()
        const reply = await pool.request({
          method: 'GET',
          path: `/fhir/Patient/${id}`,
          headers: { authorization: `Bearer ${token}` },
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

async function started(name: Role, url = ''): Promise<Contender> {
  const child: ChildProcess = fork(new URL(import.meta.url).pathname, [name, url])
  const [{ port, token = 'none' }] = (await once(child, 'message')) as [Served]
  return {
    name,
    port,
    token,
    async usage() {
      child.send('usage')
      const [answer] = (await once(child, 'message')) as [{ user: number; system: number; memory: number }]
      return { cpu: answer.user + answer.system, memory: answer.memory }
    },
    end: () => child.disconnect(),
  }
}

/** nginx without any check, where it is installed. */
async function startedNginx(url: string): Promise<readonly Contender[]> {
  if (spawnSync('nginx', ['-v']).error) {
    print('nginx        is not installed here')
    return []
  }
  const folder = mkdtempSync(join(tmpdir(), 'nginx-bench-'))
  const port = await freePort()
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
      token: 'none',
      usage: async () => processUsage(child.pid ?? 0),
      end: () => {
        child.kill()
        rmSync(folder, { recursive: true, force: true })
      },
    },
  ]
}

/** Of a process that is not ours to ask, in ticks of 10 ms. */
function processUsage(pid: number): { readonly cpu: number; readonly memory: number } {
  const parts = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return { cpu: (Number(parts[11]) + Number(parts[12])) * 10_000, memory: Number(parts[21]) * 4096 }
}

function freePort(): Promise<number> {
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
