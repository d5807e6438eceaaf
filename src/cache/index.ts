/**
 * Bounded caches for every module: a map that drops its least recently used entry, and values that are fetched from
 * elsewhere. It knows no protocol: the caller fetches, and says how long a value or a failure may be kept. It also
 * serializes work by key.
 */

/** A map with a limited number of entries. A new entry replaces the least recently used one. */
export class LruMap<Value> {
  readonly #entries = new Map<string, Value>()
  readonly #maxEntries: number

  constructor(maxEntries: number) {
    this.#maxEntries = maxEntries
  }

  get size(): number {
    return this.#entries.size
  }

  get(key: string): Value | undefined {
    const value = this.#entries.get(key)
    // The order matters only once the map is full.
    if (value !== undefined && this.#entries.size === this.#maxEntries) {
      this.#entries.delete(key)
      this.#entries.set(key, value)
    }
    return value
  }

  set(key: string, value: Value): void {
    this.#entries.delete(key)
    this.#entries.set(key, value)
    const [oldest] = this.#entries.keys()
    if (this.#entries.size > this.#maxEntries && oldest !== undefined) this.#entries.delete(oldest)
  }

  delete(key: string): void {
    this.#entries.delete(key)
  }

  clear(): void {
    this.#entries.clear()
  }
}

/** A value, and how long it is fresh, counted from the start of its fetch. A failure may be a value too. */
export interface Fetched<Value> {
  readonly value: Value
  readonly freshForMs: number
}

/** Times are in milliseconds since 1970. */
export interface Cached<Value> {
  readonly value: Value
  readonly fetchedAt: number
  readonly freshUntil: number
}

export interface CachedFetch<Value> {
  /** The cached value while it is fresh, otherwise a new one. */
  get(key: string): Value | Promise<Value>
  /** Fetches the value. Callers that ask while a fetch of the key is running share its result. */
  refresh(key: string): Promise<Value>
  /** The cached value, fresh or not. */
  peek(key: string): Cached<Value> | undefined
  /** Whether a fetch of the key is running. */
  isFetching(key: string): boolean
  /** Number of running fetches. */
  countFetches(): number
  forget(key: string): void
}

interface CachedFetchOptions<Value> {
  /**
   * Fetches a value. On a failure it may return the previous value, or a value that stands for the failure, with the
   * time until the next attempt. A rejection reaches every caller that waits, and leaves the cache as it is.
   */
  readonly fetch: (key: string, previous: Cached<Value> | undefined) => Promise<Fetched<Value>>
  readonly clock: () => number
  readonly maxEntries?: number
}

const MAX_ENTRIES = 1_000

/** Caches values that are fetched. There is at most one fetch of a key at a time. */
export function createCachedFetch<Value>(options: CachedFetchOptions<Value>): CachedFetch<Value> {
  const { fetch, clock, maxEntries = MAX_ENTRIES } = options
  const cached = new LruMap<Cached<Value>>(maxEntries)
  const running = new Map<string, Promise<Value>>()

  async function fetchValue(key: string): Promise<Value> {
    const fetchedAt = clock()
    const { value, freshForMs } = await fetch(key, cached.get(key))
    cached.set(key, { value, fetchedAt, freshUntil: fetchedAt + freshForMs })
    return value
  }

  function refresh(key: string): Promise<Value> {
    const fetching = running.get(key) ?? fetchValue(key).finally(() => running.delete(key))
    running.set(key, fetching)
    return fetching
  }

  return {
    get(key) {
      const found = cached.get(key)
      return found && clock() < found.freshUntil ? found.value : refresh(key)
    },
    refresh,
    peek: key => cached.get(key),
    isFetching: key => running.has(key),
    countFetches: () => running.size,
    forget: key => cached.delete(key),
  }
}

/** Runs work after all earlier work with one of its keys. */
export type Serialize = <T>(keys: readonly string[], work: () => Promise<T>) => Promise<T>

/** All keys are taken at once and in the order of the calls, so that no two calls wait for each other. */
export function createSerialize(): Serialize {
  const last = new Map<string, Promise<unknown>>()
  return async (keys, work) => {
    const earlier = keys.map(key => last.get(key))
    const running = Promise.all(earlier).then(work)
    const ended = running.catch(() => undefined)
    for (const key of keys) last.set(key, ended)
    try {
      return await running
    } finally {
      for (const key of keys) if (last.get(key) === ended) last.delete(key)
    }
  }
}

/** A copy of a text. A part of a text otherwise keeps all of it in memory. */
export function copyText(text: string): string {
  return Buffer.from(text).toString()
}
