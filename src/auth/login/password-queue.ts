/**
 * Waiting attempts by sender. Each sender has one turn before any has a second; the same applies to the senders within a
 * sender.
 */
class Lane {
  readonly #senders = new Map<string, Lane>()
  readonly #starts: (() => void)[] = []
  #size = 0

  get size(): number {
    return this.#size
  }

  add([sender, ...within]: readonly string[], start: () => void): void {
    this.#size += 1
    if (sender === undefined) {
      this.#starts.push(start)
      return
    }
    const lane = this.#senders.get(sender) ?? new Lane()
    this.#senders.set(sender, lane)
    lane.add(within, start)
  }

  takeNext(): (() => void) | undefined {
    if (this.#size === 0) return undefined
    this.#size -= 1
    const [next] = this.#senders
    if (!next) return this.#starts.shift()
    const [sender, lane] = next
    this.#senders.delete(sender)
    const start = lane.takeNext()
    if (lane.size > 0) this.#senders.set(sender, lane)
    return start
  }
}

/**
 * Limits the number of concurrent password comparisons, because each occupies a processor. Attempts with existing
 * usernames go first, so that a flood of made-up usernames does not block logins.
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

  /** Whether attempts that do not go first must be refused. */
  get isFull(): boolean {
    return this.#rest.size >= this.#longest
  }

  async run<Result>(
    { sender, first }: { readonly sender: readonly string[]; readonly first: boolean },
    work: () => Promise<Result>,
  ): Promise<Result> {
    if (this.#running >= this.#atOnce)
      await new Promise<void>(start => (first ? this.#first : this.#rest).add(sender, start))
    else this.#running += 1
    try {
      return await work()
    } finally {
      const next = this.#first.takeNext() ?? this.#rest.takeNext()
      if (next) next()
      else this.#running -= 1
    }
  }
}
