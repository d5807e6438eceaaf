import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseInclude } from '../../../fhir/index.ts'
import type { Access, AccessFilter, Constraint, Panel } from '../../../smart/index.ts'
import {
  buildExactParams,
  createSendable,
  isUnlimited,
  listMembershipParameters,
  type Narrowing,
  narrow,
  narrowIncludes,
} from './narrow.ts'

const panel: Panel = { patients: new Set(), organizations: ['north'], careTeams: [] }
const lab: Constraint['query'] = [['category', 'lab']]
const vital: Constraint['query'] = [['category', 'vital']]
const a: Constraint = { patient: 'a' }
const b: Constraint = { patient: 'b' }

/** As `path?name=value&…`, with a star if the parameters do not express the whole limit. */
function sent(
  type: string,
  filter: AccessFilter,
  narrowing: Narrowing = 'parameter',
  compartment?: string,
): string {
  const { path, params, isExact } = narrow(type, filter, narrowing, { compartment })
  return `${path}?${params.map(pair => pair.join('=')).join('&')}${isExact ? '' : ' *'}`
}

describe('a limited search', () => {
  const table: readonly (readonly [string, AccessFilter, string, string])[] = [
    ['Condition', 'everything', '/Condition?', '/Condition?'],
    ['Condition', [a], '/Condition?patient=Patient/a', '/Patient/a/Condition?'],
    ['Condition', [a, b], '/Condition?patient=Patient/a,Patient/b', '/Condition?patient=Patient/a,Patient/b'],
    ['Condition', [a, { ...a, exclusive: true }], '/Condition?patient=Patient/a', '/Patient/a/Condition?'],
    ['Patient', [a], '/Patient?_id=a', '/Patient?_id=a'],
    ['Patient', [a, b], '/Patient?_id=a,b', '/Patient?_id=a,b'],
    ['Device', [a], '/Device?patient=Patient/a', '/Device?patient=Patient/a'],
    ['Binary', [a], '/Binary? *', '/Binary? *'],
    ['Group', [a], '/Group? *', '/Group? *'],
    ['Task', [a], '/Task?patient=Patient/a', '/Task?patient=Patient/a'],
    ['AdverseEvent', [a], '/AdverseEvent?subject=Patient/a', '/Patient/a/AdverseEvent?'],
    // It has a parameter `patient`, and is in no compartment.
    ['Contract', [a], '/Contract? *', '/Patient/a/Contract?'],
    ['Condition', [], '/Condition? *', '/Condition? *'],
    ['Practitioner', [{ id: 'p' }, a], '/Practitioner? *', '/Practitioner? *'],
    ['Schedule', [a], '/Schedule?actor=Patient/a', '/Patient/a/Schedule?'],
    ['Account', [a], '/Account?patient=Patient/a', '/Patient/a/Account?'],
    ['Communication', [a], '/Communication?patient=Patient/a', '/Patient/a/Communication?'],
    [
      'Observation',
      [{ ...a, query: lab }],
      '/Observation?patient=Patient/a&category=lab',
      '/Patient/a/Observation?category=lab',
    ],
    [
      'Observation',
      ['a', 'b'].map(patient => ({ patient, query: [...lab] })),
      '/Observation?patient=Patient/a,Patient/b&category=lab',
      '/Observation?patient=Patient/a,Patient/b&category=lab',
    ],
    [
      'Observation',
      [
        { ...a, query: lab },
        { ...a, query: vital },
      ],
      '/Observation?patient=Patient/a *',
      '/Patient/a/Observation? *',
    ],
    ['Observation', [{ ...a, query: lab }, b], '/Observation?patient=Patient/a,Patient/b *', ''],
    ['Observation', [{ query: lab }], '/Observation?category=lab', '/Observation?category=lab'],
    ['Observation', [a, { query: lab }], '/Observation? *', '/Observation? *'],
    ['Practitioner', [{ id: 'p' }], '/Practitioner?_id=p', '/Practitioner?_id=p'],
    ['Practitioner', [{ id: 'p' }, { id: 'q' }], '/Practitioner?_id=p,q', '/Practitioner?_id=p,q'],
    ['Practitioner', [{ id: 'p' }, { query: [] }], '/Practitioner? *', '/Practitioner? *'],
    ['Patient', [{ id: 'a' }, { id: 'b' }], '/Patient? *', '/Patient? *'],
    ['Condition', [{ panel }], '/Condition? *', '/Condition? *'],
    ['Condition', [{ panel, query: lab }], '/Condition?category=lab *', '/Condition?category=lab *'],
    ['Condition', [a, { panel }], '/Condition? *', '/Condition? *'],
  ]
  for (const [type, filter, byParameter, byPath] of table)
    it(`is sent as ${byParameter}`, () => {
      assert.equal(sent(type, filter), byParameter)
      if (byPath !== '') assert.equal(sent(type, filter, 'compartment'), byPath)
    })

  it('in a compartment is limited to the compartment and the grant', () => {
    assert.equal(sent('Condition', [a], 'compartment', 'a'), '/Patient/a/Condition?')
    assert.equal(sent('Condition', [b], 'compartment', 'a'), '/Patient/a/Condition?patient=Patient/b')
    assert.equal(
      sent('Condition', [a, b], 'compartment', 'a'),
      '/Patient/a/Condition?patient=Patient/a,Patient/b',
    )
    assert.equal(sent('Condition', 'everything', 'compartment', 'a'), '/Patient/a/Condition?')
    assert.equal(sent('Condition', [{ panel }], 'compartment', 'a'), '/Patient/a/Condition? *')
    assert.equal(sent('Condition', [b], 'parameter', 'a'), '/Condition?patient=Patient/a&patient=Patient/b')
    assert.equal(sent('Condition', 'everything', 'parameter', 'a'), '/Condition?patient=Patient/a')
    assert.equal(sent('Device', [b], 'compartment', 'a'), '/Device?patient=Patient/a&patient=Patient/b')
  })
})

