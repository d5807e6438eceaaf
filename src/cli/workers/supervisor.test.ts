import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { computePause } from './supervisor.ts'

describe('computePause', () => {
  it('doubles the pause with every worker that ends soon after its start, up to ten seconds (START-8)', () => {
    assert.deepEqual([0, 1, 2, 3, 7, 8, 50].map(computePause), [0, 100, 200, 400, 6400, 10_000, 10_000])
  })
})
