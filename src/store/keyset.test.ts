import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { cutPage, formatPosition, parseNumberedPosition, parsePosition } from './keyset.ts'

describe('parsePosition', () => {
  it('reads what formatPosition wrote', () => {
    for (const id of ['1', 'a.b-c', 'x'.repeat(100)])
      assert.deepEqual(parsePosition(formatPosition({ at: 1_700_000_000_000, id })), {
        at: 1_700_000_000_000,
        id,
      })
    assert.deepEqual(parseNumberedPosition(formatPosition({ at: 0, id: 12 })), { at: 0, id: 12 })
  })

  it('reads nothing else', () => {
    for (const text of [
      undefined,
      '',
      '1',
      '1.',
      '.a',
      '-1.a',
      '1e3.a',
      '1'.repeat(16),
      `1.${'x'.repeat(101)}`,
    ])
      assert.equal(parsePosition(text), undefined)
    for (const text of [undefined, '1.a', '1.-1', '1.1.1', `1.${'1'.repeat(16)}`])
      assert.equal(parseNumberedPosition(text), undefined)
  })
})

describe('cutPage', () => {
  it('names the last row if others follow', () => {
    assert.deepEqual(cutPage([1, 2, 3], 2), { shown: [1, 2], last: 2 })
    assert.deepEqual(cutPage([1, 2], 2), { shown: [1, 2], last: undefined })
  })
})
