import cluster from 'node:cluster'
import { setTimeout as pause } from 'node:timers/promises'
import { createSerialize } from '../../cache/index.ts'
import type { Settings } from '../../config/index.ts'
import { findOwnProgram } from '../../core/index.ts'
import {
  type CheckResult,
  endMetrics,
  type Logger,
  type Metrics,
  mergeMetrics,
  readProcessMetrics,
  type ServerReports,
} from '../../web/http/index.ts'
import type { LiveSettings } from '../start/live.ts'
import { Closing, type Parts, type PrintLine, type ServerName } from '../start/parts.ts'
import { checkPorts } from '../start/ports.ts'
import { prepare } from '../start/prepare.ts'
import type { Running } from '../start/start-servers.ts'
import type { Report, ReportRequest } from './channel.ts'
import { forkWorker, REPORT_MS, type WorkerProcess } from './worker-process.ts'

/** Does the work of a start in this process, and runs the servers in several others, behind the same ports (START-8). */
export async function startWorkers(parts: Parts, printLine: PrintLine): Promise<Running> {
  await checkPorts(parts)
  const closing = new Closing()
  try {
    const { storage, auth, fhir } = prepare(parts, printLine, closing)
    const [, prepared] = await Promise.all([storage, auth, fhir])
    const slots = openSlots(parts)
    closing.add(() => Promise.all(slots.map(slot => slot.stop())))
    const [testLogin] = await Promise.all([prepared?.testLogin, ...slots.map(slot => slot.start())])
    const drain = () => {
      for (const slot of slots) slot.drain()
    }
    const checkReadiness = async () =>
      (await Promise.all(parts.names.map(server => gatherReadiness(slots, server)))).flat(2)
    const report = () => Promise.all(parts.names.map(server => reportServer(slots, server)))
    return { testLogin, drain, checkReadiness, report, close: () => closing.close() }
  } catch (error) {
    await closing.close().catch(() => {})
    throw error
  }
}

function openSlots({
  names,
  settings,
  trustedIssuers,
  live,
  controls,
  logger,
  logsToStderr,
}: Parts): readonly WorkerSlot[] {
  // Round robin is the default: a shared socket gives most connections to the busiest process.
  cluster.schedulingPolicy = cluster.SCHED_RR
  cluster.setupPrimary({
    exec: findOwnProgram('src/cli/main'),
    args: [],
    serialization: 'advanced',
    ...(logsToStderr && { stdio: ['inherit', 2, 2, 'ipc'] }),
  })
  const { setLogLevel, reload } = controls
  const shared = { serialize: createSerialize(), setLogLevel, reload }
  const gather = (request: ReportRequest) => gatherReports(slots, request)
  const input = { names, settings: shareLimits(settings), trustedIssuers }
  const slots: readonly WorkerSlot[] = Array.from({ length: settings.workers }, (_, index) => {
    const number = index + 1
    return openSlot(
      number,
      () =>
        forkWorker({
          input: { ...input, live: live.current, number },
          gather,
          ...shared,
          onSilent: () => logger.error({ worker: number }, 'Worker does not respond; it is replaced'),
        }),
      logger,
    )
  })
  live.onChange(current => Promise.all(slots.map(slot => slot.apply(current))))
  return slots
}

/** A limit that protects another server holds for all workers together. */
function shareLimits(settings: Settings): Settings {
  const { upstream } = settings.fhir
  const connections = Math.ceil(upstream.connections / settings.workers)
  return { ...settings, fhir: { ...settings.fhir, upstream: { ...upstream, connections } } }
}

function gatherReadiness(slots: readonly WorkerSlot[], server: ServerName) {
  // The workers return reports of the requested subject.
  return gatherReports(slots, { server, subject: 'readiness' }) as Promise<readonly CheckResult[][]>
}

async function reportServer(slots: readonly WorkerSlot[], server: ServerName): Promise<ServerReports> {
  const metrics = (await gatherReports(slots, { server, subject: 'metrics' })) as readonly Metrics[]
  return { server, metrics, readiness: (await gatherReadiness(slots, server)).flat() }
}

