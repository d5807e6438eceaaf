import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
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

function rightsOf(...rules: readonly object[]): AccessPolicy {
  const rights = parsePolicy({ rules })
  assert(!('problem' in rights))
  return rights
}

function filter(rights: AccessPolicy, type: string, permission: Permission) {
  return createUserFilter(rights)(kim, type, permission)
}

// In nobody's compartment, and yet it may be about a patient.
const TELLING = [
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
  const all = rightsOf({ clinicians: 'all', patients: 'all' })
  const two = rightsOf({ clinicians: ['Practitioner/kim'], patients: ['1', '2'] })
  const north = rightsOf({ clinicians: 'all', organizations: ['north'] })

  it('is everything for who sees all patients, whatever other rules say', () => {
    assert.equal(filter(all, 'Condition', 'u'), 'everything')
    const both = rightsOf({ clinicians: 'all', patients: ['1'] }, { clinicians: 'all', patients: 'all' })
    assert.equal(filter(both, 'Condition', 'r'), 'everything')
  })

  it('is a constraint a patient where they are few and named', () => {
    assert.deepEqual(filter(two, 'Condition', 'r'), [{ patient: '1' }, { patient: '2' }])
    assert.deepEqual(filter(two, 'Patient', 's'), [{ patient: '1' }, { patient: '2' }])
    for (const permission of ['c', 'u', 'd'] as const)
      assert.deepEqual(filter(two, 'Condition', permission), [
        { patient: '1', exclusive: true },
        { patient: '2', exclusive: true },
      ])
    const named = (count: number) =>
      rightsOf({ clinicians: 'all', patients: [...Array(count).keys()].map(String) })
    assert.equal(filter(named(50), 'Condition', 'r').length, 50)
    assert.equal(filter(named(51), 'Condition', 'r').length, 1)
  })

  it('is one panel where only data can tell, also when it holds nobody', () => {
    const panel: Panel = { patients: new Set(), organizations: ['north'], careTeams: [] }
    assert.deepEqual(filter(north, 'Condition', 'r'), [{ panel }])
    assert.deepEqual(filter(north, 'Condition', 'd'), [{ panel, exclusive: true }])
    const teams = rightsOf({ clinicians: 'all', patients: ['1'], careTeams: ['t'] })
    assert.deepEqual(filter(teams, 'Condition', 'r'), [
      { panel: { patients: new Set(['1']), organizations: [], careTeams: ['t'] } },
    ])
    const own = rightsOf({ clinicians: 'all', patients: ['1'], careTeams: 'own' })
    assert.deepEqual(filter(own, 'Condition', 'r'), [
      { panel: { patients: new Set(['1']), organizations: [], careTeams: [], member: kim } },
    ])
    const nobody = rightsOf({ clinicians: ['PractitionerRole/kim', 'Practitioner/lee'], patients: 'all' })
    const none = { patients: new Set<string>(), organizations: [], careTeams: [] }
    assert.deepEqual(filter(nobody, 'Condition', 'r'), [{ panel: none }])
  })

  it('is of every clinician whom a rule names, and of ids with and without their type', () => {
    const rights = rightsOf({
      clinicians: ['Practitioner/lee', 'Practitioner/kim'],
      patients: ['Patient/1'],
    })
    assert.deepEqual(filter(rights, 'Condition', 'r'), [{ patient: '1' }])
    const typed = rightsOf({
      clinicians: 'all',
      organizations: ['Organization/o'],
      careTeams: ['CareTeam/t'],
    })
    const panel = { patients: new Set<string>(), organizations: ['o'], careTeams: ['t'] }
    assert.deepEqual(filter(typed, 'Condition', 'r'), [{ panel }])
  })

  it('adds to what a patient/ scope reaches, and takes nothing from it', () => {
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

  it('is the same panel each time, so that two scopes with it are one limit', () => {
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

  it('leaves what is of no patient, unless it lists patients', () => {
    for (const type of ['Practitioner', 'Organization', 'Questionnaire'])
      assert.equal(filter(two, type, 'u'), 'everything', type)
    for (const type of TELLING) assert.deepEqual(filter(two, type, 'r'), [], type)
  })
})

describe('parsePolicy', () => {
  it('takes nothing for a clinician or an id that is not one', () => {
    for (const rule of [
      { clinicians: ['Practitioner/1/_history/2'] },
      { clinicians: ['kim'] },
      { clinicians: [5] },
      { clinicians: 'all', patients: [['1']] },
      { clinicians: 'all', patients: ['Organization/1'] },
      { clinicians: 'all', organizations: ['Patient/1'] },
      { clinicians: 'all', careTeams: [null] },
    ])
      assert('problem' in parsePolicy({ rules: [rule] }), JSON.stringify(rule))
  })
})

describe('fullAccess', () => {
  it('reaches everything', () => assert.equal(fullAccess.filterFor('Condition', 'd'), 'everything'))
})

describe('satisfies, of a panel', () => {
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

  it('holds who is named, and whom the membership tells', () => {
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

  it('holds only who is named without a roster', () => {
    const alone = (id: string) => satisfies(of(id), [{ panel }], base)
    assert.deepEqual(['1', '2', '3'].map(alone), [true, false, false])
    assert(!satisfies(patient('3'), [{ panel, exclusive: true }], base))
    assert(!satisfies(patient('2', 'Organization/north'), [{ panel, exclusive: true }], base))
  })

  it('takes a write that refers to no other patient', () => {
    assert.deepEqual(
      ['1', '2', '3', '4'].map(id => writes(of(id))),
      [true, true, true, false],
    )
    assert(writes(of('1', 'Patient/2')))
    assert(writes(of('1', 'Practitioner/p')))
    for (const other of ['Patient/4', 'http://elsewhere.example/fhir/Patient/1', 'Patient?name=x'])
      assert(!writes(of('1', other)), other)
  })

  it('judges the organization of a written patient by its own content', () => {
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

  it('holds for its parameters too', () => {
    const query = [['code', 'x']] as const
    assert(!satisfies(of('1'), [{ panel, query }], base, membership))
  })
})
