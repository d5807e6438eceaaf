import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { measureGrowth } from '../../../test/support/growth.ts'
import { escapeSearchValue, normalize, split, unescapeValue } from './values.ts'

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

describe('normalize', () => {
  it('takes time that is linear in the number of combining marks (LIMIT-7)', () => {
    const grown = measureGrowth(marks => normalize(`a${'\u0301\u0323'.repeat(marks / 2)}`), 240)
    assert.ok(grown < 8, `${grown} times as long`)
  })

  const cases: readonly (readonly [string, string])[] = [
    ['Núñez', 'nunez'],
    ['NÚÑEZ', 'nunez'],
    ['Nu\u0301n\u0303ez', 'nunez'],
    ['Müller-Lüdenscheidt', 'muller-ludenscheidt'],
    ['Weiß', 'weiss'],
    ['Sørensen', 'sorensen'],
    ['Łukasz', 'lukasz'],
    ['Ægir', 'aegir'],
    ['İpek', 'ipek'],
    ["O'Brien", "o'brien"],
    ['  Smith,   John ', 'smith john'],
    ['王小明', '王小明'],
    ['Ａｎｎａ', 'anna'],
  ]
  for (const [text, expected] of cases) {
    it(`folds ${JSON.stringify(text)}`, () => assert.equal(normalize(text), expected))
  }

  it('is idempotent', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), text =>
        assert.equal(normalize(normalize(text)), normalize(text)),
      ),
    )
  })
})
