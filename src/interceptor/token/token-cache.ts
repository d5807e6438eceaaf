import { hash } from 'node:crypto'

interface Entry<Value> {
  readonly value: Value
  /** Milliseconds since 1970. */
  readonly until: number
}

/**
 * Verified tokens by their SHA-256, each until it expires; the least recently used makes room. Only what was verified
 * gets in, so junk cannot fill it, and no token can be read out of it.
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
    const key = hash('sha256', token, 'base64url')
    const entry = this.#entries.get(key)
    // Only a full one has to know which is the oldest.
    if (entry && this.#entries.size === this.#limit) {
      this.#entries.delete(key)
      this.#entries.set(key, entry)
    }
    return entry
  }

  set(token: string, value: Value, until: number): void {
    this.#entries.set(hash('sha256', token, 'base64url'), { value, until })
    const [oldest] = this.#entries.keys()
    if (this.#entries.size > this.#limit && oldest !== undefined) this.#entries.delete(oldest)
  }

  delete(token: string): void {
    this.#entries.delete(hash('sha256', token, 'base64url'))
  }

  clear(): void {
    this.#entries.clear()
  }
}
