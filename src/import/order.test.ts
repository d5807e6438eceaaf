import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { orderByReference } from './order.ts'

const order = (references: readonly (readonly number[])[]) =>
  orderByReference(references).map(groups =>
    groups
      .map(({ members, isCircle }) => `${members.toSorted().join('+')}${isCircle ? ' circle' : ''}`)
      .toSorted(),
  )

describe('orderByReference', () => {
  it('puts each resource after those that it refers to', () => {
    assert.deepEqual(order([[2], [0], [], [2, 1]]), [['2'], ['0'], ['1'], ['3']])
  })

  it('puts independent resources into one step', () => {
    assert.deepEqual(order([[], [0], [0], []]), [
      ['0', '3'],
      ['1', '2'],
    ])
  })

  it('keeps circular references in one step, without resources that only refer to the circle', () => {
    assert.deepEqual(order([[1], [2, 3], [0], [], [0], [5]]), [['3', '5 circle'], ['0+1+2 circle'], ['4']])
  })

  it('follows a chain of any length', () => {
    const chain = Array.from({ length: 100_000 }, (_, at) => (at === 0 ? [] : [at - 1]))
    assert.equal(orderByReference(chain).length, 100_000)
  })
})
