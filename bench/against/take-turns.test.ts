import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { takeTurns } from './take-turns.ts'

describe('takeTurns', () => {
  it('alternates which tree is first, and ends after five turns if the ratios agree', async () => {
    const order: string[] = []
    const measure = (name: string, value: number) => async () => {
      order.push(name)
      return new Map([['code', value]])
    }
    const [code] = await takeTurns(measure('before', 100), measure('now', 120))
    assert.equal(order.join(' '), 'before now now before before now now before before now')
    assert.deepEqual([code?.ratio, code?.turns], [1.2, 5])
  })

  it('takes more turns while the ratios differ, and no more than eleven', async () => {
    let turn = 0
    const [code] = await takeTurns(
      async () => new Map([['code', 100]]),
      async () => new Map([['code', turn++ % 2 === 0 ? 90 : 110]]),
    )
    assert.equal(code?.turns, 11)
    turn = 0
    const [settled] = await takeTurns(
      async () => new Map([['code', 100]]),
      async () => new Map([['code', turn++ === 0 ? 200 : 100]]),
    )
    assert.deepEqual([settled?.turns, settled?.interval], [8, [1, 1]])
  })
})
