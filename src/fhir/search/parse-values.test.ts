import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { escapeSearchValue, split, unescapeValue } from './parse-values.ts'

describe('split', () => {
  it('splits at separators that are not escaped', () => {
    assert.deepEqual(split('a,b', ','), ['a', 'b'])
    assert.deepEqual(split('a\\,b,c', ','), ['a\\,b', 'c'])
    assert.deepEqual(split('a\\\\,b', ','), ['a\\\\', 'b'])
    assert.deepEqual(split(',', ','), ['', ''])
    assert.deepEqual(split('a\\', ','), ['a\\'])
  })
})

describe('escapeSearchValue', () => {
  it('escapes any text into one literal value', () => {
    fc.assert(
      fc.property(
        fc.string(),
        fc.constantFrom(',' as const, '|' as const, '$' as const),
        (text, separator) => {
          const parts = split(escapeSearchValue(text), separator)
          assert.deepEqual(parts.map(unescapeValue), [text])
        },
      ),
    )
  })
})

describe('unescapeValue', () => {
  it('keeps a backslash that escapes nothing', () => {
    assert.equal(unescapeValue('a\\b\\,c'), 'a\\b,c')
  })
})
