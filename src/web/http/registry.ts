/** Upper bounds of the buckets of durations, in seconds. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const

/** One line of a counter or gauge, or all lines of one histogram. */
interface Sample {
  /** The values of the labels, in the order of their names. */
  readonly labels: readonly string[]
  /** The sum of a histogram. */
  readonly value: number
  /** Histograms: the number of observations in each bucket, not cumulative. */
  readonly buckets?: readonly number[]
  readonly count?: number
}

/** A metric with all its samples. Plain data, which workers send to their supervisor. */
export interface Family {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  /** The names of the labels. */
  readonly labels: readonly string[]
  /** How the values of several processes become one. */
  readonly merge: 'sum' | 'min' | 'max'
  readonly samples: readonly Sample[]
}

type Description = Pick<Family, 'name' | 'help'> & Partial<Pick<Family, 'labels'>>

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
  readonly #families = new Map<string, () => Family | Promise<Family>>()

  counter(description: Description): Counter {
    const find = this.#record(description, 'counter', labels => ({ labels, value: 0 }))
    return {
      add(labels, count = 1) {
        find(labels).value += count
      },
    }
  }

  histogram(description: Description): Histogram {
    const find = this.#record(description, 'histogram', labels => ({
      labels,
      value: 0,
      count: 0,
      buckets: BUCKETS.map(() => 0),
    }))
    return {
      observe(labels, seconds) {
        const recorded = find(labels)
        recorded.value += seconds
        recorded.count += 1
        const bucket = BUCKETS.findIndex(bound => seconds <= bound)
        if (bucket >= 0) recorded.buckets[bucket] = (recorded.buckets[bucket] ?? 0) + 1
      },
    }
  }

  /** A value that is read when the metrics are. Without a value, or with NaN, there is no line. */
  gauge(description: Description & Pick<Family, 'merge'>, read: () => Values | Promise<Values>): void {
    this.#add({ ...description, type: 'gauge' }, read)
  }

  /** A counter that another part of the process counts. */
  readCounter(description: Description, read: () => Values): void {
    this.#add({ ...description, type: 'counter', merge: 'sum' }, read)
  }

  #add(
    { labels = [], ...family }: Description & Pick<Family, 'type' | 'merge'>,
    read: () => Values | Promise<Values>,
  ): void {
    this.#families.set(family.name, async () => {
      const values = (await read()).filter(([value]) => !Number.isNaN(value))
      return { ...family, labels, samples: values.map(([value, ...rest]) => ({ value, labels: rest })) }
    })
  }

  #record<Recorded extends Sample>(
    { labels = [], ...family }: Description,
    type: 'counter' | 'histogram',
    create: (labels: readonly string[]) => Recorded,
  ) {
    const samples = new Map<string, Recorded>()
    this.#families.set(family.name, () => {
      const copies = structuredClone([...samples.values()])
      return { ...family, labels, type, merge: 'sum', samples: copies }
    })
    return (values: readonly string[]): Recorded => {
      const key = values.join('\0')
      const known = samples.get(key)
      if (known) return known
      const made = create(values)
      samples.set(key, made)
      return made
    }
  }

  read(): Promise<readonly Family[]> {
    return Promise.all(this.#families.values().map(read => read()))
  }
}

/** The metrics of this process, which its servers share: database, audit trail, reloads. */
export const processMetrics = new Registry()

export function mergeFamilies(all: readonly Family[]): readonly Family[] {
  return Map.groupBy(all, ({ name }) => name)
    .values()
    .flatMap(same => {
      const [first] = same
      return first ? [{ ...first, samples: mergeSamples(first.merge, same) }] : []
    })
    .toArray()
}

function mergeSamples(merge: Family['merge'], same: readonly Family[]): readonly Sample[] {
  const samples = same.flatMap(family => family.samples)
  return Map.groupBy(samples, ({ labels }) => labels.join('\0'))
    .values()
    .map(equal => equal.reduce((a, b) => mergeTwo(merge, a, b)))
    .toArray()
}

function mergeTwo(merge: Family['merge'], a: Sample, b: Sample): Sample {
  return {
    ...a,
    value: merge === 'sum' ? a.value + b.value : Math[merge](a.value, b.value),
    ...(a.buckets && {
      buckets: a.buckets.map((count, at) => count + (b.buckets?.[at] ?? 0)),
      count: (a.count ?? 0) + (b.count ?? 0),
    }),
  }
}

/** The metrics of a server in one process, or the sum of several. */
export interface Metrics {
  readonly server: readonly Family[]
  readonly process: readonly Family[]
}

export function mergeMetrics(all: readonly Metrics[]): Metrics {
  return {
    server: mergeFamilies(all.flatMap(({ server }) => server)),
    process: mergeFamilies(all.flatMap(it => it.process)),
  }
}

/** The counters of a process that has ended: they must not decrease, but its memory is free. */
export function endMetrics({ server, process }: Metrics): Metrics {
  const isKept = ({ type }: Family) => type !== 'gauge'
  return { server: server.filter(isKept), process: process.filter(isKept) }
}

/** Prometheus text exposition format 0.0.4. */
export function formatFamilies(families: readonly Family[]): string {
  const lines = families
    .filter(({ samples }) => samples.length > 0)
    .flatMap(family => [
      `# HELP ${family.name} ${family.help}`,
      `# TYPE ${family.name} ${family.type}`,
      ...family.samples.flatMap(sample => formatSample(family, sample)),
    ])
  return `${lines.join('\n')}\n`
}

function formatSample({ name, labels }: Family, sample: Sample): readonly string[] {
  const pairs = labels.map((label, at) => `${label}="${escapeLabel(sample.labels[at] ?? '')}"`)
  const brace = (more: readonly string[]) => {
    const all = [...pairs, ...more]
    return all.length > 0 ? `{${all.join(',')}}` : ''
  }
  if (!sample.buckets) return [`${name}${brace([])} ${sample.value}`]
  let below = 0
  const buckets = BUCKETS.map((bound, index) => {
    below += sample.buckets?.[index] ?? 0
    return `${name}_bucket${brace([`le="${bound}"`])} ${below}`
  })
  return [
    ...buckets,
    `${name}_bucket${brace(['le="+Inf"'])} ${sample.count}`,
    `${name}_sum${brace([])} ${sample.value}`,
    `${name}_count${brace([])} ${sample.count}`,
  ]
}

function escapeLabel(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}
