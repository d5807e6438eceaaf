/**
 * `node bench/workers.ts [kind …]`: requests a second of two workers on two cores beside one worker on one core, for guarded
 * reads, the gateway and token requests, with the audit trail on. Linux only.
 *
 * The load generator runs on the same cores, and so do other programs. Therefore the time that the workers were ready to run
 * and had no core (`/proc/<pid>/task/<tid>/schedstat`) does not count: `ratio` is that of workers with cores of their own.
 * Waiting for locks and for the disk counts (`TMPDIR=/dev/shm` measures without a disk), and no worker is faster than the
 * processor time on its core allows. `cpu` is the processor time of a request in all threads of all processes, in
 * microseconds: if two workers take more of it than one, they pay for each other. The generator writes prepared requests to
 * sockets, one outstanding request for each connection, with a higher priority, so that workers do not wait for it; its
 * own processor time is `load`. Exits 1 if a ratio is below the goal.
 */
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { availableParallelism, setPriority } from 'node:os'
import { SigningClient } from '../src/auth/testing/signing-client.ts'
import { VERIFIER } from '../src/auth/testing/test-auth-server.ts'
import { openStore, type Store } from '../src/store/index.ts'
import { newPlace, type Place, type Started, startProcess } from '../test/support/started.ts'
import { createCodes } from './auth/own.ts'

const GOAL = 1.7
/** Of each worker, as is the number of requests: two workers serve twice as many clients. */
const CONNECTIONS = 64
const ROUNDS = 5
const WARM_ROUNDS = 4
const KINDS = {
  read: { requests: 4_000, make: makeReads },
  gateway: { requests: 4_000, make: makeReads },
  code: { requests: 600, make: makeCodeRequests },
  refresh: { requests: 600, make: makeRefreshRequests },
  client_credentials: { requests: 600, make: makeBackendRequests },
} as const
type Kind = keyof typeof KINDS

interface Stack {
  readonly workers: number
  readonly place: Place
  readonly started: Started
  readonly store: Store
  readonly patient: string
}

const PATIENT = JSON.stringify({ resourceType: 'Patient', id: 'p', name: [{ family: 'Bench' }] })
const STATEMENT = JSON.stringify({
  ...{ resourceType: 'CapabilityStatement', status: 'active', kind: 'instance', fhirVersion: '4.0.1' },
  ...{ date: '2026-01-01', format: ['json'] },
  rest: [{ mode: 'server', resource: [{ type: 'Patient', interaction: [{ code: 'read' }] }] }],
})
const EMPTY = JSON.stringify({ resourceType: 'Bundle', type: 'searchset', total: 0 })

