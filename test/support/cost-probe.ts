/**
 * Loaded into a server's process (`--import`). Reports to the parent process the cost of a request since it was
 * asked to begin: the most CPU time that the event loop spent without a pause, beside a fixed piece of work in the
 * same process (the ratio of the two is the same on a fast and on a slow machine), and the most memory.
 */
import { getHeapStatistics } from 'node:v8'

/** Like a FHIR server, the fixed piece of work parses and writes JSON, and leaves garbage behind. */
const WORK = JSON.stringify(
  Array.from({ length: 2_000 }, (_, at) => ({
    resourceType: 'Observation',
    id: `observation-${at}`,
    status: 'final',
    code: { coding: [{ system: 'http://loinc.org', code: '8480-6', display: 'Systolic blood pressure' }] },
    subject: { reference: `Patient/patient-${at % 60}` },
    valueQuantity: {
      value: 120 + (at % 40),
      unit: 'mmHg',
      system: 'http://unitsofmeasure.org',
      code: 'mm[Hg]',
    },
  })),
)

/**
 * - `roughly`: quick, and never less than the truth. Time is in the shortest unit seen so far, memory is all that was
 *   allocated, collected or not.
 * - `carefully`: garbage of earlier requests is collected before, and the unit is measured right after, where the
 *   shortest unit is not precise enough. Memory includes the garbage of the request that was not yet collected.
 * - `collecting`: garbage is also collected between the turns of the event loop. Memory is what the request keeps, and
 *   all garbage of the turn that is under way. Time is not measured.
 */
export type Measurement = 'roughly' | 'carefully' | 'collecting'

export interface Cost {
  /** The longest stretch of CPU time without a pause, in units of the fixed piece of work. */
  readonly units: number
  /** All CPU time of the process, in the same units. */
  readonly total: number
  /** Bytes. */
  readonly memory: number
}

/** How much a turn allocates before a collection after it is worth its time. */
const COLLECTED = 24 * 1024 * 1024

/** So few of the shortest units that a longer unit would not matter: without a pause, and in all. */
const CERTAIN = { longest: 20, total: 200 }

function processorTime(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

/** Of all threads: garbage is collected and responses are compressed in others. */
function processTime(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

// `process.memoryUsage` takes longer: it asks the operating system too.
function readMemory(): { readonly used: number; readonly external: number } {
  const { used_heap_size, external_memory } = getHeapStatistics()
  return { used: used_heap_size + external_memory, external: external_memory }
}

function allocated(): number {
  return getHeapStatistics().total_allocated_bytes
}

/** Buffers are freed in the background after a collection; the next one waits for that. */
function collect(): void {
  globalThis.gc?.()
  globalThis.gc?.()
}

function timeWork(): number {
  const began = processorTime()
  for (let at = 0; at < 2; at++) JSON.stringify(JSON.parse(WORK))
  return processorTime() - began
}

/** The median of five. */
function measureUnit(): number {
  const times = Array.from({ length: 5 }, timeWork).sort((a, b) => a - b)
  quickest = Math.min(quickest, ...times)
  return times[2] ?? 0
}

let quickest = Number.POSITIVE_INFINITY
let measurement: Measurement = 'roughly'
let [last, longest, began] = [0, 0, 0]
/** The time that was spent on measuring. */
let own = 0
let [usedBefore, usedLast, mostUsed] = [0, 0, 0]
let [allocatedBefore, leastExternal, mostExternal] = [0, 0, 0]

function begin(asked: Measurement): void {
  measurement = asked
  if (asked !== 'roughly') collect()
  if (quickest === Number.POSITIVE_INFINITY) measureUnit()
  const { used, external } = readMemory()
  usedBefore = usedLast = mostUsed = used
  allocatedBefore = allocated()
  leastExternal = external
  mostExternal = 0
  longest = own = 0
  began = processTime()
  last = processorTime()
}

function look(): void {
  const now = processorTime()
  longest = Math.max(longest, now - last)
  lookAtMemory()
  last = processorTime()
  own += last - now
}

function lookAtMemory(): void {
  const { used, external } = readMemory()
  mostUsed = Math.max(mostUsed, used)
  leastExternal = Math.min(leastExternal, external)
  mostExternal = Math.max(mostExternal, external - leastExternal)
  if (measurement !== 'collecting' || used - usedLast < COLLECTED) return
  collect()
  usedLast = readMemory().used
}

function end(): Cost {
  look()
  // A request that mostly waits is measured very often.
  const spent = processTime() - began - own
  if (measurement === 'roughly')
    return {
      units: longest / quickest,
      total: spent / quickest,
      memory: allocated() - allocatedBefore + mostExternal,
    }
  const memory = mostUsed - usedBefore
  if (measurement === 'collecting') return { units: 0, total: 0, memory }
  const isCertain = longest / quickest < CERTAIN.longest && spent / quickest < CERTAIN.total
  const unit = isCertain ? quickest : measureUnit()
  return { units: longest / unit, total: spent / unit, memory }
}

// More often, a request that waits for a minute would be charged for this.
setInterval(look, 5).unref()

process.on('message', (message: Measurement | 'end') => {
  if (message === 'end') return process.send?.(end())
  begin(message)
  return process.send?.('began')
})
process.on('disconnect', () => process.exit())
process.channel?.unref()
