import { setTimeout as pause } from 'node:timers/promises'
import { DatabaseUnavailable } from './unavailable.ts'

/** How long a write waits for its turn in this process and for other processes, together. */
export const WRITE_WAIT_MS = 3_500
const RETRY_MS = 1
const SQLITE_BUSY = 5

/** The time that a write may wait, from the moment when it is requested. */
export class WriteWait {
  readonly limitMs: number
  readonly #end: number

  constructor(limitMs: number) {
    this.limitMs = limitMs
    this.#end = performance.now() + limitMs
  }

  get leftMs(): number {
    return Math.max(this.#end - performance.now(), 0)
  }

  /** Retries while another process writes, without blocking this one. */
  async retryWhileBusy<T>(act: () => T): Promise<T> {
    for (;;) {
      try {
        return act()
      } catch (error) {
        if (!isBusy(error)) throw error
        if (this.leftMs === 0)
          throw new DatabaseUnavailable('Cannot write to database: another process holds it', {
            cause: error,
          })
        await pause(RETRY_MS)
      }
    }
  }
}

/** A queue: one caller holds the turn until it releases it; the others wait in order. */
export class Turns {
  readonly #waiting: (() => void)[] = []
  #isTaken = false

  /** Returns the function that releases the turn. Rejects after the limit. */
  async take(wait: WriteWait): Promise<() => void> {
    if (this.#isTaken) await this.#wait(wait)
    this.#isTaken = true
    return () => this.#passOn()
  }

  #passOn(): void {
    const next = this.#waiting.shift()
    if (next) next()
    else this.#isTaken = false
  }

  #wait({ leftMs, limitMs }: WriteWait): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const timer = setTimeout(() => {
      this.#waiting.splice(this.#waiting.indexOf(begin), 1)
      reject(new DatabaseUnavailable(`Cannot write to database: no turn within ${limitMs} ms`))
    }, leftMs)
    const begin = () => {
      clearTimeout(timer)
      resolve()
    }
    this.#waiting.push(begin)
    return promise
  }
}

export function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && Number(error.errcode) % 256 === SQLITE_BUSY
}
