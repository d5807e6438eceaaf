import { type Histogram, monitorEventLoopDelay } from 'node:perf_hooks'
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify'
import './reply.ts'
import { version } from '../ui/index.ts'
import { addReports, type CheckResult, getGatherer } from './health.ts'
import { prepareListeners, serveConnectionsInTurn } from './listen.ts'
import { type Family, formatFamilies, type Metrics, processMetrics, type Registry } from './registry.ts'
import { findHostName } from './request.ts'

/** A histogram of delays in nanoseconds. */
export type DelayHistogram = Pick<Histogram, 'max' | 'percentile' | 'reset' | 'count'>

/** The metrics of this process. Delays are those since the previous call: an old peak says nothing about the present. */
export async function readProcessMetrics(eventLoop?: DelayHistogram): Promise<readonly Family[]> {
  const isDelayed = eventLoop !== undefined && eventLoop.count > 0
  const [p99, max] = isDelayed ? [eventLoop.percentile(99) / 1e9, eventLoop.max / 1e9] : [0, 0]
  eventLoop?.reset()
  const { user, system } = process.cpuUsage()
  const { rss, heapUsed } = process.memoryUsage()
  const startedAt = Math.round(Date.now() / 1e3 - process.uptime())
  return [
    makeFamily('process_cpu_seconds_total', 'sum', 'CPU time used.', (user + system) / 1e6),
    makeFamily('process_resident_memory_bytes', 'sum', 'Resident memory.', rss),
    makeFamily('process_start_time_seconds', 'min', 'Start time since 1970.', startedAt),
    makeFamily('nodejs_heap_used_bytes', 'sum', 'Heap in use.', heapUsed),
    // Delays cannot be added: the worst process counts.
    makeFamily(
      'nodejs_eventloop_delay_p99_seconds',
      'max',
      'Event loop delay since the last scrape, 99th percentile.',
      p99,
    ),
    makeFamily(
      'nodejs_eventloop_delay_max_seconds',
      'max',
      'Longest event loop delay since the last scrape.',
      max,
    ),
    makeFamily('sallyport_build_info', 'max', 'The running version.', 1, { version }),
    ...(await processMetrics.read()),
  ]
}

function makeFamily(
  name: string,
  aggregator: Family['aggregator'],
  help: string,
  value: number,
  labels: Readonly<Record<string, string>> = {},
): Family {
  const type = name.endsWith('_total') ? 'counter' : 'gauge'
  return { name, help, type, aggregator, values: [{ labels, value }] }
}

/** The reports of one server, of all processes that serve its port. */
export interface ServerReports {
  readonly server: string
  readonly metrics: readonly Metrics[]
  readonly readiness: readonly CheckResult[]
}

/** The metrics of an instance. Every server reports those of its process, which count once. */
function formatReports(reports: readonly ServerReports[]): Promise<string> {
  const [first] = reports
  return formatFamilies([
    ...reports.flatMap(({ metrics }) => metrics.flatMap(({ server }) => server)),
    ...reports.map(({ server, readiness }) => makeCheckFamily(server, readiness)),
    ...(first?.metrics ?? []).flatMap(it => it.process),
  ])
}

function makeCheckFamily(server: string, checks: readonly CheckResult[]): Family {
  return {
    name: 'sallyport_check_up',
    type: 'gauge',
    aggregator: 'min',
    help: 'Whether a check of /readyz passes: 1 or 0.',
    values: checks.map(({ name, ok }) => ({ labels: { server, check: name }, value: ok ? 1 : 0 })),
  }
}

const FORWARDED = ['forwarded', 'x-forwarded-for', 'x-real-ip', 'via'] as const

/** A proxy on the same host also connects from loopback, on behalf of remote clients. */
function isFromLoopback(request: FastifyRequest): boolean {
  const address = request.socket.remoteAddress ?? ''
  return (
    /^(127\.|::1$|::ffff:127\.)/.test(address) && !FORWARDED.some(name => request.headers[name] !== undefined)
  )
}

// One histogram per server, so that a scrape of one server does not reset those of the others.
function watchEventLoop(app: FastifyInstance): DelayHistogram {
  const eventLoop = monitorEventLoopDelay({ resolution: 20 })
  eventLoop.enable()
  app.addHook('onClose', async () => void eventLoop.disable())
  return eventLoop
}

export interface MetricsOptions {
  readonly server: string
  readonly registry: Registry
  /** Who may read `GET /metrics` on this port. With a port of its own, nobody. */
  readonly access: 'loopback' | 'everyone' | 'nobody'
}

/** Counts requests by method, route pattern and status, and adds `GET /metrics` for Prometheus (HTTP-2). */
export function serveMetrics(
  app: FastifyInstance,
  { server, registry, access }: MetricsOptions,
  eventLoop: DelayHistogram = watchEventLoop(app),
): void {
  countRequests(app, server, registry)
  addReports(app, {
    metrics: async () => ({ server: await registry.read(), process: await readProcessMetrics(eventLoop) }),
  })
  if (access === 'nobody') return
  app.get('/metrics', async (request, reply) => {
    if (access === 'loopback' && !isFromLoopback(request)) return reply.sendProblem({ kind: 'loopback-only' })
    const { metrics, readiness } = getGatherer(app)
    const reports = { server, metrics: await metrics(), readiness: (await readiness()).flat() }
    return sendMetrics(reply, [reports])
  })
}

/**
 * A server with `GET /metrics` alone, for everyone who reaches its port. It does not listen yet. `acceptsHost` is against DNS
 * rebinding, as on the other servers.
 */
export function createMetricsServer(
  gather: () => Promise<readonly ServerReports[]>,
  acceptsHost: (host: string) => boolean = () => true,
): FastifyInstance {
  const app = fastify()
  serveConnectionsInTurn(app)
  prepareListeners(app)
  app.get('/metrics', async ({ raw }, reply) => {
    const host = findHostName(raw)
    if (host !== undefined && !acceptsHost(host)) return reply.code(421).send()
    return sendMetrics(reply, await gather())
  })
  return app
}

async function sendMetrics(reply: FastifyReply, reports: readonly ServerReports[]): Promise<FastifyReply> {
  return reply.type('text/plain; version=0.0.4; charset=utf-8').send(await formatReports(reports))
}

function countRequests(app: FastifyInstance, server: string, registry: Registry): void {
  const requests = registry.counter({
    name: 'sallyport_http_requests_total',
    help: 'HTTP responses sent.',
    labels: ['server', 'method', 'route', 'status'],
  })
  const durations = registry.histogram({
    name: 'sallyport_http_request_duration_seconds',
    help: 'Time from the request to the end of the response.',
    labels: ['server', 'method', 'route'],
  })
  app.addHook('onResponse', (request, reply, done) => {
    const route = request.is404 ? 'none' : (request.routeOptions.url ?? 'none')
    const { method } = request
    requests.add([server, method, route, String(reply.statusCode)])
    durations.observe([server, method, route], reply.elapsedTime / 1e3)
    done()
  })
}
