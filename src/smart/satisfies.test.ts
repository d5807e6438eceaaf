import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Resource } from '../fhir/index.ts'
import { type AccessFilter, type Constraint, isWritable, type Panel, satisfies } from './index.ts'

const base = 'http://localhost/fhir'
const makePanel = (...patients: string[]): Panel => ({
  patients: new Set(patients),
  organizations: [],
  careTeams: [],
})
const condition = (more: object = {}): Resource => ({
  ...{ resourceType: 'Condition', id: 'c', subject: { reference: 'Patient/1' } },
  ...more,
})

describe('satisfies with several constraints', () => {
  const appointment: Resource = {
    resourceType: 'Appointment',
    participant: ['Patient/1', 'Patient/2'].map(reference => ({ actor: { reference } })),
  }
  const containing: Resource = { resourceType: 'Patient', contained: [condition()] }
  const cases: readonly (readonly [what: string, Resource, other: Constraint, own: Constraint])[] = [
    ['patient', condition(), { patient: '2' }, { patient: '1' }],
    ['panel', condition(), { panel: makePanel('2') }, { panel: makePanel('1') }],
    ['id', condition(), { id: 'b' }, { id: 'c' }],
    ['exclusiveness', appointment, { patient: '1', exclusive: true }, { patient: '1' }],
    ['referred patient', containing, { refersTo: '2' }, { refersTo: '1' }],
  ]
  for (const [what, resource, other, own] of cases)
    it(`checks each constraint by its own ${what}`, () => {
      assert.equal(satisfies(resource, [other], base), false)
      assert.equal(satisfies(resource, [other, own], base), true)
      assert.equal(satisfies(resource, [own, other], base), true)
    })
})

describe('satisfies with a contained resource', () => {
  const containing = (patient: string) =>
    condition({
      contained: [{ resourceType: 'Observation', id: 'o', subject: { reference: `Patient/${patient}` } }],
    })

  it('limits contained resources to the patients of the constraint or panel', () => {
    for (const constraint of [{ patient: '1' }, { panel: makePanel('1') }]) {
      assert.equal(satisfies(containing('1'), [constraint], base), true)
      assert.equal(satisfies(containing('2'), [constraint], base), false)
    }
  })

  it('accepts data of every patient under a constraint without patients', () => {
    assert.equal(satisfies(containing('2'), [{ id: 'c' }], base), true)
  })

  it('requires the patient of the constraint to be on the panel', () => {
    const both = { patient: '1', panel: makePanel('1', '2') }
    assert.equal(satisfies(containing('1'), [both], base), true)
    assert.equal(satisfies(containing('2'), [both], base), false)
  })
})

describe('isWritable', () => {
  const own: AccessFilter = [{ patient: '1', exclusive: true }]
  const referring = (patient: string) =>
    condition({ extension: [{ url: 'http://x', valueReference: { reference: `Patient/${patient}` } }] })

  it('refuses a reference to another patient in any element', () => {
    assert.equal(isWritable(referring('1'), own, base), true)
    assert.equal(isWritable(referring('2'), own, base), false)
  })

  it('permits every write without a patient constraint, and none without access', () => {
    assert.equal(isWritable(referring('2'), 'everything', base), true)
    assert.equal(isWritable(referring('2'), [{ id: 'c' }], base), true)
    assert.equal(isWritable(referring('1'), [], base), false)
  })

  it('requires that the resource satisfies one constraint completely, in any order of constraints', () => {
    const other: Constraint = { patient: '2', exclusive: true }
    assert.equal(isWritable(condition(), [...own, other], base), true)
    assert.equal(isWritable(condition(), [other, ...own], base), true)
    // In the record of patient 1, with a reference to patient 2: neither constraint covers both.
    assert.equal(isWritable(referring('2'), [...own, other], base), false)
  })

  it('lets a new Patient refer only to the patient of the token', () => {
    const linked = (id: string): Resource => ({
      resourceType: 'Patient',
      link: [{ other: { reference: `Patient/${id}` }, type: 'seealso' }],
    })
    assert.equal(isWritable(linked('1'), [{ refersTo: '1' }], base), true)
    assert.equal(isWritable(linked('2'), [{ refersTo: '1' }], base), false)
  })
})
