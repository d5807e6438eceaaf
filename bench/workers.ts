/**
 * `node bench/workers.ts [kind …]`: requests a second of 2, 4 and 8 workers, as many as the machine has cores for, beside one
 * worker on one core, for guarded reads, the gateway and token requests, with the audit trail on SQLite and on PostgreSQL.
 * Linux only.
 *
 * The load generator runs on the same cores, and so do other programs. Therefore the time that the workers were ready to run
 * and had no core (`/proc/<pid>/task/<tid>/schedstat`) does not count: requests a second are those of workers with cores of
 * their own. Waiting for locks and for the disk counts (`TMPDIR=/dev/shm` measures without a disk), and no worker is faster
 * than the CPU time on its core allows, which includes that of moving and sealing the audit records. If more workers take more
 * CPU time for a request than one, they pay for each other. If their main threads do not run all the time, they wait for
 * locks, the disk or PostgreSQL, which shares the cores with them. The generator has a higher priority, so that workers do not
 * wait for it. Exits 1 if the ratio of requests a second of two workers on SQLite is below the goal.
 */
import { spawnSync } from 'node:child_process'
import { type AddressInfo, createServer } from 'node:net'
import { availableParallelism, tmpdir } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import { databaseUrl, type Postgres, query, startPostgres } from '../test/support/postgres.ts'
import { isQuick } from './shared/compare.ts'
import { listTree, readSchedule, readTreeUsage } from './shared/contender.ts'
import { sendAll } from './shared/load.ts'
import { type Measured, reportServers, takeMedian } from './shared/report.ts'
import {
  makeBackendRequests,
  makeCodeRequests,
  makeReads,
  makeRefreshRequests,
  type Stack,
  startStack,
  stopStack,
} from './shared/stack.ts'

/** Requests a second of two workers, relative to those of one, on SQLite. */
const GOALS = { read: 1.8, gateway: 1.7, code: 1.5, refresh: 1.9, client_credentials: 2.1 }
/** As many as the machine has cores for. */
const WORKERS = [1, 2, 4, 8].filter(it => it <= availableParallelism())
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

