import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { TokenCache } from './token-cache.ts'

describe('TokenCache', () => {
  it('keeps at most so many, and lets the least recently used go', () => {
    const cache = new TokenCache<number>(3)
    for (const [at, token] of ['a', 'b', 'c'].entries()) cache.set(token, at, 0)
    cache.get('a')
    cache.set('d', 3, 0)
    assert.equal(cache.size, 3)
    assert.deepEqual(
      ['a', 'b', 'c', 'd'].map(token => cache.get(token)?.value),
      [0, undefined, 2, 3],
    )
  })

  it('is not filled by what is only asked for', () => {
    const cache = new TokenCache<number>(2)
    cache.set('a', 1, 0)
    for (const token of ['x', 'y', 'z']) assert.equal(cache.get(token), undefined)
    assert.equal(cache.size, 1)
    cache.set('b', 2, 0)
    for (const token of ['x', 'y', 'z']) assert.equal(cache.get(token), undefined)
    assert.deepEqual([cache.size, cache.get('a')?.value], [2, 1])
  })

  it('forgets all', () => {
    const cache = new TokenCache<number>(3)
    cache.set('a', 1, 0)
    cache.set('b', 2, 0)
    cache.clear()
    assert.equal(cache.get('a'), undefined)
    assert.equal(cache.size, 0)
  })
})
