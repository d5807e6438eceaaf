import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isFailure } from '../core/index.ts'
import type { Resource } from '../fhir/index.ts'
import {
  type AccessPolicy,
  computeAccess,
  createUserFilter,
  fullAccess,
  type Panel,
  type PanelMembership,
  type Permission,
  parsePolicy,
  parseScopes,
  satisfies,
} from './index.ts'

const base = 'http://localhost/fhir'

const kim = { type: 'Practitioner', id: 'kim' }

function makePolicy(...rules: readonly object[]): AccessPolicy {
  const rights = parsePolicy({ rules })
  assert(!isFailure(rights))
  return rights
}

function filter(rights: AccessPolicy, type: string, permission: Permission) {
  return createUserFilter(rights)(kim, type, permission)
}

// Outside the patient compartment, but able to contain data about patients.
const REVEALING = [
  'BiologicallyDerivedProduct',
  'Bundle',
  'Contract',
  'DeviceMetric',
  'EnrollmentResponse',
  'Group',
  'GuidanceResponse',
  'Linkage',
  'MessageHeader',
  'Parameters',
  'PaymentNotice',
  'PaymentReconciliation',
  'Subscription',
  'VerificationResult',
]

describe('createUserFilter', () => {
  const all = makePolicy({ clinicians: 'all', patients: 'all' })
  const two = makePolicy({ clinicians: ['Practitioner/kim'], patients: ['1', '2'] })
  const north = makePolicy({ clinicians: 'all', organizations: ['north'] })

  it('gives full access to a clinician with all patients, whatever the other rules say', () => {
    assert.equal(filter(all, 'Condition', 'u'), 'everything')
    const both = makePolicy({ clinicians: 'all', patients: ['1'] }, { clinicians: 'all', patients: 'all' })
    assert.equal(filter(both, 'Condition', 'r'), 'everything')
  })

  it('makes one constraint for each of a few listed patients', () => {
    assert.deepEqual(filter(two, 'Condition', 'r'), [{ patient: '1' }, { patient: '2' }])
    assert.deepEqual(filter(two, 'Patient', 's'), [{ patient: '1' }, { patient: '2' }])
    for (const permission of ['c', 'u', 'd'] as const)
      assert.deepEqual(filter(two, 'Condition', permission), [
        { patient: '1', exclusive: true },
        { patient: '2', exclusive: true },
      ])
    const named = (count: number) =>
      makePolicy({ clinicians: 'all', patients: [...Array(count).keys()].map(String) })
    assert.equal(filter(named(50), 'Condition', 'r').length, 50)
    assert.equal(filter(named(51), 'Condition', 'r').length, 1)
  })

  it('makes one panel if membership depends on stored data, even if the panel is empty', () => {
    const panel: Panel = { patients: new Set(), organizations: ['north'], careTeams: [] }
    assert.deepEqual(filter(north, 'Condition', 'r'), [{ panel }])
    assert.deepEqual(filter(north, 'Condition', 'd'), [{ panel, exclusive: true }])
    const teams = makePolicy({ clinicians: 'all', patients: ['1'], careTeams: ['t'] })
    assert.deepEqual(filter(teams, 'Condition', 'r'), [
      { panel: { patients: new Set(['1']), organizations: [], careTeams: ['t'] } },
    ])
    const own = makePolicy({ clinicians: 'all', patients: ['1'], careTeams: 'own' })
    assert.deepEqual(filter(own, 'Condition', 'r'), [
      { panel: { patients: new Set(['1']), organizations: [], careTeams: [], member: kim } },
    ])
    const empty = makePolicy({ clinicians: ['PractitionerRole/kim', 'Practitioner/lee'], patients: 'all' })
    const none = { patients: new Set<string>(), organizations: [], careTeams: [] }
    assert.deepEqual(filter(empty, 'Condition', 'r'), [{ panel: none }])
  })

  it('applies every rule that names the clinician, and accepts ids with and without a type (USER-4)', () => {
    const rights = makePolicy({
      clinicians: ['Practitioner/lee', 'Practitioner/kim'],
      patients: ['Patient/1'],
    })
    assert.deepEqual(filter(rights, 'Condition', 'r'), [{ patient: '1' }])
    const typed = makePolicy({
      clinicians: 'all',
      organizations: ['Organization/o'],
      careTeams: ['CareTeam/t'],
    })
    const panel = { patients: new Set<string>(), organizations: ['o'], careTeams: ['t'] }
    assert.deepEqual(filter(typed, 'Condition', 'r'), [{ panel }])
  })

  it('adds to the access of a patient/ scope, and does not limit it', () => {
    const grant = { scopes: parseScopes('patient/*.r user/*.r'), patient: '9', fhirUser: kim }
    const userFilter = createUserFilter(north)
    const policy = {
      fhirBaseUrl: base,
      contexts: ['patient', 'user'],
      searchPermission: 'r',
      userFilter,
    } as const
    const panel: Panel = { patients: new Set(), organizations: ['north'], careTeams: [] }
    assert.deepEqual(computeAccess(grant, policy).filterFor('Condition', 'r'), [{ patient: '9' }, { panel }])
  })

  it('returns the same panel each time, so that two scopes share one constraint', () => {
    const userFilter = createUserFilter(north)
    const grant = { scopes: parseScopes('user/Condition.r user/*.r'), fhirUser: kim }
    const access = computeAccess(grant, {
      fhirBaseUrl: base,
      contexts: ['user'],
      searchPermission: 'r',
      userFilter: userFilter,
    })
    assert.equal(access.filterFor('Condition', 'r').length, 1)
  })

  it('does not limit resources without a patient, unless their type lists patients (USER-5)', () => {
    for (const type of ['Practitioner', 'Organization', 'Questionnaire'])
      assert.equal(filter(two, type, 'u'), 'everything', type)
    for (const type of REVEALING) assert.deepEqual(filter(two, type, 'r'), [], type)
  })
})

