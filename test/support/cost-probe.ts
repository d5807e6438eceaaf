/**
 * Loaded into a server's process (`--import`). Tells the parent process how much processor time the event loop spent
 * without a pause since it was asked to begin, beside a fixed piece of work in the same process: the ratio of the two
 * is the same on a fast and on a slow machine.
 */
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

export interface Cost {
  /** The longest stretch, in milliseconds of processor time. */
  readonly busy: number
  /** The fixed piece of work, likewise. */
  readonly unit: number
  /** Most memory beyond what was used at the beginning, in bytes, garbage that was not yet collected included. */
  readonly memory: number
}

function processorTime(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

function memory(): number {
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/** The median of five. */
function measureUnit(): number {
  const times = Array.from({ length: 5 }, () => {
    const began = processorTime()
    for (let at = 0; at < 2; at++) JSON.stringify(JSON.parse(WORK))
    return processorTime() - began
  })
  return times.sort((a, b) => a - b)[2] ?? 0
}

let [last, longest, used, most, unit] = [processorTime(), 0, 0, 0, 0]

function look(): void {
  longest = Math.max(longest, processorTime() - last)
  most = Math.max(most, memory())
  last = processorTime()
}

setInterval(look, 2).unref()

process.on('message', message => {
  if (message === 'begin') {
    globalThis.gc?.()
    unit = measureUnit()
    ;[used, most] = [memory(), memory()]
    ;[last, longest] = [processorTime(), 0]
    process.send?.('began')
  } else {
    look()
    // Before and after: other processes may have slowed this one down in between.
    const cost: Cost = { busy: longest, unit: Math.max(unit, measureUnit()), memory: most - used }
    process.send?.(cost)
  }
})
process.channel?.unref()
