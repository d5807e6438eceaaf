import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createRandom } from './random.ts'

const thousand = Array.from({ length: 1000 })

describe('createRandom', () => {
  it('gives the same numbers for the same seed, and others for another', () => {
    const draw = (seed: string) => Array.from({ length: 20 }, createRandom(seed).next)
    assert.deepEqual(draw('a'), draw('a'))
    assert.notDeepEqual(draw('a'), draw('b'))
    assert.notDeepEqual(draw('person/1'), draw('person/11'))
  })

  it('stays from 0 to below 1, evenly', () => {
    const { next } = createRandom('even')
    const numbers = thousand.map(next)
    assert.ok(numbers.every(it => it >= 0 && it < 1))
    const mean = numbers.reduce((sum, it) => sum + it, 0) / numbers.length
    assert.ok(Math.abs(mean - 0.5) < 0.05, String(mean))
  })

  it('gives whole numbers with both ends', () => {
    const { int } = createRandom('int')
    assert.deepEqual([...new Set(thousand.map(() => int(2, 5)))].sort(), [2, 3, 4, 5])
  })

  it('stays within three spreads of the middle, half on each side', () => {
    const { around } = createRandom('around')
    const numbers = thousand.map(() => around(100, 10))
    assert.ok(numbers.every(it => it >= 70 && it <= 130))
    const below = numbers.filter(it => it < 100).length
    assert.ok(below > 430 && below < 570, String(below))
  })

  it('picks and shuffles without losing anything', () => {
    const { pick, shuffle } = createRandom('pick')
    assert.deepEqual([...new Set(thousand.map(() => pick(['a', 'b', 'c'])))].sort(), ['a', 'b', 'c'])
    assert.deepEqual([...shuffle([1, 2, 3, 4, 5, 6])].sort(), [1, 2, 3, 4, 5, 6])
  })
})
