/** Attempts that wait for their turn, by whoever sends them: each sender has one turn before any has a second. */
class Lane {
  readonly #waiting = new Map<string, (() => void)[]>()
  #size = 0

  get size(): number {
    return this.#size
  }

  add(sender: string, start: () => void): void {
    const own = this.#waiting.get(sender)
    if (own) own.push(start)
    else this.#waiting.set(sender, [start])
    this.#size += 1
  }

  takeNext(): (() => void) | undefined {
    const [next] = this.#waiting
    if (!next) return undefined
    const [sender, [start, ...others]] = next
    this.#waiting.delete(sender)
    if (others.length > 0) this.#waiting.set(sender, others)
    this.#size -= 1
    return start
  }
}

/**
 * Lets few passwords be compared at the same time, since each takes a processor for a moment. What may be right goes
 * first: whoever floods the server with made-up usernames keeps nobody from logging in.
 */
export class PasswordQueue {
  readonly #first = new Lane()
  readonly #rest = new Lane()
  readonly #atOnce: number
  readonly #longest: number
  #running = 0

  constructor({ atOnce, longest }: { readonly atOnce: number; readonly longest: number }) {
    this.#atOnce = atOnce
    this.#longest = longest
  }

  /** Whether those who do not go first have to be refused. */
  get isFull(): boolean {
    return this.#rest.size >= this.#longest
  }

  /** Does the work when it is the sender's turn. */
  async run<Result>(
    { sender, first }: { readonly sender: string; readonly first: boolean },
    work: () => Promise<Result>,
  ): Promise<Result> {
    if (this.#running >= this.#atOnce)
      await new Promise<void>(start => (first ? this.#first : this.#rest).add(sender, start))
    else this.#running += 1
    try {
      return await work()
    } finally {
      // The place goes to the next one, or is free.
      const next = this.#first.takeNext() ?? this.#rest.takeNext()
      if (next) next()
      else this.#running -= 1
    }
  }
}
