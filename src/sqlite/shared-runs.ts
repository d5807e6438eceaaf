/** Runs the same work for many callers. Each needs a run that starts after its call: calls during a run share the next. */
export class SharedRuns {
  readonly #work: () => Promise<void>
  #running: Promise<void> = Promise.resolve()
  #next: Promise<void> | undefined

  constructor(work: () => Promise<void>) {
    this.#work = work
  }

  run(): Promise<void> {
    this.#next ??= this.#running.catch(() => {}).then(() => this.#start())
    return this.#next
  }

  /** Resolves after the requested runs. */
  async finish(): Promise<void> {
    await this.#next?.catch(() => {})
    await this.#running.catch(() => {})
  }

  #start(): Promise<void> {
    this.#next = undefined
    this.#running = this.#work()
    return this.#running
  }
}
