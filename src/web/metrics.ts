import { type Histogram, monitorEventLoopDelay } from 'node:perf_hooks'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import './reply.ts'

const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const

interface Durations {
  readonly buckets: number[]
  sum: number
  count: number
}

interface Series {
  readonly counted: string
  count: number
  readonly histogram: Durations
}

type Labels = Readonly<Record<string, string | number>>

function formatLabel(labels: Labels): string {
  const parts = Object.entries(labels).map(([name, value]) => `${name}="${escapeLabel(String(value))}"`)
  return parts.length > 0 ? `{${parts.join(',')}}` : ''
}

function escapeLabel(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}

/** Counts requests and their durations by method, route and status. Routes are patterns, which contain no id. */
export class RequestMetrics {
  readonly #server: string
  readonly #durations = new Map<string, Durations>()
  /** By route, method and status, so that labels are not formatted for every request. */
  readonly #series = new Map<string, Map<string, Map<number, Series>>>()

  constructor(server: string) {
    this.#server = server
  }

  observe(method: string, route: string, status: number, seconds: number): void {
    const series = this.#findSeries(method, route, status)
    series.count += 1
    const { histogram } = series
    histogram.sum += seconds
    histogram.count += 1
    const bucket = BUCKETS.findIndex(bound => seconds <= bound)
    if (bucket >= 0) histogram.buckets[bucket] = (histogram.buckets[bucket] ?? 0) + 1
  }

  #findSeries(method: string, route: string, status: number): Series {
    const known = this.#series.get(route)?.get(method)?.get(status)
    if (known) return known
    const counted = formatLabel({ server: this.#server, method, route, status })
    const made: Series = { counted, count: 0, histogram: this.#findHistogram(method, route) }
    const methods = this.#series.get(route) ?? new Map<string, Map<number, Series>>()
    const statuses = methods.get(method) ?? new Map<number, Series>()
    this.#series.set(route, methods.set(method, statuses.set(status, made)))
    return made
  }

  #listSeries(): readonly Series[] {
    return [...this.#series.values()].flatMap(methods =>
      [...methods.values()].flatMap(statuses => [...statuses.values()]),
    )
  }

  #findHistogram(method: string, route: string): Durations {
    const key = JSON.stringify([method, route])
    const known = this.#durations.get(key)
    if (known) return known
    const made: Durations = { buckets: BUCKETS.map(() => 0), sum: 0, count: 0 }
    this.#durations.set(key, made)
    return made
  }

  /** Prometheus text exposition format 0.0.4. */
  format(): string {
    return [
      '# HELP sallyport_http_requests_total HTTP responses sent.',
      '# TYPE sallyport_http_requests_total counter',
      ...this.#listSeries().map(({ counted, count }) => `sallyport_http_requests_total${counted} ${count}`),
      '# HELP sallyport_http_request_duration_seconds Time from the request to the end of the response.',
      '# TYPE sallyport_http_request_duration_seconds histogram',
      ...[...this.#durations].flatMap(([key, histogram]) => this.#formatHistogram(key, histogram)),
    ].join('\n')
  }

  #formatHistogram(key: string, histogram: Durations): readonly string[] {
    const [method = '', route = ''] = JSON.parse(key) as readonly string[]
    const labels = { server: this.#server, method, route }
    const name = 'sallyport_http_request_duration_seconds'
    let below = 0
    const buckets = BUCKETS.map((bound, at) => {
      below += histogram.buckets[at] ?? 0
      return `${name}_bucket${formatLabel({ ...labels, le: bound })} ${below}`
    })
    return [
      ...buckets,
      `${name}_bucket${formatLabel({ ...labels, le: '+Inf' })} ${histogram.count}`,
      `${name}_sum${formatLabel(labels)} ${histogram.sum}`,
      `${name}_count${formatLabel(labels)} ${histogram.count}`,
    ]
  }
}

/** A histogram of delays in nanoseconds. */
export type DelayHistogram = Pick<Histogram, 'max' | 'percentile' | 'reset' | 'count'>

/** Returns the delays since the previous call: an old peak says nothing about the present. */
function readDelays(histogram: DelayHistogram): { readonly p99: number; readonly max: number } {
  const { count } = histogram
  const delays =
    count === 0 ? { p99: 0, max: 0 } : { p99: histogram.percentile(99) / 1e9, max: histogram.max / 1e9 }
  histogram.reset()
  return delays
}

function formatProcess(eventLoop: DelayHistogram): string {
  const { p99, max } = readDelays(eventLoop)
  const { user, system } = process.cpuUsage()
  const gauges: readonly (readonly [name: string, type: string, help: string, value: number])[] = [
    ['process_cpu_seconds_total', 'counter', 'CPU time used.', (user + system) / 1e6],
    ['process_resident_memory_bytes', 'gauge', 'Resident memory.', process.memoryUsage.rss()],
    [
      'process_start_time_seconds',
      'gauge',
      'Start time since 1970.',
      Math.round(Date.now() / 1e3 - process.uptime()),
    ],
    ['nodejs_heap_used_bytes', 'gauge', 'Heap in use.', process.memoryUsage().heapUsed],
    ['nodejs_eventloop_delay_p99_seconds', 'gauge', 'Event loop delay since the last scrape.', p99],
    ['nodejs_eventloop_delay_max_seconds', 'gauge', 'Longest event loop delay since the last scrape.', max],
  ]
  return gauges
    .map(([name, type, help, value]) => `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${name} ${value}`)
    .join('\n')
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
  const metrics = new RequestMetrics(server)
  app.addHook('onResponse', (request, reply, done) => {
    const route = request.is404 ? 'none' : (request.routeOptions.url ?? 'none')
    metrics.observe(request.method, route, reply.statusCode, reply.elapsedTime / 1e3)
    done()
  })
  app.get('/metrics', async (request, reply) => {
    if (!open && !isFromLoopback(request)) return reply.sendProblem({ kind: 'loopback-only' })
    return reply
      .type('text/plain; version=0.0.4; charset=utf-8')
      .send(`${metrics.format()}\n${formatProcess(eventLoop)}\n`)
  })
}
