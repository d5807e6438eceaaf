import {
  type Aggregator,
  AggregatorRegistry,
  Gauge,
  type MetricObjectWithValues,
  type MetricValue,
  Counter as PromCounter,
  Histogram as PromHistogram,
  Registry as PromRegistry,
} from 'prom-client'

/** Upper bounds of the buckets of durations, in seconds. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** A metric with all its values. Plain data, which workers send to their supervisor. */
export interface Family
  extends Pick<MetricObjectWithValues<MetricValue<string>>, 'name' | 'help' | 'aggregator' | 'values'> {
  /** `counter`, `gauge` or `histogram`: the types of prom-client say something else. */
  readonly type: unknown
}

interface Description {
  readonly name: string
  readonly help: string
  /** The names of the labels. */
  readonly labels?: readonly string[]
}

interface Merged {
  /** How the values of several processes become one. */
  readonly merge: Extract<Aggregator, 'sum' | 'min' | 'max'>
}

/** Each value with those of its labels. */
type Values = readonly (readonly [value: number, ...labels: string[]])[]

export interface Counter {
  add(labels: readonly string[], count?: number): void
}

export interface Histogram {
  observe(labels: readonly string[], seconds: number): void
}

/**
 * The metrics of a server or of a process. Values of labels come from the code or from the settings, never from a request:
 * their number is limited, and none names a patient or a user.
 */
export class Registry {
  readonly #registry = new PromRegistry()

  counter(description: Description): Counter {
    const counter = new PromCounter(this.#configure(description))
    return { add: (labels, count) => counter.labels(...labels).inc(count) }
  }

  histogram(description: Description): Histogram {
    const histogram = new PromHistogram({ ...this.#configure(description), buckets: BUCKETS })
    return { observe: (labels, seconds) => histogram.labels(...labels).observe(seconds) }
  }

  /** A value that is read when the metrics are. Without a value, or with NaN, there is no line. */
  gauge({ merge, ...description }: Description & Merged, read: () => Values | Promise<Values>): void {
    new Gauge({
      ...this.#configure(description),
      aggregator: merge,
      async collect() {
        const values = await read()
        this.reset()
        this.remove({})
        for (const [value, ...labels] of values) if (!Number.isNaN(value)) this.labels(...labels).set(value)
      },
    })
  }

  /** A counter that another part of the process counts. */
  readCounter(description: Description, read: () => Values): void {
    new PromCounter({
      ...this.#configure(description),
      collect() {
        this.reset()
        for (const [value, ...labels] of read()) this.labels(...labels).inc(value)
      },
    })
  }

  /** A later metric replaces one of the same name: servers that are opened again describe theirs again. */
  #configure({ labels = [], ...description }: Description) {
    this.#registry.removeSingleMetric(description.name)
    return { ...description, labelNames: labels, registers: [this.#registry] }
  }

  read(): Promise<readonly Family[]> {
    return this.#registry.getMetricsAsJSON()
  }
}

/** The metrics of this process, which its servers share: database, audit trail, reloads. */
export const processMetrics = new Registry()

/** The metrics of a server in one process, or the sum of several. */
export interface Metrics {
  readonly server: readonly Family[]
  readonly process: readonly Family[]
}

export async function mergeMetrics(all: readonly Metrics[]): Promise<Metrics> {
  const merge = (families: readonly Family[]) => AggregatorRegistry.aggregate([families]).getMetricsAsJSON()
  return {
    server: await merge(all.flatMap(({ server }) => server)),
    process: await merge(all.flatMap(it => it.process)),
  }
}

/** The counters of a process that has ended: they must not decrease, but its memory is free. */
export function endMetrics({ server, process }: Metrics): Metrics {
  const isKept = ({ type }: Family) => type !== 'gauge'
  return { server: server.filter(isKept), process: process.filter(isKept) }
}

/** Prometheus text exposition format 0.0.4, with one metric for all of the same name. */
export function formatFamilies(families: readonly Family[]): Promise<string> {
  return AggregatorRegistry.aggregate([families.filter(({ values }) => values.length > 0)]).metrics()
}
