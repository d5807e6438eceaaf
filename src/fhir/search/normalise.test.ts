import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { normalise } from './normalise.ts'

describe('normalise', () => {
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
    it(`folds ${JSON.stringify(text)}`, () => assert.equal(normalise(text), expected))
  }

  it('is idempotent', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), text =>
        assert.equal(normalise(normalise(text)), normalise(text)),
      ),
    )
  })
})