/** An upstream that costs almost nothing: it writes prepared responses. */
async function startUpstream(): Promise<string> {
  const answer = (body: string) =>
    `HTTP/1.1 200 OK\r\ncontent-type: application/fhir+json\r\netag: W/"1"\r\ncontent-length: ${body.length}\r\n\r\n${body}`
  const server = createServer(socket => {
    socket.on('error', () => {})
    socket.setEncoding('latin1').on('data', (text: string) => {
      for (const [, path] of text.matchAll(/^GET (\S+) HTTP/gm))
        socket.write(
          answer(path === '/fhir/Patient/p' ? PATIENT : path === '/fhir/metadata' ? STATEMENT : EMPTY),
        )
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  server.unref()
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/fhir`
}

async function startStack(workers: number, upstreamUrl?: string): Promise<Stack> {
  const place = await newPlace({
    ...{ SMART_WORKERS: String(workers), SMART_APP_AUTH_METHOD: 'none', SMART_LOG_LEVEL: 'error' },
    ...(upstreamUrl !== undefined && { SMART_FHIR_UPSTREAM_URL: upstreamUrl }),
  })
  const started = startProcess(['start'], place)
  await started.printed(/is running/)
  const store = await openStore(`sqlite:${place.env.SMART_DATA_DIR}/sallyport.db`)
  const cores = workers === 1 ? '0' : `0-${workers - 1}`
  for (const pid of listPids(started)) spawnSync('taskset', ['-a', '-p', '-c', cores, String(pid)])
  const patient = upstreamUrl === undefined ? 'patient-1' : 'p'
  return { workers, place, started, store, patient }
}

async function stopStack({ started, store, place }: Stack): Promise<void> {
  await store.close()
  started.child.kill('SIGTERM')
  await started.ended()
  place.remove()
}

/** The process of the command, and its workers. */
function listPids({ child }: Started): readonly number[] {
  const children = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8')
  return [child.pid ?? 0, ...children.split(' ').filter(Boolean).map(Number)]
}

interface Usage {
  /** Nanoseconds of processor time of all threads. */
  readonly cpu: number
  /** Nanoseconds in which a main thread of a worker was ready to run and had no core, on average. */
  readonly waited: number
}

function readUsage(started: Started): Usage {
  const pids = listPids(started)
  const workers = pids.length === 1 ? pids : pids.slice(1)
  const cpu = pids.flatMap(listThreads).reduce((sum, [run]) => sum + run, 0)
  const waits = workers.map(pid => readSchedule(`/proc/${pid}/task/${pid}/schedstat`)[1])
  return { cpu, waited: waits.reduce((sum, it) => sum + it, 0) / workers.length }
}

function listThreads(pid: number) {
  return readdirSync(`/proc/${pid}/task`).map(tid => readSchedule(`/proc/${pid}/task/${tid}/schedstat`))
}

function readSchedule(path: string): readonly [run: number, waited: number] {
  const [run = 0, waited = 0] = readFileSync(path, 'utf8').split(' ').map(Number)
  return [run, waited]
}

interface Round {
  readonly seconds: number
  readonly cpu: number
  readonly load: number
}

async function measureRound(stack: Stack, kind: Kind): Promise<Round> {
  const requests = KINDS[kind].requests * stack.workers
  const { url, texts } = await KINDS[kind].make(stack, requests)
  const before = readUsage(stack.started)
  const loadBefore = process.cpuUsage()
  const began = performance.now()
  prioritise(-10)
  await sendAll(Number(url.port), texts, CONNECTIONS * stack.workers)
  prioritise(0)
  const wall = (performance.now() - began) / 1e3
  const after = readUsage(stack.started)
  const load = process.cpuUsage(loadBefore)
  const cpu = (after.cpu - before.cpu) / 1e9
  return {
    // A main thread also waits for the other threads of its process: they share its core.
    seconds: Math.max(wall - (after.waited - before.waited) / 1e9, cpu / stack.workers),
    cpu: (cpu * 1e6) / requests,
    load: (load.user + load.system) / requests,
  }
}

/** Needs a privilege. Without it the workers also wait for the generator on a busy machine. */
function prioritise(priority: number): void {
  try {
    setPriority(priority)
  } catch {}
}

function sendAll(port: number, texts: readonly string[], connections: number): Promise<unknown> {
  const rest = texts.values()
  return Promise.all(
    Array.from({ length: Math.min(connections, texts.length) }, () => sendInTurn(port, rest)),
  )
}

/** Sends the next request when the response to the last one is complete. */
function sendInTurn(port: number, texts: Iterator<string>): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const socket = connect(port, '127.0.0.1').setNoDelay().setEncoding('latin1')
  let received = ''
  const sendNext = () => {
    const { value, done } = texts.next()
    received = ''
    if (done) socket.destroy()
    else socket.write(value)
  }
  socket.on('data', (chunk: string) => {
    received += chunk
    const end = received.indexOf('\r\n\r\n')
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(received)?.[1])
    if (end < 0 || received.length < end + 4 + length) return
    if (received.startsWith('HTTP/1.1 200')) sendNext()
    else reject(new Error(`Cannot bench: ${received}`))
  })
  socket.on('error', reject)
  socket.on('close', () => resolve())
  sendNext()
  return promise
}

interface Requests {
  readonly url: URL
  readonly texts: readonly string[]
}

async function makeReads(stack: Stack, count: number): Promise<Requests> {
  const url = new URL(stack.place.fhirUrl)
  const text = async (code: string) => {
    const { access_token: token } = await exchange(stack, codeForm(stack, code))
    return `GET ${url.pathname}/Patient/${stack.patient} HTTP/1.1\r\nhost: ${url.host}\r\nauthorization: Bearer ${token}\r\n\r\n`
  }
  const known = await Promise.all((await makeCodes(stack, CONNECTIONS)).map(text))
  return { url, texts: Array.from({ length: count }, (_, at) => known[at % known.length] ?? '') }
}

async function makeCodeRequests(stack: Stack, count: number): Promise<Requests> {
  return makePosts(
    stack,
    (await makeCodes(stack, count)).map(code => codeForm(stack, code)),
  )
}

async function makeRefreshRequests(stack: Stack, count: number): Promise<Requests> {
  const forms = []
  for (const code of await makeCodes(stack, count)) {
    const { refresh_token: token = '' } = await exchange(stack, codeForm(stack, code))
    forms.push({ grant_type: 'refresh_token', refresh_token: token, client_id: 'sallyport-app' })
  }
  return makePosts(stack, forms)
}

const backends = new Map<Stack, Promise<SigningClient>>()

async function makeBackendRequests(stack: Stack, count: number): Promise<Requests> {
  const made = backends.get(stack) ?? registerBackend(stack)
  backends.set(stack, made)
  const client = await made
  const aud = `${stack.place.authUrl}/oauth2/token`
  return makePosts(
    stack,
    Array.from({ length: count }, () => ({
      ...{ grant_type: 'client_credentials', scope: 'system/Patient.rs' },
      ...client.makeProof({ aud, iss: client.id, sub: client.id }),
    })),
  )
}

async function registerBackend({ place }: Stack): Promise<SigningClient> {
  const time = { now: Date.now() }
  const { jwks } = new SigningClient('', time, 'RS384')
  const response = await fetch(`${place.authUrl}/oauth2/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      ...{ client_name: 'Bench', grant_types: ['client_credentials'], scope: 'system/*.rs' },
      ...{ token_endpoint_auth_method: 'private_key_jwt', jwks: JSON.parse(jwks) },
    }),
  })
  const { client_id: id } = (await response.json()) as { client_id: string }
  return new SigningClient(id, time, 'RS384')
}

