import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findEverythingProblem, readPostedParams } from './everything.ts'
import { failFor } from './reasons/reasons.ts'

const posted = (...parameter: unknown[]) => readPostedParams({ resourceType: 'Parameters', parameter })

describe('readPostedParams', () => {
  it('reads Parameters as URL parameters', () => {
    assert.deepEqual(posted({ name: '_type', valueCode: 'Condition' }, { name: '_count', valueInteger: 5 }), [
      ['_type', 'Condition'],
      ['_count', '5'],
    ])
    assert.deepEqual(readPostedParams({ resourceType: 'Parameters' }), [])
    assert.deepEqual(readPostedParams(undefined), [])
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
    it(`refuses ${JSON.stringify(body)} completely`, () => {
      assert.deepEqual(readPostedParams(body), failFor('body-not-parameters'))
    })
})

describe('findEverythingProblem', () => {
  it('accepts the parameters of R4', () => {
    const names = ['_since', '_type', '_count', '_format', '_pretty']
    assert.equal(
      findEverythingProblem(
        'Patient',
        names.map(name => [name, 'x']),
      ),
      undefined,
    )
    assert.equal(
      findEverythingProblem('Patient', [
        ['start', '2020'],
        ['end', '2020-05-01'],
      ]),
      undefined,
    )
  })

  it('names an unknown parameter', () => {
    const text = (type: 'Patient' | 'Encounter', name: string) =>
      findEverythingProblem(type, [
        ['_type', 'Condition'],
        [name, '2020'],
      ])
    const reason = 'everything-parameter-unknown'
    assert.deepEqual(
      text('Patient', 'name'),
      failFor(reason, { parameter: 'name', type: 'Patient', taken: 'start, end, _since, _type, _count' }),
    )
    assert.deepEqual(
      text('Encounter', 'start'),
      failFor(reason, { parameter: 'start', type: 'Encounter', taken: '_type, _count' }),
    )
  })

  it('accepts one start and one end, each a date', () => {
    for (const params of [
      [['start', 'soon']],
      [['end', '']],
      [
        ['start', '2020'],
        ['start', '2021'],
      ],
    ] as const)
      assert.deepEqual(findEverythingProblem('Patient', params), failFor('care-dates-malformed'))
  })
})