describe('parsePolicy', () => {
  it('refuses malformed clinicians and ids', () => {
    for (const rule of [
      { clinicians: ['Practitioner/1/_history/2'] },
      { clinicians: ['kim'] },
      { clinicians: [5] },
      { clinicians: 'all', patients: [['1']] },
      { clinicians: 'all', patients: ['Organization/1'] },
      { clinicians: 'all', organizations: ['Patient/1'] },
      { clinicians: 'all', careTeams: [null] },
    ])
      assert(isFailure(parsePolicy({ rules: [rule] })), JSON.stringify(rule))
  })
})

describe('fullAccess', () => {
  it('permits everything', () => assert.equal(fullAccess.filterFor('Condition', 'd'), 'everything'))
})

describe('satisfies with a panel', () => {
  const panel: Panel = { patients: new Set(['1']), organizations: ['north'], careTeams: [], member: kim }
  /** Patient 2 is on the panel by organization, 3 by a care team. */
  const membership: PanelMembership = {
    includes: ({ organizations, member }, id) =>
      (id === '2' && organizations.includes('north')) || (id === '3' && member !== undefined),
  }
  const of = (id: string, asserter?: string): Resource => ({
    resourceType: 'Condition',
    id: 'c',
    subject: { reference: `Patient/${id}` },
    ...(asserter !== undefined && { asserter: { reference: asserter } }),
  })
  const patient = (id: string, organization?: string): Resource => ({
    resourceType: 'Patient',
    id,
    ...(organization !== undefined && { managingOrganization: { reference: organization } }),
  })
  const reads = (it: Resource, by: PanelMembership | undefined = membership) =>
    satisfies(it, [{ panel }], base, by)
  const writes = (it: Resource) => satisfies(it, [{ panel, exclusive: true }], base, membership)

  it('includes listed patients and members of the panel', () => {
    assert.deepEqual(
      ['1', '2', '3', '4'].map(id => reads(of(id))),
      [true, true, true, false],
    )
    assert.deepEqual(
      ['1', '2', '3', '4'].map(id => reads(patient(id))),
      [true, true, true, false],
    )
    assert(reads(of('4', 'Patient/1')))
  })

  it('includes only listed patients if the membership is unknown', () => {
    const alone = (id: string) => satisfies(of(id), [{ panel }], base)
    assert.deepEqual(['1', '2', '3'].map(alone), [true, false, false])
    assert(!satisfies(patient('3'), [{ panel, exclusive: true }], base))
    assert(!satisfies(patient('2', 'Organization/north'), [{ panel, exclusive: true }], base))
  })

  it('accepts a write that refers to no other patient', () => {
    assert.deepEqual(
      ['1', '2', '3', '4'].map(id => writes(of(id))),
      [true, true, true, false],
    )
    assert(writes(of('1', 'Patient/2')))
    assert(writes(of('1', 'Practitioner/p')))
    for (const other of ['Patient/4', 'http://elsewhere.example/fhir/Patient/1', 'Patient?name=x'])
      assert(!writes(of('1', other)), other)
  })

  it('reads the organization of a written Patient from its content', () => {
    assert(!writes(patient('2')))
    assert(!writes(patient('2', 'Organization/south')))
    assert(!writes(patient('2', 'Practitioner/north')))
    assert(writes(patient('2', 'Organization/north')))
    assert(writes(patient('2', `${base}/Organization/north`)))
    assert(!writes(patient('9', 'Organization/north')))
    const { id: _, ...unborn } = patient('9', 'Organization/north')
    assert(writes(unborn))
    assert(!reads(unborn))
    assert(!writes({ resourceType: 'Patient' }))
    assert(writes(patient('3')))
    assert(writes(patient('1', 'Organization/south')))
    assert(!reads(patient('9', 'Organization/north')))
    const odd = { ...patient('9'), managingOrganization: { reference: 5 } }
    assert(!writes(odd))
  })

  it('applies the search parameters of the constraint too', () => {
    const query = [['code', 'x']] as const
    assert(!satisfies(of('1'), [{ panel, query }], base, membership))
  })
})
