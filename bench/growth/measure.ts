/** One subject of `bench/growth.ts`: a file beside this one exports it as `subject`. */
export interface Subject {
  /** The size of the large data set, for example its number of resources. The small one is a hundredth. */
  readonly size: number
  /** The highest ratio of a request that has no limit of its own. */
  readonly limit: number
  /** Opens the data set of this size in the folder; fills it if it is not there. The folder may be kept. */
  open(size: number, folder: string): Promise<DataSet>
}

export interface DataSet {
  /** Requests by name. Both sizes have requests of the same names. */
  readonly requests: Readonly<Record<string, Request>>
  /** Microseconds that a request uses. By default the CPU time of this process. */
  readonly clock?: () => number
  close(): Promise<void>
}

export interface Request {
  /** Throws if the response is not the expected one. */
  send(): Promise<void>
  readonly limit?: number
  /** Whether the time may grow with the data. The request must then let others run between its steps. */
  readonly isLinear?: boolean
  /** The number of bytes of headers and body of a response that must not grow either. */
  measureSize?(): Promise<number>
}

const FACTOR = 100
/** The highest ratio of a request whose time may grow with the data. */
const LINEAR = 5 * FACTOR
/** Does not count as growth: the small data set fits into the caches. */
const TOLERATED_US = 50
/** The longest time for which a request may keep the event loop busy. */
const BLOCKED_US = 20_000
/** Requests before the measurement, until the compiler has optimized the code. */
const WARM_UP = 10
/** Requests of a round take about this long together. */
const ROUND_MS = 20
const ROUNDS = 6
const ENOUGH_MS = 500
const ATTEMPTS = 4

/** Measures all requests on both data sets, prints the table, and returns whether all ratios are within their limits. */
export async function measureGrowth(
  name: string,
  { open, limit }: Subject,
  size: number,
  folder: string,
): Promise<boolean> {
  // The small data set is opened last: filling it takes seconds, for which a connection to the large one stays open.
  const large = await open(size, folder)
  const small = await open(size / FACTOR, folder)
  report([name, `${size / FACTOR}`, `${size}`, 'ratio', 'limit', 'blocked', 'bytes'])
  let isWithin = true
  for (const [request, { limit: own, isLinear = false }] of Object.entries(large.requests)) {
    const growth = await compare(small, large, request, isLinear ? LINEAR : (own ?? limit))
    reportGrowth(request, growth, isLinear)
    isWithin &&= isWithinLimits(growth)
  }
  await small.close()
  await large.close()
  return isWithin
}

function reportGrowth(request: string, growth: Growth, isLinear: boolean): void {
  const { before, after, most, ratio, isFlat, isFree, isSmall } = growth
  report([
    request,
    formatTime(before.us),
    formatTime(after.us),
    ratio.toFixed(1),
    `${isLinear ? 'linear' : most}${mark(isFlat)}`,
    `${formatTime(after.blocked)}${mark(isFree)}`,
    `${after.bytes || ''}${mark(isSmall)}`,
  ])
}

function isWithinLimits({ isFlat, isFree, isSmall }: Growth): boolean {
  return isFlat && isFree && isSmall
}

function mark(isWithin: boolean): string {
  return isWithin ? '' : ' <'
}

interface Measured {
  readonly us: number
  /** Microseconds of the longest turn of the event loop. */
  readonly blocked: number
  readonly bytes: number
}

interface Growth {
  readonly before: Measured
  readonly after: Measured
  readonly most: number
  readonly ratio: number
  readonly isFlat: boolean
  readonly isFree: boolean
  readonly isSmall: boolean
}

/**
 * The best of several rounds, which alternate, so that both data sets have the same conditions. Other processes make
 * both slower, the large one more: a request beyond its limits gets more rounds.
 */
async function compare(small: DataSet, large: DataSet, request: string, most: number): Promise<Growth> {
  const before = createMeasure(small, request)
  const after = createMeasure(large, request)
  for (let attempt = 1; ; attempt++) {
    for (const { warmUp } of [before, after]) await warmUp()
    for (let round = 0; round < ROUNDS; round++) for (const { add } of [before, after]) await add()
    const growth = computeGrowth(await before.finish(), await after.finish(), most)
    if (attempt === ATTEMPTS || isWithinLimits(growth)) return growth
  }
}

function computeGrowth(before: Measured, after: Measured, most: number): Growth {
  const ratio = after.us / before.us
  return {
    before,
    after,
    most,
    ratio,
    isFlat: after.us <= most * before.us + TOLERATED_US,
    isFree: after.blocked <= BLOCKED_US,
    isSmall: after.bytes <= before.bytes * 1.5,
  }
}

function createMeasure({ requests, clock = readProcessorTime }: DataSet, name: string) {
  const { send, measureSize } = requests[name] ?? fail(name)
  let us = Number.POSITIVE_INFINITY
  let blocked = Number.POSITIVE_INFINITY
  let times = 1
  let spent = 0
  return {
    async warmUp() {
      spent = 0
      const end = performance.now() + ROUND_MS
      for (let sent = 0; sent < WARM_UP && performance.now() < end; sent++) await send()
      times = Math.max(1, Math.round((ROUND_MS * 1000) / (await time(send, 1, clock))))
    },
    /** A slow request is not measured in every round. */
    async add() {
      if (spent > ENOUGH_MS) return
      const begin = performance.now()
      us = Math.min(us, await time(send, times, clock))
      blocked = Math.min(blocked, await measureBlocked(send))
      spent += performance.now() - begin
    },
    async finish(): Promise<Measured> {
      return { us, blocked, bytes: (await measureSize?.()) ?? 0 }
    },
  }
}

function fail(name: string): never {
  throw new Error(`The small data set has no request ${name}`)
}

/** In CPU time, so that other processes do not count. */
async function measureBlocked(send: () => Promise<void>): Promise<number> {
  let longest = 0
  let before = readProcessorTime()
  const noteTurn = () => {
    const now = readProcessorTime()
    longest = Math.max(longest, now - before)
    before = now
    turn = setImmediate(noteTurn)
  }
  let turn = setImmediate(noteTurn)
  await send()
  clearImmediate(turn)
  return Math.max(longest, readProcessorTime() - before)
}

async function time(send: () => Promise<void>, times: number, clock: () => number): Promise<number> {
  const before = clock()
  for (let sent = 0; sent < times; sent++) await send()
  return (clock() - before) / times
}

export function readProcessorTime(): number {
  const { user, system } = process.cpuUsage()
  return user + system
}

function formatTime(us: number): string {
  return `${(us / 1000).toFixed(2)} ms`
}

function report([name = '', ...columns]: readonly string[]): void {
  process.stdout.write(`${name.padEnd(56)}${columns.map(it => it.padStart(12)).join('')}\n`)
}
