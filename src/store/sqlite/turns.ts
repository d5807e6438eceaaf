import { DatabaseUnavailable } from '../unavailable.ts'

/** A queue of one: whoever takes a turn holds it until it is given back; the others wait in order. */
export class Turns {
  readonly #limitMs: number
  #last: Promise<void> = Promise.resolve()

  constructor(limitMs: number) {
    this.#limitMs = limitMs
  }

  /** Waits for the turn and gives the function that gives it back. Rejects after the limit, and then holds nothing. */
  async take(): Promise<() => void> {
    const { promise: mine, resolve: giveBack } = Promise.withResolvers<void>()
    const before = this.#last
    this.#last = before.then(() => mine)
    if (await this.#isInTime(before)) return giveBack
    void before.then(giveBack)
    throw new DatabaseUnavailable(`Cannot write to database: no turn within ${this.#limitMs} ms`)
  }

  #isInTime(before: Promise<void>): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const timer = setTimeout(resolve, this.#limitMs, false)
    void before.then(() => {
      clearTimeout(timer)
      resolve(true)
    })
    return promise
  }
}
