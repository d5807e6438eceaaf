import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { measureGrowth } from '../../../../test/support/growth.ts'
import { isFailure } from '../../../core/index.ts'
import { type IncludeRule, limits, parseInclude, type Resource } from '../../../fhir/index.ts'
import { ParsedResource } from './check-page.ts'
import { findIncludes } from './includes.ts'

const baseUrl = 'http://fhir.test/fhir'

function ruleOf(name: string, value: string): IncludeRule {
  const rules = parseInclude(name, value, ['Observation'])
  assert(!isFailure(rules) && rules[0])
  const [rule] = rules
  return rule
}

/** Observations, each of which has the one before it as a member. */
function chainOf(length: number) {
  return Array.from({ length }, (_, at) => {
    const resource: Resource = {
      resourceType: 'Observation',
      id: `o${at}`,
      ...(at > 0 && { hasMember: [{ reference: `Observation/o${at - 1}` }] }),
    }
    return new ParsedResource(resource, JSON.stringify(resource), false)
  })
}

describe('connected', () => {
  const reverse = ruleOf('_revinclude:iterate', 'Observation:has-member')
  const forward = ruleOf('_include:iterate', 'Observation:has-member')

  it('follows a chain for as many rounds as the embedded server does', () => {
    const [first, ...rest] = chainOf(1_000)
    assert.ok(first)
    const ids = findIncludes([first], rest, [reverse], baseUrl).map(it => it.resource.id)
    assert.deepEqual(ids, ['o1', 'o2', 'o3', 'o4', 'o5', 'o6', 'o7', 'o8'])
    assert.equal(ids.length, limits.INCLUDE_ROUNDS)
    const [last, ...others] = chainOf(20).toReversed()
    assert.ok(last)
    assert.equal(findIncludes([last], others, [forward], baseUrl).length, limits.INCLUDE_ROUNDS)
  })

  it('follows one step without iterate', () => {
    const [first, ...rest] = chainOf(10)
    assert.ok(first)
    const once = ruleOf('_revinclude', 'Observation:has-member')
    assert.deepEqual(
      findIncludes([first], rest, [once], baseUrl).map(it => it.resource.id),
      ['o1'],
    )
  })

  it('takes time in proportion to the number of included resources', () => {
    const growth = measureGrowth(size => {
      const [first, ...rest] = chainOf(size)
      if (first) findIncludes([first], rest, [reverse], baseUrl)
    }, 100)
    assert.ok(growth < 8, `4 times the resources take ${growth.toFixed(1)} times as long`)
  })
})
