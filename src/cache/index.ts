/**
 * Bounded caches for every module: a map that drops its least recently used entry, and values that are fetched from
 * elsewhere. It knows no protocol: the caller fetches, and says how long a value or a failure may be kept. It also
 * serialises work by key.
 */
export {
  type Cached,
  type CachedFetch,
  copyText,
  createCachedFetch,
  createSerialise,
  type Fetched,
  LruMap,
  type Serialise,
} from './cache.ts'