function makeCodes({ store, place, patient }: Stack, count: number): Promise<readonly string[]> {
  const redirectUri = `${place.appUrl}/callback`
  return createCodes({ store, time: { now: Date.now() } }, count, { patient, redirectUri })
}

function codeForm({ place }: Stack, code: string) {
  return {
    ...{ grant_type: 'authorization_code', code, client_id: 'sallyport-app' },
    ...{ redirect_uri: `${place.appUrl}/callback`, code_verifier: VERIFIER },
  }
}

type Form = Readonly<Record<string, string>>

async function exchange({ place }: Stack, form: Form): Promise<Record<string, string>> {
  const body = new URLSearchParams(form)
  const response = await fetch(`${place.authUrl}/oauth2/token`, { method: 'POST', body })
  if (response.status !== 200) throw new Error(`Cannot bench: ${await response.text()}`)
  return (await response.json()) as Record<string, string>
}

function makePosts({ place }: Stack, forms: readonly Form[]): Requests {
  const url = new URL(`${place.authUrl}/oauth2/token`)
  const texts = forms.map(form => {
    const body = new URLSearchParams(form).toString()
    return `POST ${url.pathname} HTTP/1.1\r\nhost: ${url.host}\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: ${body.length}\r\n\r\n${body}`
  })
  return { url, texts }
}

function takeMedian(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0
}

/** One worker and two take turns, so that both meet the same load of the machine. */
async function compare(kind: Kind, stacks: readonly Stack[]): Promise<number> {
  const rounds = new Map<Stack, Round[]>(stacks.map(stack => [stack, []]))
  for (let round = 0; round < WARM_ROUNDS + ROUNDS; round++)
    for (const [stack, measured] of rounds) {
      const result = await measureRound(stack, kind)
      if (round >= WARM_ROUNDS) measured.push(result)
    }
  const { requests } = KINDS[kind]
  const [one, two] = stacks.map(stack => {
    const measured = rounds.get(stack) ?? []
    return {
      rate: (requests * stack.workers) / takeMedian(measured.map(it => it.seconds)),
      cpu: takeMedian(measured.map(it => it.cpu)),
      load: takeMedian(measured.map(it => it.load)),
    }
  })
  if (!one || !two) return 0
  const ratio = two.rate / one.rate
  const cells = [one.rate, two.rate, one.cpu, two.cpu, two.load].map(it => it.toFixed(0).padStart(8))
  print(`${kind.padEnd(20)}${cells.join('')}${ratio.toFixed(2).padStart(8)}`)
  return ratio
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

async function measure(kinds: readonly Kind[]): Promise<boolean> {
  print(
    `${''.padEnd(20)}${['1: /s', '2: /s', '1: cpu', '2: cpu', 'load', 'ratio'].map(it => it.padStart(8)).join('')}`,
  )
  const upstreamUrl = await startUpstream()
  let isReached = true
  for (const kind of kinds) {
    const upstream = kind === 'gateway' ? upstreamUrl : undefined
    const stacks = [await startStack(1, upstream), await startStack(2, upstream)]
    try {
      isReached = (await compare(kind, stacks)) >= GOAL && isReached
    } finally {
      for (const stack of stacks) await stopStack(stack)
    }
  }
  return isReached
}

if (process.platform !== 'linux' || availableParallelism() < 2) {
  print('Cannot measure: two cores and Linux are needed')
} else {
  const names = Object.keys(KINDS) as readonly Kind[]
  const wanted = names.filter(name => process.argv.length === 2 || process.argv.includes(name))
  process.exitCode = (await measure(wanted)) ? 0 : 1
  process.exit()
}
