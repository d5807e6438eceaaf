/**
 * The time of every parser, validation rule, patch and decision grows no faster than its input. The inputs are long in
 * each dimension alone, and in pairs of dimensions. What is tested comes from the code: a new export, rule or operation
 * without inputs fails.
 *
 * `TEST_THOROUGH=1 npm test -- test/growth.test.ts` tries all rules, more pairs and larger inputs.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findJsonExcess, parseExact, splitBundle } from '../src/fhir/json.ts'
import { primitives } from '../src/fhir/validate/primitives.ts'
import { validate } from '../src/fhir/validate/validate.ts'
import { type Family, findExcess } from './growth/measure.ts'
import { NESTED_FAMILIES, RULE_FAMILIES } from './growth/resources.ts'
import { JSON_TEXTS, NARRATIVES, TEXTS } from './growth/texts.ts'
import { IS_THOROUGH } from './support/thorough.ts'

/** So many characters, or items, in one dimension; eight times as many where the first look is not clear. */
const CHARACTERS = IS_THOROUGH ? 32_768 : 8_192
const ITEMS = IS_THOROUGH ? 4_096 : 2_048
const ELEMENTS = 2_048

function check<T>(
  name: string,
  families: readonly Family<T>[],
  size: number,
  work: (input: T) => unknown,
  count: (input: T) => number = input => String(input).length,
): void {
  it(`takes time in proportion: ${name}`, () => {
    for (const family of families) {
      const makeJob = (grown: number) => {
        const input = family.make(grown)
        return { characters: count(input), run: () => tryTo(() => work(input)) }
      }
      assert.equal(findExcess(makeJob, size), undefined, family.name)
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
  check('parseExact', JSON_TEXTS, ITEMS, parseExact)
  check('findJsonExcess', JSON_TEXTS, ITEMS, text => findJsonExcess(text))
  check('splitBundle', JSON_TEXTS, ITEMS, text => splitBundle(text))
})

describe('validation', () => {
  for (const [name, checkValue] of primitives)
    check(name, name === 'xhtml' ? NARRATIVES : TEXTS, name === 'xhtml' ? ITEMS : CHARACTERS, checkValue)
  check(
    'rules',
    [...RULE_FAMILIES, ...NESTED_FAMILIES],
    ELEMENTS,
    resource => validate(resource, { warns: true }),
    resource => JSON.stringify(resource).length,
  )
})
