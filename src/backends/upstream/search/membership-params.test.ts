import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { AccessFilter, Constraint, Panel } from '../../../smart/index.ts'
import {
  buildPanelParams,
  isUnlimited,
  listMembershipParameters,
  type Narrowing,
} from './membership-params.ts'

const nobody: Panel = { patients: new Set(), organizations: [], careTeams: [] }
const panel: Panel = { ...nobody, organizations: ['north'] }
const lab: Constraint['query'] = [['category', 'lab']]
const a: Constraint = { patient: 'a' }
const b: Constraint = { patient: 'b' }

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
})

describe('buildPanelParams', () => {
  it('leads from a resource to its patient, and from there to the organization or to care teams', () => {
    const kim = { type: 'Practitioner', id: 'kim' }
    const by = (type: string, more: Partial<Panel>) =>
      buildPanelParams(type, { ...nobody, ...more }).map(pair => pair.join('='))
    assert.deepEqual(by('Patient', { organizations: ['a', 'b'] }), [
      'organization=Organization/a,Organization/b',
    ])
    assert.deepEqual(by('Condition', { organizations: ['a'] }), [
      'patient:Patient.organization=Organization/a',
    ])
    assert.deepEqual(by('Schedule', { organizations: ['a'] }), ['actor:Patient.organization=Organization/a'])
    assert.deepEqual(by('Patient', { careTeams: ['s', 't'] }), ['_has:CareTeam:patient:_id=s,t'])
    assert.deepEqual(by('Condition', { member: kim }), [
      'patient:Patient._has:CareTeam:patient:participant=Practitioner/kim',
    ])
    assert.deepEqual(by('Binary', { member: kim }), [])
  })
})
