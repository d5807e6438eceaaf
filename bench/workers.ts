/**
 * `node bench/workers.ts [kind …]`: requests a second of two workers on two cores beside one worker on one core, for guarded
 * reads, the gateway and token requests, with the audit trail on. Linux only.
 *
 * The load generator runs on the same cores, and so do other programs. Therefore the time that the workers were ready to run
 * and had no core (`/proc/<pid>/task/<tid>/schedstat`) does not count: requests a second are those of workers with cores of
 * their own. Waiting for locks and for the disk counts (`TMPDIR=/dev/shm` measures without a disk), and no worker is faster
 * than the CPU time on its core allows, which includes that of moving and sealing the audit records. If two workers take more
 * CPU time for a request than one, they pay for each other. The generator has a higher priority, so that workers do not wait
 * for it. Exits 1 if the ratio of requests a second is below the goal.
 */
import { spawnSync } from 'node:child_process'
import { type AddressInfo, createServer } from 'node:net'
import { availableParallelism } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import type { Started } from '../test/support/started.ts'
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

/** One worker has one core. */
async function startPinned(workers: number, upstreamUrl?: string): Promise<Stack> {
  const stack = await startStack(workers, upstreamUrl)
  const cores = workers === 1 ? '0' : `0-${workers - 1}`
  for (const pid of listTree(stack.started.child.pid ?? 0))
    spawnSync('taskset', ['-a', '-p', '-c', cores, String(pid)])
  return stack
}

interface Usage {
  /** Microseconds of CPU time of all threads. */
  readonly cpu: number
  /** Microseconds in which a main thread of a worker was ready to run and had no core, on average. */
  readonly waited: number
}

function readUsage({ child }: Started): Usage {
  const pids = listTree(child.pid ?? 0)
  const workers = pids.length === 1 ? pids : pids.slice(1)
  const waits = workers.map(pid => readSchedule(`/proc/${pid}/task/${pid}`)[1])
  return {
    cpu: readTreeUsage(child.pid ?? 0).cpu,
    waited: waits.reduce((sum, it) => sum + it, 0) / workers.length / 1000,
  }
}

type Round = Pick<Measured, 'cpu' | 'rate'>

async function measureRound(stack: Stack, kind: Kind): Promise<Round> {
  const count = KINDS[kind].requests * stack.workers
  const { url, texts } = await KINDS[kind].make(stack, count)
  const before = readUsage(stack.started)
  const began = performance.now()
  await sendAll(Number(url.port), texts, CONNECTIONS * stack.workers)
  const after = readUsage(stack.started)
  const wall = (performance.now() - began) * 1000
  // Audit records are moved to the trail and sealed within a second.
  if (!isQuick) await pause(1500)
  const cpu = readUsage(stack.started).cpu - before.cpu
  // A main thread also waits for the other threads of its process: they share its core.
  const microseconds = Math.max(wall - (after.waited - before.waited), cpu / stack.workers)
  return { cpu: cpu / count, rate: (count / microseconds) * 1e6 }
}

/** One worker and two take turns, so that both meet the same load of the machine. */
async function compare(kind: Kind, stacks: readonly Stack[]): Promise<readonly Measured[]> {
  const pairs = stacks.map(stack => ({ stack, measured: [] as Round[] }))
  const [warmRounds, rounds] = isQuick ? [1, 1] : [WARM_ROUNDS, ROUNDS]
  for (let round = 0; round < warmRounds + rounds; round++)
    for (const { stack, measured } of pairs) {
      const result = await measureRound(stack, kind)
      if (round >= warmRounds) measured.push(result)
    }
  return pairs.map(({ stack: { workers }, measured }) => ({
    request: kind,
    server: workers === 1 ? 'one worker, one core' : `${workers} workers`,
    cpu: takeMedian(measured.map(it => it.cpu)),
    rate: takeMedian(measured.map(it => it.rate)),
  }))
}

async function measure(kind: Kind, upstreamUrl: string): Promise<readonly Measured[]> {
  const upstream = kind === 'gateway' ? upstreamUrl : undefined
  const stacks = [await startPinned(1, upstream), await startPinned(2, upstream)]
  try {
    const [one, two] = await compare(kind, stacks)
    return one && two ? [one, { ...two, goal: { value: two.rate / one.rate, least: GOAL } }] : []
  } finally {
    for (const stack of stacks) await stopStack(stack)
  }
}

if (process.platform !== 'linux' || availableParallelism() < 2) {
  process.stdout.write('Cannot measure: two cores and Linux are needed\n')
} else {
  const names = Object.keys(KINDS) as readonly Kind[]
  const wanted = names.filter(name => process.argv.length === 2 || process.argv.includes(name))
  const upstreamUrl = await startUpstream()
  const measured = []
  for (const kind of wanted) measured.push(...(await measure(kind, upstreamUrl)))
  await reportServers('workers', measured)
}
