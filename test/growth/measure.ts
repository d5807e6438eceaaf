/**
 * Measures how the time of a piece of work grows with the size of its input. Only ratios count. All times of one verdict
 * are taken in the same process, in turns, and the least of each size counts: other processes only ever add to a time.
 */

/** Inputs that are long in one or two dimensions. */
export interface Family<T> {
  readonly name: string
  /** The input whose dimensions have this size. */
  make(size: number): T
}

/** Work on an input of this many characters. Work that returns a generator pauses between its steps. */
export interface Job {
  readonly characters: number
  run(): unknown
}

/** Linear work has the exponent 1, quadratic work 2. Caches that are too small for a large input cost up to a half. */
const MAX_EXPONENT = 1.6

/** A quadratic part that is still small beside a linear one gives more than this. */
const SUSPECT_EXPONENT = 1.2

/** Each input is this much larger than the one that it is compared with. */
const RANGE = 8

/** Noise does not last: a suspicion that is not confirmed so often in a row is none. */
const ATTEMPTS = 6
/** Before a growth counts as too fast. Other tests that run beside this one may slow down a few attempts in a row. */
const MAX_ATTEMPTS = 60

interface Point {
  readonly job: Job
  readonly ms: number
}

/** Why the work grows too fast from this size on; undefined if it does not. */
export function findExcess(makeJob: (size: number) => Job, size: number): string | undefined {
  const suspects = findSuspects(makeJob, size)
  if (!suspects) return undefined
  if (growsFast(suspects) && isLong(suspects[1])) return describe(suspects)
  // A quadratic part shows in a larger input, and effects of caches and of garbage collection end there.
  const larger = findSuspects(makeJob, size * RANGE)
  return larger && growsFast(larger) ? describe([suspects[0], ...larger]) : undefined
}

function growsFast([base, point]: readonly [Point, Point]): boolean {
  return findExponent(base, point) > MAX_EXPONENT
}

/** No interruption by another process is so long. */
function isLong({ ms }: Point): boolean {
  return ms > 100 * measureUnit()
}

/** As much as one request may keep others waiting (test/cost.test.ts): 200 ms where the unit takes 2 ms. */
const MAX_UNITS = 100

/** How long the work takes with an input of this size, if that is too long for one stretch. */
export function findLongWork(makeJob: (size: number) => Job, size: number): string | undefined {
  let point = measure(makeJob(size))
  for (let attempt = 1; attempt < ATTEMPTS && point.ms > MAX_UNITS * measureUnit(); attempt++)
    point = measureAgain(point)
  return point.ms > MAX_UNITS * measureUnit() ? describe([point]) : undefined
}

/** Two measurements, if the time of the larger input is more than linear. */
function findSuspects(makeJob: (size: number) => Job, size: number): readonly [Point, Point] | undefined {
  let point = measure(makeJob(size))
  let base = measure(makeJob(Math.ceil(size / RANGE)))
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    if (attempt >= ATTEMPTS && (isLong(point) || !growsFast([base, point]))) break
    if (point.ms < measureUnit() / 4 || findExponent(base, point) < SUSPECT_EXPONENT) return undefined
    // A limit of the input was reached.
    if (point.job.characters < (RANGE / 2) * base.job.characters) return undefined
    base = measureAgain(base)
    if (!isLong(point)) point = measureAgain(point)
  }
  return [base, point]
}

function findExponent(base: Point, { job, ms }: Point): number {
  return Math.log(ms / base.ms) / Math.log(job.characters / base.job.characters)
}

function measure(job: Job): Point {
  return measureAgain({ job, ms: Number.POSITIVE_INFINITY })
}

function measureAgain({ job, ms }: Point): Point {
  return { job, ms: Math.min(ms, time(job)) }
}

function describe(points: readonly Point[]): string {
  return points
    .map(({ job, ms }) => `${(ms / measureUnit()).toFixed(2)} units of time for ${job.characters} characters`)
    .join(', ')
}

/** Short work is repeated: the compiler has then seen it, and an interruption counts once. */
function time({ run }: Job): number {
  let best = Number.POSITIVE_INFINITY
  const began = performance.now()
  for (let runs = 0; runs < RANGE; runs++) {
    const clock = startClock()
    finish(run())
    best = Math.min(best, clock())
    if (performance.now() - began > measureUnit()) break
  }
  return best
}

function finish(result: unknown): void {
  if (typeof result !== 'object' || result === null || !(Symbol.iterator in result && 'next' in result))
    return
  for (const _ of result as Generator);
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

let unit = 0

/** The time of a fixed piece of work: about 2 ms on the machines that this was written on. */
function measureUnit(): number {
  if (unit > 0) return unit
  const times = Array.from({ length: 20 }, () => {
    const clock = startClock()
    JSON.stringify(JSON.parse(WORK))
    return clock()
  })
  unit = Math.min(...times)
  return unit
}

const WORK = JSON.stringify(
  Array.from({ length: 1_500 }, (_, at) => ({
    resourceType: 'Observation',
    id: `observation-${at}`,
    code: { coding: [{ system: 'http://loinc.org', code: '8480-6', display: 'Systolic blood pressure' }] },
    subject: { reference: `Patient/patient-${at % 60}` },
    valueQuantity: { value: 120 + (at % 40), unit: 'mmHg', code: 'mm[Hg]' },
  })),
)
