interface Entry<Value> {
  readonly value: Value
  /** Milliseconds since 1970. */
  readonly until: number
}

/**
 * Verified tokens, also beyond their end, which whoever asks must look at; the least recently used makes room. Only what was verified gets in, so junk
 * cannot fill it. By themselves, not by a digest: they are in memory as long as they are used anyway, and a digest for
 * every request would be most of what a token that was seen before costs.
 */
export class TokenCache<Value> {
  readonly #entries = new Map<string, Entry<Value>>()
  readonly #limit: number

  constructor(limit: number) {
    this.#limit = limit
  }

  get size(): number {
    return this.#entries.size
  }

  get(token: string): Entry<Value> | undefined {
    const entry = this.#entries.get(token)
    // Only a full one has to know which is the oldest.
    if (entry && this.#entries.size === this.#limit) {
      this.#entries.delete(token)
      this.#entries.set(token, entry)
    }
    return entry
  }

  set(token: string, value: Value, until: number): void {
    this.#entries.set(token, { value, until })
    const [oldest] = this.#entries.keys()
    if (this.#entries.size > this.#limit && oldest !== undefined) this.#entries.delete(oldest)
  }

  clear(): void {
    this.#entries.clear()
  }
}
