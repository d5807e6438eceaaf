import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { everythingProblem, postedParams } from './everything.ts'
import { fail } from './failure.ts'

const posted = (...parameter: unknown[]) => postedParams({ resourceType: 'Parameters', parameter })

describe('postedParams', () => {
  it('reads Parameters as an address would say them', () => {
    assert.deepEqual(posted({ name: '_type', valueCode: 'Condition' }, { name: '_count', valueInteger: 5 }), [
      ['_type', 'Condition'],
      ['_count', '5'],
    ])
    assert.deepEqual(postedParams({ resourceType: 'Parameters' }), [])
    assert.deepEqual(postedParams(undefined), [])
  })

  for (const body of [
    null,
    'x',
    [],
    {},
    { resourceType: 'Patient' },
    { resourceType: 'Parameters', parameter: { name: '_type', valueCode: 'Condition' } },
    ...[
      'x',
      null,
      {},
      { name: '_type' },
      { valueCode: 'Condition' },
      { name: 1, valueCode: 'Condition' },
      { name: '_type', valueCode: ['Condition'] },
      { name: '_type', valueBoolean: true },
      { name: '_type', resource: 'Condition' },
      { name: '_type', myvalueCode: 'Condition' },
      { name: '_type', valuecode: 'Condition' },
      { name: '_type', valueCode: 'Condition', valueString: 'Observation' },
      { name: '_type', part: [{ name: '_type', valueCode: 'Condition' }] },
    ].map(it => ({ resourceType: 'Parameters', parameter: [{ name: '_count', valueInteger: 5 }, it] })),
  ])
    it(`refuses ${JSON.stringify(body)} whole`, () => {
      assert.deepEqual(
        postedParams(body),
        fail({
          problem: 'malformed-body',
          text: 'Cannot read body: expected Parameters with a value each',
        }),
      )
    })
})

describe('everythingProblem', () => {
  it('has nothing against the parameters of R4', () => {
    const names = ['_since', '_type', '_count', '_format', '_pretty']
    assert.equal(everythingProblem(names.map(name => [name, 'x'])), undefined)
  })

  it('names what is not taken', () => {
    const problem = everythingProblem([
      ['_type', 'Condition'],
      ['start', '2020'],
    ])
    assert.deepEqual(
      problem,
      fail({
        problem: 'bad-search',
        code: 'not-supported',
        text: 'Cannot use start with $everything: it takes _since, _type and _count',
      }),
    )
  })
})
