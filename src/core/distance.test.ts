import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { computeDistance } from './index.ts'

describe('computeDistance', () => {
  const cases: readonly (readonly [a: string, b: string, distance: number])[] = [
    ['', '', 0],
    ['', 'abc', 3],
    ['alba', 'alba', 0],
    ['alba', 'alban', 1],
    ['alba', 'elba', 1],
    ['alba', 'abla', 1],
    ['kitten', 'sitting', 3],
  ]
  for (const [a, b, distance] of cases)
    it(`is ${distance} between "${a}" and "${b}"`, () => {
      assert.equal(computeDistance(a, b), distance)
      assert.equal(computeDistance(b, a), distance)
    })
})
