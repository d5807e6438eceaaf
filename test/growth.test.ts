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
import { CALLED, INPUTS, listFunctions, onTexts, onValues } from './growth/exports.ts'
import { type Family, findExcess, findLongWork, type Job } from './growth/measure.ts'
import { NESTED_FAMILIES, RULE_FAMILIES } from './growth/resources.ts'
import { JSON_TEXTS, NARRATIVES, TEXTS } from './growth/texts.ts'
import { IS_THOROUGH } from './support/thorough.ts'

/** So many characters, or items, in one dimension; eight times as many where the first look is not clear. */
const CHARACTERS = IS_THOROUGH ? 32_768 : 8_192
const ITEMS = IS_THOROUGH ? 4_096 : 2_048
const ELEMENTS = 2_048

/** `whole`: the size of a request; work on it has no pause. */
function check(name: string, families: readonly Family<Job>[], size: number, whole?: number): void {
  it(`takes time in proportion: ${name}`, () => {
    for (const family of families) {
      const makeJob = (grown: number) => {
        const { characters, run } = family.make(grown)
        return { characters, run: () => tryTo(run) }
      }
      assert.equal(findExcess(makeJob, size), undefined, family.name)
      if (whole !== undefined) assert.equal(findLongWork(makeJob, whole), undefined, family.name)
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
  check('parseExact', onTexts(JSON_TEXTS, parseExact), ITEMS)
  check(
    'findJsonExcess',
    onTexts(JSON_TEXTS, text => findJsonExcess(text)),
    ITEMS,
  )
  check(
    'splitBundle',
    onTexts(JSON_TEXTS, text => splitBundle(text)),
    ITEMS,
  )
})

describe('patches and decisions', () => {
  it('have inputs', async () => {
    const functions = await listFunctions()
    assert.deepEqual(
      functions.filter(name => !(name in INPUTS) && !CALLED.has(name)),
      [],
    )
    assert.deepEqual(
      [...Object.keys(INPUTS), ...CALLED].filter(name => !functions.includes(name)),
      [],
    )
  })
  for (const [name, families] of Object.entries(INPUTS)) {
    const some = IS_THOROUGH ? families : families.filter((_, at) => at % 4 === 0)
    check(name, some, ELEMENTS, 8 * ELEMENTS)
  }
})

describe('validation', () => {
  for (const [name, checkValue] of primitives)
    check(
      name,
      onTexts(name === 'xhtml' ? NARRATIVES : TEXTS, checkValue),
      name === 'xhtml' ? ITEMS : CHARACTERS,
    )
  check(
    'rules',
    onValues([...RULE_FAMILIES, ...NESTED_FAMILIES], resource => validate(resource, { warns: true })),
    ELEMENTS,
  )
})
