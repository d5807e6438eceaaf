import { LruMap } from './lru-map.ts'

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

export interface CachedFetchOptions<Value> {
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
