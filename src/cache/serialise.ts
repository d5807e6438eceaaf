/** Runs work after all earlier work with one of its keys. */
export type Serialise = <T>(keys: readonly string[], work: () => Promise<T>) => Promise<T>

/** All keys are taken at once and in the order of the calls, so that no two calls wait for each other. */
export function createSerialise(): Serialise {
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
