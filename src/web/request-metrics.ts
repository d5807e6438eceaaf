/** Upper bounds of the buckets of durations, in seconds. */
export const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const

export interface RequestCount {
  readonly method: string
  readonly route: string
  readonly status: number
  readonly count: number
}

export interface Durations {
  readonly method: string
  readonly route: string
  /** The number of requests in each bucket, not cumulative. */
  readonly buckets: readonly number[]
  readonly sum: number
  readonly count: number
}

export interface ProcessMetrics {
  readonly cpuSeconds: number
  readonly residentBytes: number
  readonly heapBytes: number
  /** Seconds since 1970. */
  readonly startedAt: number
  /** Event loop delays in seconds since they were last read. */
  readonly delayP99: number
  readonly delayMax: number
}

/** The metrics of one process, or the sum of several. */
export interface Metrics {
  readonly requests: readonly RequestCount[]
  readonly durations: readonly Durations[]
  readonly process: ProcessMetrics
}

interface Histogram {
  readonly buckets: number[]
  sum: number
  count: number
}

interface Route {
  readonly histogram: Histogram
  readonly statuses: Map<number, number>
}

/** Counts requests and their durations by method, route and status. Routes are patterns, which contain no id. */
export class RequestMetrics {
  readonly #routes = new Map<string, Map<string, Route>>()

  observe(method: string, route: string, status: number, seconds: number): void {
    const { histogram, statuses } = this.#findRoute(method, route)
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
    histogram.sum += seconds
    histogram.count += 1
    const bucket = BUCKETS.findIndex(bound => seconds <= bound)
    if (bucket >= 0) histogram.buckets[bucket] = (histogram.buckets[bucket] ?? 0) + 1
  }

  #findRoute(method: string, route: string): Route {
    const known = this.#routes.get(route)?.get(method)
    if (known) return known
    const made: Route = {
      histogram: { buckets: BUCKETS.map(() => 0), sum: 0, count: 0 },
      statuses: new Map(),
    }
    const methods = this.#routes.get(route) ?? new Map<string, Route>()
    this.#routes.set(route, methods.set(method, made))
    return made
  }

  read(): Omit<Metrics, 'process'> {
    const routes = [...this.#routes].flatMap(([route, methods]) =>
      [...methods].map(([method, seen]) => ({ method, route, ...seen })),
    )
    return {
      requests: routes.flatMap(({ method, route, statuses }) =>
        [...statuses].map(([status, count]) => ({ method, route, status, count })),
      ),
      durations: routes.map(({ method, route, histogram }) => ({
        ...{ method, route, ...histogram },
        buckets: [...histogram.buckets],
      })),
    }
  }
}

export function mergeMetrics(all: readonly Metrics[]): Metrics {
  return {
    requests: mergeEqual(
      all.flatMap(({ requests }) => requests),
      ({ method, route, status }) => [method, route, status],
      (a, b) => ({ ...a, count: a.count + b.count }),
    ),
    durations: mergeEqual(
      all.flatMap(({ durations }) => durations),
      ({ method, route }) => [method, route],
      addDurations,
    ),
    process: all.map(({ process }) => process).reduce(addProcess),
  }
}

/** The counters of a process that has ended: they must not decrease, but its memory is free. */
export function endMetrics(metrics: Metrics): Metrics {
  const gauges = { residentBytes: 0, heapBytes: 0, delayP99: 0, delayMax: 0 }
  return { ...metrics, process: { ...metrics.process, ...gauges } }
}

function mergeEqual<T>(
  items: readonly T[],
  keyOf: (item: T) => readonly unknown[],
  add: (a: T, b: T) => T,
): readonly T[] {
  const merged = new Map<string, T>()
  for (const item of items) {
    const key = JSON.stringify(keyOf(item))
    const known = merged.get(key)
    merged.set(key, known ? add(known, item) : item)
  }
  return [...merged.values()]
}

function addDurations(a: Durations, b: Durations): Durations {
  return {
    ...a,
    buckets: a.buckets.map((count, at) => count + (b.buckets[at] ?? 0)),
    sum: a.sum + b.sum,
    count: a.count + b.count,
  }
}

/** Delays cannot be added: the worst process counts. */
function addProcess(a: ProcessMetrics, b: ProcessMetrics): ProcessMetrics {
  return {
    cpuSeconds: a.cpuSeconds + b.cpuSeconds,
    residentBytes: a.residentBytes + b.residentBytes,
    heapBytes: a.heapBytes + b.heapBytes,
    startedAt: Math.min(a.startedAt, b.startedAt),
    delayP99: Math.max(a.delayP99, b.delayP99),
    delayMax: Math.max(a.delayMax, b.delayMax),
  }
}
