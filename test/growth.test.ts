/**
 * The time of every parser, validation rule, patch and decision grows no faster than its input. The inputs are long in
 * each dimension alone, and in pairs of dimensions; they are doubled until they are as long as a request may be. What is
 * tested comes from the code: a new export, rule or operation without inputs fails.
 *
 * `TEST_THOROUGH=1 npm test -- test/growth.test.ts` tries all pairs, up to the limits of a request.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findJsonExcess, parseExact, splitBundle } from '../src/fhir/json.ts'
import { primitives } from '../src/fhir/validate/primitives.ts'
import { validate } from '../src/fhir/validate/validate.ts'
import { type Family, findExcess } from './growth/measure.ts'
import { NESTED_FAMILIES, RULE_FAMILIES } from './growth/resources.ts'
import { JSON_TEXTS, NARRATIVES, TEXTS } from './growth/texts.ts'

function checkTexts(
  name: string,
  families: readonly Family<string>[],
  work: (text: string) => unknown,
): void {
  it(`takes time in proportion: ${name}`, () => {
    for (const family of families) {
      const excess = findExcess(size => {
        const text = family.make(size)
        return { characters: text.length, run: () => tryTo(() => work(text)) }
      }, family.most)
      assert.equal(excess, undefined, family.name)
    }
  })
}

/** A parser may throw. */
function tryTo(work: () => unknown): unknown {
  try {
    return work()
  } catch {
    return undefined
  }
}

describe('parsers', () => {
  checkTexts('parseExact', JSON_TEXTS, parseExact)
  checkTexts('findJsonExcess', JSON_TEXTS, text => findJsonExcess(text))
  checkTexts('splitBundle', JSON_TEXTS, text => splitBundle(text))
})

describe('validation', () => {
  for (const [name, check] of primitives) checkTexts(name, name === 'xhtml' ? NARRATIVES : TEXTS, check)

  it('takes time in proportion: rules', () => {
    for (const family of [...RULE_FAMILIES, ...NESTED_FAMILIES]) {
      const excess = findExcess(size => {
        const resource = family.make(size)
        return { characters: JSON.stringify(resource).length, run: () => validate(resource, { warns: true }) }
      })
      assert.equal(excess, undefined, family.name)
    }
  })
})