async function gatherReports(
  slots: readonly WorkerSlot[],
  request: ReportRequest,
): Promise<readonly Report[]> {
  const reports = await Promise.all(slots.map(slot => slot.report(request)))
  const own = { server: [], process: await readProcessMetrics() }
  return [...reports.filter(it => it !== undefined), ...(request.subject === 'metrics' ? [own] : [])]
}

/** A place for a worker process: a process that ends is replaced. */
interface WorkerSlot {
  /** Resolves when the process listens; rejects if it cannot start. */
  start(): Promise<void>
  /** Undefined if there is nothing to report. */
  report(request: ReportRequest): Promise<Report | undefined>
  apply(live: LiveSettings): Promise<void>
  drain(): void
  /** Resolves when running requests are finished and the process has ended. */
  stop(): Promise<void>
}

/** A process that runs this long is replaced without a pause. */
const STEADY_MS = 10_000
const MIN_PAUSE_MS = 100
const MAX_PAUSE_MS = 10_000

/** The pause before a process is replaced, by the number of processes in a row that ended soon after their start. */
export function computePause(quickEnds: number): number {
  return quickEnds === 0 ? 0 : Math.min(MIN_PAUSE_MS * 2 ** (quickEnds - 1), MAX_PAUSE_MS)
}

function openSlot(number: number, fork: () => WorkerProcess, logger: Logger): WorkerSlot {
  const metrics = createMetricsHistory()
  let current = fork()
  let isStopping = false

  async function startCurrent(): Promise<void> {
    await current.start()
    logger.info({ worker: number, pid: current.pid }, 'Worker started')
  }

  async function replaceEnded(): Promise<void> {
    let quickEnds = 0
    while (!isStopping) {
      const startedAt = performance.now()
      const reason = await current.ended
      metrics.end()
      if (isStopping) return
      quickEnds = performance.now() - startedAt < STEADY_MS ? quickEnds + 1 : 0
      const pauseMs = computePause(quickEnds)
      logger.error({ worker: number, reason, pauseMs }, 'Worker ended; it is restarted')
      await pause(pauseMs)
      if (!isStopping) restart()
    }
  }

  function restart(): void {
    const next = fork()
    current = next
    startCurrent().catch(error => {
      if (!isStopping) logger.error({ worker: number, err: error }, 'Cannot start worker')
      next.kill()
    })
  }

  return {
    async start() {
      await startCurrent()
      void replaceEnded()
    },
    async report(request) {
      const isListening = current.isListening()
      const report = isListening ? await current.report(request) : undefined
      if (request.subject === 'metrics') return metrics.add(request.server, report as Metrics | undefined)
      // New connections are not assigned to a process that does not listen.
      return isListening ? (report ?? describeSilent(number)) : undefined
    },
    apply: live => current.apply(live),
    drain: () => current.drain(),
    async stop() {
      isStopping = true
      await current.stop()
    },
  }
}

function describeSilent(number: number): Report {
  return [{ name: `worker ${number}`, ok: false, reason: `no response within ${REPORT_MS} ms` }]
}

/** Counters never decrease: the last report of a process that has ended, or does not respond, still counts. */
function createMetricsHistory() {
  const last = new Map<ServerName, Metrics>()
  const ended = new Map<ServerName, Promise<Metrics>>()

  async function sum(server: ServerName, latest: Metrics | undefined): Promise<Metrics> {
    const all = [await ended.get(server), latest]
    return mergeMetrics(all.filter(it => it !== undefined))
  }

  return {
    add(server: ServerName, report: Metrics | undefined): Promise<Metrics> {
      if (report) last.set(server, report)
      return sum(server, last.get(server))
    },
    end(): void {
      for (const [server, metrics] of last) ended.set(server, sum(server, endMetrics(metrics)))
      last.clear()
    },
  }
}
