import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Constraint, Panel } from '../../../smart/index.ts'
import type { Narrowing } from './membership-params.ts'
import type { ExpandedFilter } from './panels.ts'
import { listPortions, type PortionOptions } from './portions.ts'

const baseUrl = 'http://fhir.test/fhir'
const nobody: Panel = { patients: new Set(), organizations: [], careTeams: [] }
const panel: Panel = { ...nobody, organizations: ['north'] }
const lab: Constraint['query'] = [['category', 'lab']]
const vital: Constraint['query'] = [['category', 'vital']]
const a: Constraint = { patient: 'a' }
const b: Constraint = { patient: 'b' }

/** As `path?name=value&…`, with a star where the parameters do not express the whole limit. */
function sent(type: string, filter: ExpandedFilter, options: Partial<PortionOptions> = {}): string {
  const portions = listPortions(type, filter, {
    narrowing: 'parameter',
    exactSearches: false,
    own: [],
    baseUrl,
    ...options,
  })
  return portions
    .map(it => `${it.path}?${it.params.map(pair => pair.join('=')).join('&')}${it.isComplete ? '' : ' *'}`)
    .join(' + ')
}

const NORTH = 'patient:Patient.organization=Organization/north'

describe('a limited search', () => {
  const table: readonly (readonly [string, ExpandedFilter, string, string])[] = [
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
    ['Condition', [], '', ''],
    ['Practitioner', [{ id: 'p' }, a], '/Practitioner?_id=p + /Practitioner? *', ''],
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
      '/Observation?patient=Patient/a&category=lab + /Observation?patient=Patient/a&category=vital',
      '/Patient/a/Observation?category=lab + /Patient/a/Observation?category=vital',
    ],
    [
      'Observation',
      [{ ...a, query: lab }, b],
      '/Observation?patient=Patient/a&category=lab + /Observation?patient=Patient/b',
      '/Patient/a/Observation?category=lab + /Patient/b/Observation?',
    ],
    ['Observation', [{ query: lab }], '/Observation?category=lab', '/Observation?category=lab'],
    ['Observation', [a, { query: lab }], '/Observation?patient=Patient/a + /Observation?category=lab', ''],
    ['Practitioner', [{ id: 'p' }], '/Practitioner?_id=p', '/Practitioner?_id=p'],
    ['Practitioner', [{ id: 'p' }, { id: 'q' }], '/Practitioner?_id=p,q', '/Practitioner?_id=p,q'],
    ['Practitioner', [{ id: 'p' }, { query: [] }], '/Practitioner?_id=p + /Practitioner?', ''],
    ['Patient', [{ id: 'a' }, { id: 'b' }], '/Patient?_id=a,b', '/Patient?_id=a,b'],
    ['Condition', [{ panel }], `/Condition?${NORTH}`, `/Condition?${NORTH}`],
    ['Condition', [{ panel, isOpen: true }], '/Condition? *', '/Condition? *'],
    ['Condition', [{ panel, query: lab }], `/Condition?${NORTH}&category=lab`, ''],
    ['Condition', [a, { panel }], `/Condition?patient=Patient/a + /Condition?${NORTH}`, ''],
    // The patient of the launch is one of the panel.
    ['Condition', [a, { panel: { ...panel, patients: new Set(['a']) } }], `/Condition?${NORTH}`, ''],
    ['Condition', [{ ...a, query: [['nothing', 'x']] }], '', ''],
  ]
  for (const [type, filter, byParameter, byPath] of table)
    it(`is sent as ${byParameter}`, () => {
      assert.equal(sent(type, filter), byParameter)
      if (byPath !== '') assert.equal(sent(type, filter, { narrowing: 'compartment' }), byPath)
    })

  it('in a compartment is limited to the compartment and the grant', () => {
    const inA = (type: string, filter: ExpandedFilter, narrowing: Narrowing) =>
      sent(type, filter, { narrowing, compartment: 'a' })
    assert.equal(inA('Condition', [a], 'compartment'), '/Patient/a/Condition?')
    assert.equal(inA('Condition', [b], 'compartment'), '/Patient/a/Condition?patient=Patient/b')
    assert.equal(inA('Condition', [a, b], 'compartment'), '/Patient/a/Condition?patient=Patient/a,Patient/b')
    assert.equal(inA('Condition', 'everything', 'compartment'), '/Patient/a/Condition?')
    assert.equal(inA('Condition', [{ panel }], 'compartment'), `/Patient/a/Condition?${NORTH}`)
    assert.equal(inA('Condition', [b], 'parameter'), '/Condition?patient=Patient/a&patient=Patient/b')
    assert.equal(inA('Condition', 'everything', 'parameter'), '/Condition?patient=Patient/a')
    assert.equal(inA('Device', [b], 'compartment'), '/Device?patient=Patient/a&patient=Patient/b')
  })

  it('is limited by the given parameter', () => {
    const options = { narrowing: 'compartment', memberBy: 'performer' } as const
    assert.equal(sent('Observation', [a], options), '/Observation?performer=Patient/a')
    assert.equal(
      sent('Observation', [{ panel }], options),
      '/Observation?performer:Patient.organization=Organization/north',
    )
  })

  it('is several searches for a long list', () => {
    const filter = Array.from({ length: 301 }, (_, at) => ({ patient: `p${at}` }))
    assert.deepEqual(
      sent('Condition', filter)
        .split(' + ')
        .map(it => it.split(',').length),
      [300, 1],
    )
  })

  it('is filtered by the gateway if it would take more than 12 searches', () => {
    const filter = (count: number) =>
      Array.from({ length: count }, (_, at) => ({ ...a, query: [['code', `${at}`] as const] }))
    assert.equal(sent('Observation', filter(12)).split(' + ').length, 12)
    assert.equal(sent('Observation', filter(13)), '/Observation?patient=Patient/a *')
  })

  it('is several searches for dates without a common bound', () => {
    const filter = [{ ...a, query: [['date', 'ge2026,lt2020'] as const, ...(lab ?? [])] }]
    assert.equal(
      sent('Observation', filter),
      [
        '/Observation?patient=Patient/a&date=ge2025-12-31&category=lab',
        '/Observation?patient=Patient/a&date=le2020-01-02&category=lab',
      ].join(' + '),
    )
  })

  it('is sent with clauses as they are to a server that reads them as R4 defines', () => {
    const filter = [{ ...a, query: [['date', 'ge2026'] as const] }]
    assert.equal(
      sent('Observation', filter, { exactSearches: true }),
      '/Observation?patient=Patient/a&date=ge2026',
    )
    assert.equal(sent('Observation', filter), '/Observation?patient=Patient/a&date=ge2025-12-31')
  })
})
