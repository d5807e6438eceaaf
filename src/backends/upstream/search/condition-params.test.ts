import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Constraint, Panel } from '../../../smart/index.ts'
import { buildExactParams, createSendable } from './condition-params.ts'

const panel: Panel = { patients: new Set(), organizations: ['north'], careTeams: [] }
const lab: Constraint['query'] = [['category', 'lab']]
const a: Constraint = { patient: 'a' }
const b: Constraint = { patient: 'b' }

describe('createSendable', () => {
  const isSendable = createSendable('Observation', [
    ['date:missing', 'false'],
    ['status', 'final'],
  ])
  const dated = createSendable('Observation', [['status', 'final']])

  it('sends clauses that every server reads in the same way', () => {
    for (const param of [
      ['status', 'final'],
      ['category', 'a,b'],
      ['patient', 'Patient/a'],
      ['date', '2020-02-03'],
      ['date', 'ge2020-02-03T10:00:00Z'],
    ] as const)
      assert(dated(param), param.join('='))
  })

  it('sends no modifiers, chains, numbers and quantities', () => {
    for (const name of ['status:not', 'patient.name', 'patient:Patient.name', 'value-quantity'])
      assert(!dated([name, '2020-02-03']), name)
    assert(!createSendable('RiskAssessment', [])(['probability', '1']))
  })

  it('sends no date without a day, no list of dates, and none that the search names too', () => {
    for (const value of [
      '2020',
      '2020-02',
      'ge2020-02',
      '2020-02-03,2021-02-03',
      'x2020-02-03',
      '20200-02-03',
    ])
      assert(!dated(['date', value]), value)
    assert(!isSendable(['date', '2020-02-03']))
    assert(isSendable(['status', 'final']))
  })
})

describe('buildExactParams', () => {
  it('expresses a limit completely or not at all', () => {
    assert.deepEqual(buildExactParams('Condition', 'everything'), [])
    assert.deepEqual(buildExactParams('Condition', [a]), [['patient', 'Patient/a']])
    assert.deepEqual(buildExactParams('Observation', [{ ...a, query: lab }]), [
      ['patient', 'Patient/a'],
      ['category', 'lab'],
    ])
    assert.deepEqual(buildExactParams('Condition', [a, b]), [['patient', 'Patient/a,Patient/b']])
    assert.deepEqual(buildExactParams('Observation', [{ query: lab }]), [['category', 'lab']])
    assert.deepEqual(buildExactParams('Practitioner', [{ id: 'p' }]), [['_id', 'p']])
    for (const [type, filter] of [
      ['Condition', []],
      ['Condition', [a, { ...b, query: lab }]],
      ['Condition', [{ panel }]],
      ['Condition', [a, { ...a, panel }]],
      ['Binary', [a]],
    ] as const)
      assert.equal(buildExactParams(type, filter), undefined)
  })

  it('expresses at most 300 values', () => {
    const to = (count: number) => [
      { patient: '1', query: [['code', Array(count).fill('x').join(',')] as const] },
    ]
    assert.equal(buildExactParams('Observation', to(300))?.length, 2)
    assert.equal(buildExactParams('Observation', to(301)), undefined)
  })
})
