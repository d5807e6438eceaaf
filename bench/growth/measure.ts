/** One subject of `bench/growth.ts`: a file beside this one exports it as `subject`. */
export interface Subject {
  /** The size of the large data set, for example its number of resources. The small one is a hundredth. */
  readonly size: number
  /** The highest ratio of a request that has no limit of its own. */
  readonly limit: number
  /** Microseconds that a request uses. By default the processor time of this process. */
  readonly clock?: () => number
  /** Opens the data set of this size in the folder; fills it if it is not there. The folder may be kept. */
  open(size: number, folder: string): Promise<DataSet>
}

export interface DataSet {
  /** The same names for both sizes. */
  readonly requests: Readonly<Record<string, Request>>
  close(): Promise<void>
}

export interface Request {
  /** Throws if the response is not the expected one. */
  send(): Promise<void>
  readonly limit?: number
  /** Whether the time may grow as the data do. The request must then let others run between its steps. */
  readonly isLinear?: boolean
  /** The number of bytes of headers and body of a response that must not grow either. */
  measureSize?(): Promise<number>
}

const FACTOR = 100
/** The highest ratio of a request whose time may grow as the data do. The small data set fits into the caches. */
const LINEAR = 5 * FACTOR
/** A request that takes less on the large data set is flat: the ratio of such times is that of the caches. */
const FLAT_US = 1_000
/** The longest time for which such a request may keep the event loop busy. */
const BLOCKED_US = 50_000
/** Requests before the measurement, until the compiler has optimized the code. */
const WARM_UP = 10
/** Requests of a round take about this long together. */
const ROUND_MS = 50
const ROUNDS = 3

/** Measures all requests on both data sets, prints the table, and returns whether all ratios are within their limits. */
export async function measureGrowth(
  name: string,
  { open, limit, clock = readProcessorTime }: Subject,
  size: number,
  folder: string,
): Promise<boolean> {
  const [small, large] = [
    await measureAll(open, size / FACTOR, folder, clock),
    await measureAll(open, size, folder, clock),
  ]
  report([name, `${size / FACTOR}`, `${size}`, 'ratio', 'limit', 'blocked', 'bytes'])
  const ratios = [...large].map(([request, most]) => {
    const [before, after] = [small.get(request)?.us ?? 0, most.us]
    const [ratio, allowed] = [after / before, most.isLinear ? LINEAR : (most.limit ?? limit)]
    const [isFlat, isFree, isSmall] = [
      ratio <= allowed || after <= FLAT_US,
      !most.isLinear || most.blocked <= BLOCKED_US,
      most.size <= (small.get(request)?.size ?? 0) * limit,
    ]
    report([
      request,
      formatTime(before),
      formatTime(after),
      ratio.toFixed(1),
      most.isLinear ? `linear${mark(isFlat)}` : `${allowed}${mark(isFlat)}`,
      `${formatTime(most.blocked)}${mark(isFree)}`,
      `${most.size || ''}${mark(isSmall)}`,
    ])
    return isFlat && isFree && isSmall
  })
  return ratios.every(Boolean)
}

function mark(isWithin: boolean): string {
  return isWithin ? '' : ' <'
}

interface Measured extends Pick<Request, 'limit' | 'isLinear'> {
  readonly us: number
  /** Microseconds of the longest turn of the event loop. */
  readonly blocked: number
  readonly size: number
}

async function measureAll(
  open: Subject['open'],
  size: number,
  folder: string,
  clock: () => number,
): Promise<ReadonlyMap<string, Measured>> {
  const { requests, close } = await open(size, folder)
  const measured = new Map<string, Measured>()
  for (const { send } of Object.values(requests)) await warmUp(send)
  for (const [name, { send, measureSize, ...request }] of Object.entries(requests))
    measured.set(name, {
      ...request,
      us: await measure(send, clock),
      blocked: await measureBlocked(send),
      size: (await measureSize?.()) ?? 0,
    })
  await close()
  return measured
}

async function warmUp(send: () => Promise<void>): Promise<void> {
  const end = performance.now() + ROUND_MS
  for (let sent = 0; sent < WARM_UP && performance.now() < end; sent++) await send()
}

/** Processor time, so that other processes do not count. */
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

/** Microseconds of one request, in the best round. */
async function measure(send: () => Promise<void>, clock: () => number): Promise<number> {
  const first = await time(send, 1, clock)
  const times = Math.max(1, Math.round((ROUND_MS * 1000) / first))
  // A request that takes longer than a round is measured once.
  if (times === 1) return first
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < ROUNDS; round++) best = Math.min(best, await time(send, times, clock))
  return best
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
