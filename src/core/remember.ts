/** The value of a key in a cache. It is computed and stored if the cache does not have it. */
export function remember<Key, Value>(
  cache: { get(key: Key): Value | undefined; set(key: Key, value: Value): unknown },
  key: Key,
  compute: (key: Key) => Value,
): Value {
  const known = cache.get(key)
  if (known !== undefined) return known
  const value = compute(key)
  cache.set(key, value)
  return value
}
