import { availableParallelism, loadavg } from 'node:os'
import { Worker } from 'node:worker_threads'
import type { Mutant } from './mutants.ts'
import type { Message, Work } from './try-mutants.ts'

/** The result of a mutant: the test that detected it, if any. */
export interface Result {
  readonly mutant: Mutant
  readonly by: string | undefined
  readonly why?: string | undefined
}

/** Mutants that one thread tries, with tests in this order. */
export interface Batch {
  readonly mutants: readonly Mutant[]
  readonly tests: readonly string[]
}

// An endless loop uses CPU time, an endless wait uses none. On a loaded machine a wait takes longer.
const POLL_MS = 1_000
const MAX_CPU_MS = 15_000
const MAX_IDLE_POLLS = 8

/** Tries every batch, on all cores but one, and reports each mutant. */
export async function tryAll(
  batches: readonly Batch[],
  graph: Work['graph'],
  onResult: (result: Result) => void,
): Promise<void> {
  const queue = [...batches]
  const work = async () => {
    for (let batch = queue.shift(); batch; batch = queue.shift()) {
      const failures = new Map<number, number>()
      for (let first = 0; first < batch.mutants.length; )
        first = await tryFrom({ ...batch, first, graph }, failures, onResult)
    }
  }
  await Promise.all(Array.from({ length: Math.max(1, availableParallelism() - 1) }, work))
}

/** Tries mutants from `first` on and returns where to continue. A mutant that never ends, or ends the thread, counts as detected. */
function tryFrom(
  work: Work,
  failures: Map<number, number>,
  onResult: (result: Result) => void,
): Promise<number> {
  const worker = new Worker(new URL('try-mutants.ts', import.meta.url), { workerData: work })
  return new Promise((done, fail) => {
    let trying = { at: work.first, test: 'nothing' }
    let next: number | undefined
    const reportResult = (at: number, by: string | undefined, why?: string) => {
      const mutant = work.mutants[at]
      if (mutant) onResult({ mutant, by, why })
    }
    const end = (at: number) => {
      next ??= at
      worker.terminate().catch(fail)
    }
    const clock = watch(worker, () => {
      reportResult(trying.at, `${trying.test}, which did not end`)
      end(trying.at + 1)
    })
    // Leftovers of an earlier mutant may end the thread of a later one, which is then tried alone.
    const handleEnd = (why: string) => {
      const times = (failures.get(trying.at) ?? 0) + 1
      failures.set(trying.at, times)
      if (times > 1) reportResult(trying.at, `${trying.test}, whose thread ended`, why)
      end(times > 1 ? trying.at + 1 : trying.at)
    }
    worker.on('error', error => handleEnd(String(error)))
    worker.on('exit', () => {
      clock.stop()
      if (next === undefined) handleEnd('The event loop is empty, but a test is pending')
      done(next ?? work.mutants.length)
    })
    worker.on('message', (message: Message) => {
      if (next !== undefined) return
      clock.restart()
      if ('done' in message) end(work.mutants.length)
      else if ('trying' in message) trying = { at: message.trying, test: message.test }
      else reportResult(message.tried, message.by, message.why)
    })
  })
}

/** Calls `onStall` when a thread has used too much CPU time, or has been idle too long, since the last restart. */
function watch(worker: Worker, onStall: () => void): { restart(): void; stop(): void } {
  let cpu = process.cpuUsage()
  let loop = worker.performance.eventLoopUtilization()
  let idle = 0
  const timer = setInterval(() => {
    const { utilization } = worker.performance.eventLoopUtilization(loop)
    loop = worker.performance.eventLoopUtilization()
    // Before its first iteration the thread is loading modules.
    idle = loop.active > 0 && utilization < 0.02 ? idle + 1 : 0
    const { user, system } = process.cpuUsage(cpu)
    if (idle < MAX_IDLE_POLLS * measureLoad() && (user + system) / 1000 < MAX_CPU_MS) return
    clearInterval(timer)
    onStall()
  }, POLL_MS)
  return {
    restart: () => {
      cpu = process.cpuUsage()
      idle = 0
    },
    stop: () => clearInterval(timer),
  }
}

/** How many processes wait for each core, at least 1. */
function measureLoad(): number {
  const [lastMinute = 1] = loadavg()
  return Math.max(1, lastMinute / availableParallelism())
}
