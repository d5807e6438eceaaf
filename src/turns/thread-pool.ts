/** What may use libuv's thread pool, which has four threads (docs/limits.md). */
export const THREAD_POOL_LIMITS = {
  /** One thread stays free for files and the names of hosts. */
  atOnce: 3,
  waiting: 4_000,
} as const

/** Too much work waits. A server responds with 503. */
export class ThreadPoolFull extends Error {
  readonly statusCode = 503

  constructor() {
    super('Cannot start work: the queue of the thread pool is full')
  }
}

/** Runs a limited number of tasks at once. Further ones wait in order, up to a limit. */
export class TaskQueue {
  readonly #limits: Readonly<Record<keyof typeof THREAD_POOL_LIMITS, number>>
  readonly #waiting: (() => void)[] = []
  #running = 0

  constructor(limits: Readonly<Record<keyof typeof THREAD_POOL_LIMITS, number>>) {
    this.#limits = limits
  }

  /** Rejects with `ThreadPoolFull` if too many tasks wait. */
  async run<Result>(task: () => Promise<Result>): Promise<Result> {
    if (this.#running < this.#limits.atOnce) this.#running += 1
    else await this.#wait()
    try {
      return await task()
    } finally {
      const next = this.#waiting.shift()
      if (next) next()
      else this.#running -= 1
    }
  }

  #wait(): Promise<void> {
    if (this.#waiting.length >= this.#limits.waiting) throw new ThreadPoolFull()
    return new Promise(resolve => this.#waiting.push(resolve))
  }
}

const queue = new TaskQueue(THREAD_POOL_LIMITS)

/**
 * Runs CPU work in the thread pool: hashes of passwords, signatures, compression. Without this queue, a flood of it keeps
 * everything else of the pool waiting: writes to disk and the names of hosts, and with them every request.
 */
export function runInThreadPool<Result>(task: () => Promise<Result>): Promise<Result> {
  return queue.run(task)
}