describe('a limit to many values', () => {
  it('is sent with at most 200 of them', () => {
    const to = (count: number) => [
      { patient: '1', query: [['code', Array(count).fill('x').join(',')] as const] },
    ]
    assert.equal(narrow('Observation', to(200), 'parameter').isExact, true)
    const wide = narrow('Observation', to(201), 'parameter')
    assert.deepEqual([wide.isExact, wide.params], [false, [['patient', 'Patient/1']]])
    assert.equal(buildExactParams('Observation', to(200))?.length, 2)
    assert.equal(buildExactParams('Observation', to(201)), undefined)
  })
})

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

describe('narrowIncludes', () => {
  const makeAccess = (...permitted: string[]): Access => ({
    filterFor: (type, permission) => (permitted.includes(`${type}.${permission}`) ? [a] : []),
  })
  const narrowed = (name: string, value: string, access: Access) => {
    const rules = parseInclude(name, value, ['Observation'])
    assert(typeof rules === 'object')
    return narrowIncludes(rules, access).map(pair => pair.join('='))
  }
  const targets = ['Patient', 'Group', 'Device', 'Location']
  const all = makeAccess(...targets.map(type => `${type}.r`), 'Provenance.s', 'Observation.s')

  it('limits an include to the types that the caller may read', () => {
    assert.deepEqual(narrowed('_include', 'Observation:subject', all), ['_include=Observation:subject'])
    assert.deepEqual(narrowed('_include', 'Observation:subject', makeAccess('Patient.r', 'Device.r')), [
      '_include=Observation:subject:Device',
      '_include=Observation:subject:Patient',
    ])
    assert.deepEqual(narrowed('_include', 'Observation:subject', makeAccess('Patient.s')), [])
  })

  it('sends an include of one type if the caller may read it', () => {
    for (const access of [all, makeAccess('Patient.r')])
      assert.deepEqual(narrowed('_include:iterate', 'Observation:subject:Patient', access), [
        '_include:iterate=Observation:subject:Patient',
      ])
    assert.deepEqual(narrowed('_include', 'Observation:subject:Patient', makeAccess('Device.r')), [])
  })

  it('sends a reverse include if the caller may search its type', () => {
    assert.deepEqual(narrowed('_revinclude', 'Provenance:target', all), ['_revinclude=Provenance:target'])
    assert.deepEqual(narrowed('_revinclude:iterate', 'Provenance:target:Observation', all), [
      '_revinclude:iterate=Provenance:target:Observation',
    ])
    assert.deepEqual(narrowed('_revinclude', 'Provenance:target', makeAccess('Provenance.r')), [])
  })

  it('sends a star if the caller may search any type that it stands for', () => {
    assert.deepEqual(narrowed('_revinclude', '*', makeAccess('Provenance.s')), ['_revinclude=*'])
    assert.deepEqual(narrowed('_revinclude', '*', makeAccess('Provenance.r')), [])
    assert.deepEqual(narrowed('_revinclude', 'Provenance:target', makeAccess('Observation.s')), [])
  })
})

describe('isUnlimited', () => {
  it('accepts access to everything, or to the whole compartment of the search', () => {
    assert(isUnlimited('everything', undefined))
    assert(isUnlimited([b, a], 'a'))
    for (const filter of [[], [b], [{ ...a, query: lab }], [{ panel }], [{}]])
      assert(!isUnlimited(filter, 'a'))
    assert(!isUnlimited([a], undefined))
    assert(!isUnlimited([{}], undefined))
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
})

describe('listMembershipParameters', () => {
  it('lists every parameter of the compartment, and none if one search finds everything', () => {
    const by = (type: string, filter: AccessFilter, narrowing: Narrowing = 'parameter') =>
      listMembershipParameters(type, filter, narrowing)
    assert.deepEqual(by('Observation', [a]), ['patient', 'performer'])
    assert.deepEqual(by('Observation', [{ panel }], 'compartment'), ['patient', 'performer'])
    assert.deepEqual(by('Observation', [a, b], 'compartment'), ['patient', 'performer'])
    assert.deepEqual(by('Condition', [a, { ...a, query: lab }]), ['patient', 'asserter'])
    assert.deepEqual(by('Appointment', [a]), ['patient', 'actor'])
    for (const filter of ['everything', [{}], [a, {}], [{ id: 'p' }]] as const)
      assert.equal(by('Observation', filter), undefined)
    assert.equal(by('Observation', [a], 'compartment'), undefined)
    assert.equal(by('Patient', [a]), undefined)
    assert.equal(by('Binary', [a]), undefined)
  })

  it('limits the search by the given parameter', () => {
    assert.deepEqual(narrow('Observation', [a], 'compartment', { memberBy: 'performer' }), {
      ...{ path: '/Observation', params: [['performer', 'Patient/a']], isExact: true },
    })
  })
})
