import { type Histogram, monitorEventLoopDelay } from 'node:perf_hooks'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import './reply.ts'
import { addReports, getGatherer } from './reports.ts'
import {
  BUCKETS,
  type Durations,
  type Metrics,
  mergeMetrics,
  type ProcessMetrics,
  RequestMetrics,
} from './request-metrics.ts'

type Labels = Readonly<Record<string, string | number>>

function formatLabel(labels: Labels): string {
  const parts = Object.entries(labels).map(([name, value]) => `${name}="${escapeLabel(String(value))}"`)
  return parts.length > 0 ? `{${parts.join(',')}}` : ''
}

function escapeLabel(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}

/** Prometheus text exposition format 0.0.4. */
export function formatMetrics(server: string, { requests, durations, process }: Metrics): string {
  return [
    '# HELP sallyport_http_requests_total HTTP responses sent.',
    '# TYPE sallyport_http_requests_total counter',
    ...requests.map(
      ({ count, method, route, status }) =>
        `sallyport_http_requests_total${formatLabel({ server, method, route, status })} ${count}`,
    ),
    '# HELP sallyport_http_request_duration_seconds Time from the request to the end of the response.',
    '# TYPE sallyport_http_request_duration_seconds histogram',
    ...durations.flatMap(histogram => formatHistogram(server, histogram)),
    ...formatProcess(process),
    '',
  ].join('\n')
}

function formatHistogram(
  server: string,
  { method, route, buckets, sum, count }: Durations,
): readonly string[] {
  const labels = { server, method, route }
  const name = 'sallyport_http_request_duration_seconds'
  let below = 0
  const lines = BUCKETS.map((bound, at) => {
    below += buckets[at] ?? 0
    return `${name}_bucket${formatLabel({ ...labels, le: bound })} ${below}`
  })
  return [
    ...lines,
    `${name}_bucket${formatLabel({ ...labels, le: '+Inf' })} ${count}`,
    `${name}_sum${formatLabel(labels)} ${sum}`,
    `${name}_count${formatLabel(labels)} ${count}`,
  ]
}

function formatProcess(metrics: ProcessMetrics): readonly string[] {
  const lines: readonly (readonly [name: string, type: string, help: string, value: number])[] = [
    ['process_cpu_seconds_total', 'counter', 'CPU time used.', metrics.cpuSeconds],
    ['process_resident_memory_bytes', 'gauge', 'Resident memory.', metrics.residentBytes],
    ['process_start_time_seconds', 'gauge', 'Start time since 1970.', metrics.startedAt],
    ['nodejs_heap_used_bytes', 'gauge', 'Heap in use.', metrics.heapBytes],
    [
      'nodejs_eventloop_delay_p99_seconds',
      'gauge',
      'Event loop delay since the last scrape.',
      metrics.delayP99,
    ],
    [
      'nodejs_eventloop_delay_max_seconds',
      'gauge',
      'Longest event loop delay since the last scrape.',
      metrics.delayMax,
    ],
  ]
  return lines.map(
    ([name, type, help, value]) => `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${name} ${value}`,
  )
}

/** A histogram of delays in nanoseconds. */
export type DelayHistogram = Pick<Histogram, 'max' | 'percentile' | 'reset' | 'count'>

/** The metrics of this process. Delays are those since the previous call: an old peak says nothing about the present. */
export function readProcessMetrics(eventLoop?: DelayHistogram): ProcessMetrics {
  const isDelayed = eventLoop !== undefined && eventLoop.count > 0
  const delays = isDelayed
    ? { delayP99: eventLoop.percentile(99) / 1e9, delayMax: eventLoop.max / 1e9 }
    : { delayP99: 0, delayMax: 0 }
  eventLoop?.reset()
  const { user, system } = process.cpuUsage()
  const { rss, heapUsed } = process.memoryUsage()
  return {
    cpuSeconds: (user + system) / 1e6,
    residentBytes: rss,
    heapBytes: heapUsed,
    startedAt: Math.round(Date.now() / 1e3 - process.uptime()),
    ...delays,
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

/** Adds `GET /metrics` for Prometheus. Only requests from this machine are allowed unless `open` (HTTP-2). */
export function serveMetrics(
  app: FastifyInstance,
  server: string,
  open: boolean,
  eventLoop: DelayHistogram = watchEventLoop(app),
): void {
  const metrics = new RequestMetrics()
  addReports(app, { metrics: async () => ({ ...metrics.read(), process: readProcessMetrics(eventLoop) }) })
  app.addHook('onResponse', (request, reply, done) => {
    const route = request.is404 ? 'none' : (request.routeOptions.url ?? 'none')
    metrics.observe(request.method, route, reply.statusCode, reply.elapsedTime / 1e3)
    done()
  })
  app.get('/metrics', async (request, reply) => {
    if (!open && !isFromLoopback(request)) return reply.sendProblem({ kind: 'loopback-only' })
    const all = await getGatherer(app).metrics()
    return reply
      .type('text/plain; version=0.0.4; charset=utf-8')
      .send(formatMetrics(server, mergeMetrics(all)))
  })
}
