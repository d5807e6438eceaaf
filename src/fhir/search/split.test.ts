import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { escapeSearchValue, split, unescaped } from './split.ts'

describe('split', () => {
  it('parts at separators that are not escaped', () => {
    assert.deepEqual(split('a,b', ','), ['a', 'b'])
    assert.deepEqual(split('a\\,b,c', ','), ['a\\,b', 'c'])
    assert.deepEqual(split('a\\\\,b', ','), ['a\\\\', 'b'])
    assert.deepEqual(split(',', ','), ['', ''])
    assert.deepEqual(split('a\\', ','), ['a\\'])
  })
})

describe('escapeSearchValue', () => {
  it('makes any text one value that stands for itself', () => {
    fc.assert(
      fc.property(
        fc.string(),
        fc.constantFrom(',' as const, '|' as const, '$' as const),
        (text, separator) => {
          const parts = split(escapeSearchValue(text), separator)
          assert.deepEqual(parts.map(unescaped), [text])
        },
      ),
    )
  })
})

describe('unescaped', () => {
  it('keeps a backslash that escapes nothing', () => {
    assert.equal(unescaped('a\\b\\,c'), 'a\\b,c')
  })
})
