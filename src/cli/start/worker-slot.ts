import { setTimeout as pause } from 'node:timers/promises'
import { endMetrics, type Logger, type Metrics, mergeMetrics } from '../../web/index.ts'
import type { Report, ReportRequest } from './channel.ts'
import type { LiveSettings } from './live.ts'
import type { ServerName } from './parts.ts'
import { REPORT_MS, type WorkerProcess } from './worker-process.ts'

/** A place for a worker process: a process that ends is replaced. */
export interface WorkerSlot {
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
const SHORTEST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 10_000

/** The pause before a process is replaced, by the number of processes in a row that ended soon after their start. */
export function computePause(quickEnds: number): number {
  return quickEnds === 0 ? 0 : Math.min(SHORTEST_PAUSE_MS * 2 ** (quickEnds - 1), LONGEST_PAUSE_MS)
}

export function openSlot(number: number, fork: () => WorkerProcess, logger: Logger): WorkerSlot {
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
  const ended = new Map<ServerName, Metrics>()

  function sum(server: ServerName, latest: Metrics | undefined): Metrics | undefined {
    const all = [ended.get(server), latest].filter(it => it !== undefined)
    return all.length === 0 ? undefined : mergeMetrics(all)
  }

  return {
    add(server: ServerName, report: Metrics | undefined): Metrics | undefined {
      if (report) last.set(server, report)
      return sum(server, last.get(server))
    },
    end(): void {
      for (const [server, metrics] of last) ended.set(server, sum(server, endMetrics(metrics)) ?? metrics)
      last.clear()
    },
  }
}
