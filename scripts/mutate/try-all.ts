import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import type { Mutant } from './mutants.ts'
import type { Told, Work } from './try-mutants.ts'

/** What came of a mutant: the test that noticed it, if one did. */
export interface Result {
  readonly mutant: Mutant
  readonly by: string | undefined
  readonly why?: string | undefined
}

/** Mutants that are tried in one thread, by tests in this order. */
export interface Batch {
  readonly mutants: readonly Mutant[]
  readonly tests: readonly string[]
}

// However busy the machine is with other things: a loop without an end works on, and one who waits in vain does nothing.
const POLL_MS = 1_000
const MOST_CPU_MS = 15_000
const MOST_IDLE_POLLS = 8

/** Tries every batch, with all cores but one, and tells of each mutant. */
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

/** Tries from `first` on, and tells where to go on: one that never ends, or ends the thread, is noticed by that. */
function tryFrom(
  work: Work,
  failures: Map<number, number>,
  onResult: (result: Result) => void,
): Promise<number> {
  const worker = new Worker(new URL('try-mutants.ts', import.meta.url), { workerData: work })
  return new Promise((done, fail) => {
    let trying = { at: work.first, test: 'nothing' }
    let next: number | undefined
    const say = (at: number, by: string | undefined, why?: string) => {
      const mutant = work.mutants[at]
      if (mutant) onResult({ mutant, by, why })
    }
    const end = (at: number) => {
      next ??= at
      worker.terminate().catch(fail)
    }
    const clock = watch(worker, () => {
      say(trying.at, `${trying.test}, which did not end`)
      end(trying.at + 1)
    })
    // What an earlier mutant left behind may end the thread of a later one, which is then tried by itself.
    const broke = (why: string) => {
      const times = (failures.get(trying.at) ?? 0) + 1
      failures.set(trying.at, times)
      if (times > 1) say(trying.at, `${trying.test}, whose thread ended`, why)
      end(times > 1 ? trying.at + 1 : trying.at)
    }
    worker.on('error', error => broke(String(error)))
    worker.on('exit', () => {
      clock.stop()
      if (next === undefined) broke('It waits for what never comes')
      done(next ?? work.mutants.length)
    })
    worker.on('message', (told: Told) => {
      if (next !== undefined) return
      clock.restart()
      if ('done' in told) end(work.mutants.length)
      else if ('trying' in told) trying = { at: told.trying, test: told.test }
      else say(told.tried, told.by, told.why)
    })
  })
}

/** Calls when a thread has worked too long, or done nothing for long, since the clock was last started. */
function watch(worker: Worker, onStall: () => void): { restart(): void; stop(): void } {
  let cpu = process.cpuUsage()
  let loop = worker.performance.eventLoopUtilization()
  let idle = 0
  const timer = setInterval(() => {
    const { utilization } = worker.performance.eventLoopUtilization(loop)
    loop = worker.performance.eventLoopUtilization()
    // Before its first turn it is loading.
    idle = loop.active > 0 && utilization < 0.02 ? idle + 1 : 0
    const { user, system } = process.cpuUsage(cpu)
    if (idle < MOST_IDLE_POLLS && (user + system) / 1000 < MOST_CPU_MS) return
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
