import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { measureGrowth } from '../../test/support/growth.ts'
import { type Constraint, groupConstraints, type Panel, uniteConstraints } from './access-filter.ts'
import { satisfies } from './check-access.ts'
import { getImpliedKeys, getQueryKey } from './index.ts'

const lab: Constraint = { patient: '1', query: [['category', 'lab']] }
const finalLab: Constraint = {
  patient: '1',
  query: [
    ['category', 'lab'],
    ['status', 'final'],
  ],
}

const makePanel = (patient: string): Panel => ({
  patients: new Set([patient]),
  organizations: [],
  careTeams: [],
})
const [north, south] = [makePanel('1'), makePanel('2')]
const filter = { query: lab.query ?? [] }

describe('uniteConstraints', () => {
  it('returns full access if one constraint is empty', () => {
    assert.equal(uniteConstraints([{ patient: '1' }, {}, { id: 'a' }]), 'everything')
    assert.deepEqual(uniteConstraints([]), [])
  })

  const KEPT: [name: string, constraints: Constraint[], kept: number[]][] = [
    ['different patients', [{ patient: '1' }, { patient: '2' }], [0, 1]],
    ['different ids', [{ id: 'a' }, { id: 'b' }], [0, 1]],
    ['different panels', [{ panel: makePanel('1') }, { panel: makePanel('2') }], [0, 1]],
    [
      'two panels, and a filter of one',
      [{ panel: north }, { panel: south }, { panel: north, ...filter }],
      [0, 1],
    ],
    ['a patient and an id', [{ patient: '1' }, { id: 'a' }], [0, 1]],
    ['an id, and the same for one patient', [{ id: 'a', patient: '1' }, { id: 'a' }], [1]],
    ['a patient, and a filter of that patient', [lab, { patient: '1' }], [1]],
    ['a patient, and a filter of another', [lab, { patient: '2' }], [0, 1]],
    ['a filter and a narrower one', [finalLab, lab], [1]],
    ['different values of a filter', [lab, { patient: '1', query: [['category', 'vital']] }], [0, 1]],
    ['the same value of different filters', [lab, { patient: '1', query: [['code', 'lab']] }], [0, 1]],
    ['a filter of all patients, and of one patient', [lab, { query: [['category', 'lab']] }], [1]],
    ['the same twice', [lab, { ...lab }], [0]],
    [
      'a patient alone, and that patient with others',
      [{ patient: '1', exclusive: true }, { patient: '1' }],
      [1],
    ],
  ]
  for (const [name, constraints, kept] of KEPT)
    it(`keeps the necessary constraints of ${name}, in either order`, () => {
      const expected = kept.map(at => constraints[at])
      assert.deepEqual(uniteConstraints(constraints), expected)
      const turned = uniteConstraints(constraints.toReversed())
      assert(turned !== 'everything')
      assert.deepEqual(
        new Set(turned.map(constraint => JSON.stringify(constraint))),
        new Set(expected.map(constraint => JSON.stringify(constraint))),
      )
    })
  it('takes time proportional to the number of constraints', () => {
    const constraints = (count: number): Constraint[] =>
      Array.from({ length: count }, (_, at) => ({ patient: '1', query: [['code', String(at)]] }))
    const grown = measureGrowth(count => uniteConstraints(constraints(count)), 100)
    assert.ok(grown < 8, `four times the constraints cost ${grown.toFixed(1)} times as much`)
  })
})

describe('groupConstraints', () => {
  const lab = [['category', 'lab']] as const
  const vital = [['category', 'vital']] as const
  const constraints: readonly Constraint[] = [
    { panel: north, query: lab },
    { panel: south, query: lab },
    { panel: north, query: vital },
    { panel: south, query: vital },
    { patient: '1' },
    { patient: '1', exclusive: true, query: lab },
  ]

  it('groups constraints that differ only in their queries, and never two panels', () => {
    assert.deepEqual(groupConstraints(constraints), [
      { subject: { panel: north }, queries: [lab, vital] },
      { subject: { panel: south }, queries: [lab, vital] },
      { subject: { patient: '1' }, queries: [[]] },
      { subject: { patient: '1', exclusive: true }, queries: [lab] },
    ])
  })

  it('groups the constraints of a filter once', () =>
    assert.equal(groupConstraints(constraints), groupConstraints(constraints)))
})

describe('satisfies', () => {
  it('reads the resource once, whatever the number of granular constraints', () => {
    const resource = {
      resourceType: 'Observation',
      subject: { reference: 'Patient/1' },
      code: { coding: Array.from({ length: 20 }, (_, at) => ({ system: 's', code: `c${at}` })) },
    }
    const filter = (count: number): Constraint[] =>
      Array.from({ length: count }, (_, at) => ({ patient: '1', query: [['code', `s|x${at}`]] }))
    const filters = new Map([1, 4, 148].map(count => [count, filter(count)]))
    const test = (count: number) => satisfies(resource, filters.get(count) ?? [], 'http://localhost/fhir')
    assert.equal(test(148), false)
    // Four times the constraints take less than four times as long, because the resource is read once.
    const grown = measureGrowth(count => {
      for (let round = 0; round < 50; round++) test(count)
    }, 1)
    assert.ok(grown < 2.5, `four constraints cost ${grown.toFixed(1)} times as much as one`)
  })
})

type Query = readonly (readonly [string, string])[]
const makeQuery = (count: number): Query =>
  Array.from({ length: count }, (_, at): readonly [string, string] => [`p${at}`, 'x'])

describe('getQueryKey', () => {
  it('depends neither on the order of the search parameters nor on repetition', () => {
    const query: Query = [...makeQuery(2)]
    assert.equal(getQueryKey(query), getQueryKey([...query, ...query].toReversed()))
    assert.notEqual(getQueryKey(query), getQueryKey(makeQuery(1)))
    assert.notEqual(getQueryKey([['a', 'b']]), getQueryKey([['b', 'a']]))
    assert.equal(getQueryKey(undefined), getQueryKey([]))
  })
})

describe('getImpliedKeys', () => {
  it('returns the key of each subset of the search parameters', () => {
    const query = makeQuery(2)
    const subsets = [[], query.slice(0, 1), query.slice(1), query].map(getQueryKey)
    assert.deepEqual(new Set(getImpliedKeys(query)), new Set(subsets))
    assert.equal(getImpliedKeys(query).length, 4)
  })

  it('returns every subset of six search parameters, and only the full set of seven', () => {
    assert.equal(getImpliedKeys(makeQuery(6)).length, 64)
    assert.deepEqual(getImpliedKeys(makeQuery(7)), [getQueryKey(makeQuery(7))])
  })
})
