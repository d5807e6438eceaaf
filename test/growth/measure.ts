/**
 * Measures how the time of a piece of work grows with the size of its input. All times of one verdict are taken in the
 * same process, in turns, and the best of each size counts: other processes only ever add to a time.
 */
import { IS_THOROUGH } from '../support/thorough.ts'

/** Inputs that are long in one or two dimensions. */
export interface Family<T> {
  readonly name: string
  /** The input whose dimensions have this size. */
  make(size: number): T
  /** The largest size that a request can have. */
  readonly most?: number
}

/** Work on an input of this many characters. Work that returns a generator pauses between its steps. */
export interface Job {
  readonly characters: number
  run(): unknown
}

/** So many characters, or items, at most in one dimension. */
const MOST_SIZE = IS_THOROUGH ? 180_000 : 16_384

/** Work in one stretch takes at most 200 ms (docs/limits.md): 40 of the units that test/support/cost-probe.ts has. */
const MOST_UNITS = 40

/** It ends at a size that takes this long. */
const LONG_MS = IS_THOROUGH ? 1_000 : 25

/** Linear work has the exponent 1, quadratic work 2. Caches that are too small for a large input cost up to a half. */
const MOST_EXPONENT = 1.6

/** The largest input is this much larger than the one that it is compared with. */
const RANGE = 8

interface Times {
  readonly ms: number
  /** Of the longest stretch without a pause. */
  readonly longest: number
}

interface Point extends Times {
  readonly job: Job
}

function listSizes(most: number): readonly number[] {
  return [most / RANGE ** 3, most / RANGE ** 2, most / RANGE, most].map(Math.ceil)
}

/** Why the work grows too fast, or keeps others waiting for too long; undefined if it does neither. */
export function findExcess(makeJob: (size: number) => Job, most = MOST_SIZE): string | undefined {
  const points: Point[] = []
  for (const size of listSizes(Math.min(most, MOST_SIZE))) {
    const job = makeJob(size)
    const point = { job, ...time(job) }
    points.push(point)
    const base = points.at(-2)
    const excess =
      (base && findFastGrowth(base, point, () => makeJob(size * RANGE))) ?? findLongStretch(point)
    if (excess !== undefined || point.ms > LONG_MS) return excess
  }
  return undefined
}

/**
 * Noise does not last, and effects of caches and of garbage collection end: only growth that is found again and again,
 * and that goes on with a larger input, counts.
 */
function findFastGrowth(first: Point, second: Point, makeLarger: () => Job): string | undefined {
  let [base, point] = [first, second]
  for (let attempt = 0; attempt < countAttempts(point); attempt++) {
    if (!growsFast(base, point)) return undefined
    base = measureAgain(base)
    point = measureAgain(point)
  }
  if (point.ms > CERTAIN_MS) return [base, point].map(describe).join(', ')
  const job = makeLarger()
  const larger = measureAgain({ job, ...time(job) })
  return growsFast(point, larger) ? [base, point, larger].map(describe).join(', ') : undefined
}

/** Neither noise nor caches make work so long. */
const CERTAIN_MS = 500

function countAttempts({ ms }: Times): number {
  return ms > CERTAIN_MS ? 2 : ATTEMPTS
}

function growsFast(base: Point, point: Point): boolean {
  return point.ms > NOTICEABLE_MS && findExponent(base, point) > MOST_EXPONENT
}

const ATTEMPTS = 6
const NOTICEABLE_MS = 2

function findExponent(base: Point, { job, ms }: Point): number {
  return Math.log(ms / base.ms) / Math.log(job.characters / base.job.characters)
}

function findLongStretch(first: Point): string | undefined {
  let point = first
  for (let attempt = 0; attempt < countAttempts(point); attempt++) {
    if (point.longest < MOST_UNITS * UNIT_MS || point.longest < MOST_UNITS * measureUnit()) return undefined
    point = measureAgain(point)
  }
  return `${describe(point)}, ${point.longest.toFixed(0)} ms of them without a pause`
}

function measureAgain({ job, ms, longest }: Point): Point {
  const again = time(job)
  return { job, ms: Math.min(ms, again.ms), longest: Math.min(longest, again.longest) }
}

function describe({ job, ms }: Point): string {
  return `${ms.toFixed(ms < 1 ? 3 : 0)} ms for ${job.characters} characters`
}

/** Short work is repeated, so that its time can be measured. */
function time({ run }: Job): Times {
  const clock = startClock()
  let runs = 0
  let longest = 0
  do {
    longest = Math.max(longest, runAll(run))
    runs++
  } while (clock() < SHORTEST_MS)
  return { ms: clock() / runs, longest }
}

const SHORTEST_MS = 0.2

/** Returns how long its longest step took. */
function runAll(run: () => unknown): number {
  let clock = startClock()
  const result = run()
  if (!isGenerator(result)) return clock()
  let longest = clock()
  for (let isDone = false; !isDone; ) {
    clock = startClock()
    isDone = result.next().done ?? false
    longest = Math.max(longest, clock())
  }
  return longest
}

function isGenerator(result: unknown): result is Generator {
  return typeof result === 'object' && result !== null && Symbol.iterator in result && 'next' in result
}

/** CPU time leaves other processes out, but is counted in steps of some milliseconds. */
function startClock(): () => number {
  const began = performance.now()
  const cpuBegan = getProcessorMs()
  return () => {
    const elapsed = performance.now() - began
    return elapsed < PRECISE_MS ? elapsed : Math.min(elapsed, getProcessorMs() - cpuBegan)
  }
}

const PRECISE_MS = 50

function getProcessorMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

/** The least that the unit takes on any machine that this was written on. */
const UNIT_MS = 5

const WORK = JSON.stringify(
  Array.from({ length: 2_000 }, (_, at) => ({
    resourceType: 'Observation',
    id: `observation-${at}`,
    code: { coding: [{ system: 'http://loinc.org', code: '8480-6', display: 'Systolic blood pressure' }] },
    subject: { reference: `Patient/patient-${at % 60}` },
    valueQuantity: { value: 120 + (at % 40), unit: 'mmHg', code: 'mm[Hg]' },
  })),
)

function measureUnit(): number {
  const times = Array.from({ length: 5 }, () => {
    const clock = startClock()
    for (let at = 0; at < 20; at++) JSON.stringify(JSON.parse(WORK))
    return clock() / 10
  })
  return Math.min(...times)
}