const PATIENT = JSON.stringify({ resourceType: 'Patient', id: 'p', name: [{ family: 'Bench' }] })
const STATEMENT = JSON.stringify({
  resourceType: 'CapabilityStatement',
  status: 'active',
  kind: 'instance',
  fhirVersion: '4.0.1',
  date: '2026-01-01',
  format: ['json'],
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

/** PostgreSQL runs on all cores, beside the workers. */
interface Place {
  readonly name: 'SQLite' | 'PostgreSQL'
  readonly pid?: number
  openDatabase(): Promise<string | undefined>
}

const ON_SQLITE: Place = { name: 'SQLite', openDatabase: async () => undefined }

function createPostgresPlace({ url, pid }: Postgres): Place {
  let databases = 0
  return {
    name: 'PostgreSQL',
    pid,
    async openDatabase() {
      const name = `bench_${databases++}`
      await query(url, `create database ${name}`)
      return databaseUrl(url, name)
    },
  }
}

interface PinnedStack extends Stack {
  readonly on: Place
}

/** Each worker has one core. */
async function startPinned(workers: number, on: Place, upstreamUrl?: string): Promise<PinnedStack> {
  const stack = await startStack(workers, { upstreamUrl, databaseUrl: await on.openDatabase() })
  const cores = workers === 1 ? '0' : `0-${workers - 1}`
  for (const pid of listTree(stack.started.child.pid ?? 0))
    spawnSync('taskset', ['-a', '-p', '-c', cores, String(pid)])
  return { ...stack, on }
}

interface Usage {
  /** Microseconds of CPU time of all threads, and of PostgreSQL. */
  readonly cpu: number
  /** Microseconds in which a main thread of a worker ran, on average. */
  readonly ran: number
  /** Microseconds in which it was ready to run and had no core. */
  readonly waited: number
}

function readUsage({ started, on }: PinnedStack): Usage {
  const own = started.child.pid ?? 0
  const pids = listTree(own)
  const workers = pids.length === 1 ? pids : pids.slice(1)
  const times = workers.map(pid => readSchedule(`/proc/${pid}/task/${pid}`))
  const takeMean = (of: 0 | 1) => times.reduce((sum, it) => sum + it[of], 0) / times.length / 1000
  const database = on.pid === undefined ? 0 : readTreeUsage(on.pid).cpu
  return { cpu: readTreeUsage(own).cpu + database, ran: takeMean(0), waited: takeMean(1) }
}

interface Round {
  readonly cpu: number
  readonly rate: number
  /** The part of the time in which the main threads ran. Otherwise they waited for locks, a disk or the database. */
  readonly busy: number
}

async function measureRound(stack: PinnedStack, kind: Kind): Promise<Round> {
  const count = KINDS[kind].requests * stack.workers
  const { url, texts } = await KINDS[kind].make(stack, count)
  const before = readUsage(stack)
  const began = performance.now()
  await sendAll(Number(url.port), texts, CONNECTIONS * stack.workers)
  const after = readUsage(stack)
  const wall = (performance.now() - began) * 1000
  // Audit records are moved to the trail and sealed within a second.
  if (!isQuick) await pause(1500)
  const cpu = readUsage(stack).cpu - before.cpu
  const withCores = wall - (after.waited - before.waited)
  // A main thread also waits for the other threads of its process: they share its core.
  const microseconds = stack.on.pid === undefined ? Math.max(withCores, cpu / stack.workers) : withCores
  return {
    cpu: cpu / count,
    rate: (count / microseconds) * 1e6,
    busy: (after.ran - before.ran) / withCores,
  }
}

interface Scaled extends Measured {
  readonly busy: number
}

/** The numbers of workers take turns, so that all meet the same load of the machine. */
async function compare(kind: Kind, stacks: readonly PinnedStack[]): Promise<readonly Scaled[]> {
  const pairs = stacks.map(stack => ({ stack, measured: [] as Round[] }))
  const [warmRounds, rounds] = isQuick ? [1, 1] : [WARM_ROUNDS, ROUNDS]
  for (let round = 0; round < warmRounds + rounds; round++)
    for (const { stack, measured } of pairs) {
      const result = await measureRound(stack, kind)
      if (round >= warmRounds) measured.push(result)
    }
  return pairs.map(({ stack: { workers, on }, measured }) => ({
    request: `${kind}, ${on.name}`,
    server: workers === 1 ? 'one worker, one core' : `${workers} workers`,
    cpu: takeMedian(measured.map(it => it.cpu)),
    rate: takeMedian(measured.map(it => it.rate)),
    busy: takeMedian(measured.map(it => it.busy)),
  }))
}

async function measure(kind: Kind, on: Place, upstreamUrl: string): Promise<readonly Scaled[]> {
  const stacks: PinnedStack[] = []
  for (const workers of WORKERS)
    stacks.push(await startPinned(workers, on, kind === 'gateway' ? upstreamUrl : undefined))
  try {
    const measured = await compare(kind, stacks)
    const [one] = measured
    const setGoal = (it: Scaled) => ({
      ...it,
      goal: { value: it.rate / (one?.rate ?? 0), least: GOALS[kind] },
    })
    return measured.map((it, at) => (at === 1 && on === ON_SQLITE ? setGoal(it) : it))
  } finally {
    for (const stack of stacks) await stopStack(stack)
  }
}

if (process.platform !== 'linux' || availableParallelism() < 2) {
  process.stdout.write('Cannot measure: two cores and Linux are needed\n')
} else {
  const names = Object.keys(KINDS) as readonly Kind[]
  const named = names.filter(name => process.argv.includes(name))
  const upstreamUrl = await startUpstream()
  const postgres = await startPostgres(tmpdir(), [])
  const measured: Scaled[] = []
  for (const on of [ON_SQLITE, createPostgresPlace(postgres)])
    for (const kind of named.length === 0 ? names : named)
      measured.push(...(await measure(kind, on, upstreamUrl)))
  await postgres.stop()
  await reportServers('workers', measured, {
    heading: 'main threads run',
    format: ({ busy }) => `${Math.round(busy * 100)} %`,
  })
}
