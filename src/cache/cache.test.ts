import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createCachedFetch, type Fetched, LruMap } from './index.ts'

describe('LruMap', () => {
  it('drops the least recently used entry when it is full', () => {
    const map = new LruMap<number>(3)
    for (const [at, key] of ['a', 'b', 'c'].entries()) map.set(key, at)
    map.get('a')
    map.set('d', 3)
    assert.equal(map.size, 3)
    assert.deepEqual(
      ['a', 'b', 'c', 'd'].map(key => map.get(key)),
      [0, undefined, 2, 3],
    )
    map.set('a', 4)
    assert.deepEqual([map.size, map.get('a')], [3, 4])
  })

  it('does not grow when a key is looked up that it does not have', () => {
    const map = new LruMap<number>(2)
    map.set('a', 1)
    for (const key of ['x', 'y', 'z']) assert.equal(map.get(key), undefined)
    assert.equal(map.size, 1)
    map.set('b', 2)
    for (const key of ['x', 'y', 'z']) assert.equal(map.get(key), undefined)
    assert.deepEqual([map.size, map.get('a')], [2, 1])
  })

  it('deletes one entry or all', () => {
    const map = new LruMap<number>(3)
    for (const key of ['a', 'b', 'c']) map.set(key, 1)
    map.delete('b')
    assert.deepEqual([map.get('a'), map.get('b'), map.size], [1, undefined, 2])
    map.clear()
    assert.deepEqual([map.get('a'), map.size], [undefined, 0])
  })
})

/** A cache whose fetches the test answers, in the order in which they began. */
function openCache(options: { readonly maxEntries?: number } = {}) {
  const time = { now: 1_000 }
  const begun: { key: string; previous: number | undefined; end: PromiseWithResolvers<Fetched<number>> }[] =
    []
  const cache = createCachedFetch<number>({
    ...options,
    clock: () => time.now,
    fetch(key, previous) {
      const end = Promise.withResolvers<Fetched<number>>()
      begun.push({ key, previous: previous?.value, end })
      return end.promise
    },
  })
  const answer = (value: number, freshForMs: number) => begun.at(-1)?.end.resolve({ value, freshForMs })
  return { time, begun, cache, answer }
}

describe('createCachedFetch', () => {
  it('fetches a value once while it is fresh, and again from then on', async () => {
    const { time, begun, cache, answer } = openCache()
    const first = cache.get('k')
    answer(1, 100)
    assert.equal(await first, 1)
    time.now += 99
    assert.equal(cache.get('k'), 1)
    time.now += 1
    const second = cache.get('k')
    answer(2, 0)
    assert.equal(await second, 2)
    assert.equal(begun.length, 2)
    void cache.get('k')
    assert.equal(begun.length, 3, 'a value that is fresh for no time is not reused')
  })

  it('counts from the start of the fetch', async () => {
    const { time, cache, answer } = openCache()
    const value = cache.get('k')
    time.now += 60
    answer(1, 100)
    await value
    assert.deepEqual(cache.peek('k'), { value: 1, fetchedAt: 1_000, freshUntil: 1_100 })
  })

  it('runs one fetch of a key at a time, which all callers share', async () => {
    const { begun, cache, answer } = openCache()
    const values = [cache.get('k'), cache.refresh('k'), cache.get('k')]
    assert.deepEqual([begun.length, cache.isFetching('k'), cache.isFetching('l')], [1, true, false])
    void cache.get('l')
    assert.deepEqual([begun.length, cache.countFetches()], [2, 2])
    begun[0]?.end.resolve({ value: 1, freshForMs: 100 })
    assert.deepEqual(await Promise.all(values), [1, 1, 1])
    assert.deepEqual([cache.isFetching('k'), cache.countFetches()], [false, 1])
    answer(2, 0)
  })

  it('refreshes a fresh value on demand, and passes the previous one to the fetch', async () => {
    const { begun, cache, answer } = openCache()
    const first = cache.get('k')
    answer(1, 100)
    await first
    const second = cache.refresh('k')
    assert.deepEqual(
      begun.map(it => it.previous),
      [undefined, 1],
    )
    assert.equal(cache.peek('k')?.value, 1)
    answer(2, 100)
    assert.equal(await second, 2)
  })

  it('rejects every waiting caller when a fetch fails, keeps the previous value, and tries again', async () => {
    const { begun, cache, answer } = openCache()
    const first = cache.get('k')
    answer(1, 0)
    await first
    const failed = [cache.get('k'), cache.get('k')]
    begun.at(-1)?.end.reject(new Error('unreachable'))
    for (const one of failed) await assert.rejects(async () => one, /unreachable/)
    assert.deepEqual([cache.peek('k')?.value, cache.isFetching('k')], [1, false])
    const again = cache.get('k')
    answer(3, 0)
    assert.equal(await again, 3)
  })

  it('forgets a value', async () => {
    const { cache, answer, begun } = openCache()
    const first = cache.get('k')
    answer(1, 100)
    await first
    cache.forget('k')
    assert.equal(cache.peek('k'), undefined)
    void cache.get('k')
    assert.equal(begun.length, 2)
  })

  it('keeps a limited number of values', async () => {
    const { cache, answer } = openCache({ maxEntries: 2 })
    for (const key of ['a', 'b', 'c']) {
      const value = cache.get(key)
      answer(1, 100)
      await value
    }
    assert.deepEqual(
      ['a', 'b', 'c'].map(key => cache.peek(key)?.value),
      [undefined, 1, 1],
    )
  })
})
