import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type CurrentVersion, failFor, type Permission, type Resource } from '../fhir/index.ts'
import {
  type Access,
  type AccessFilter,
  type Constraint,
  checkPatch,
  failHidden,
  findUpdateConflict,
  isWritable,
  mayRevealAbsence,
  type Panel,
  satisfies,
} from './index.ts'

const base = 'http://localhost/fhir'
const makePanel = (...patients: string[]): Panel => ({
  patients: new Set(patients),
  organizations: [],
  careTeams: [],
})
const condition = (more: object = {}): Resource => ({
  resourceType: 'Condition',
  id: 'c',
  subject: { reference: 'Patient/1' },
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

const makeAccess = (filters: Readonly<Record<string, AccessFilter>>): Access => ({
  filterFor: (type, permission) => filters[`${type}.${permission}`] ?? [],
})

describe('failHidden', () => {
  const access = makeAccess({ 'Patient.r': [{ patient: '1' }], 'Condition.r': [{ patient: '1' }] })

  it('names a resource that the grant itself names', () => {
    assert.partialDeepStrictEqual(failHidden(access, 'r', 'Patient', '1'), {
      reason: 'absent',
      facts: { type: 'Patient', id: '1' },
    })
  })

  it('gives one response for resources that are absent and outside the grant', () => {
    for (const [type, id] of [
      ['Patient', '2'],
      ['Condition', 'c'],
    ] as const)
      assert.partialDeepStrictEqual(failHidden(access, 'r', type, id), { reason: 'outside-access' })
    assert.equal(failHidden(access, 'u', 'Patient', '1').reason, 'outside-access')
  })
})

describe('findUpdateConflict', () => {
  const own = makeAccess({ 'Patient.u': [{ patient: '1' }], 'Condition.u': [{ patient: '1' }] })
  const patient = { type: 'Patient', id: '1' }
  const condition = { type: 'Condition', id: 'c' }
  const before = { etag: 'W/"2"' }
  const find = (target: typeof patient, current: CurrentVersion | 'deleted' | 'absent', ifMatch?: string) =>
    findUpdateConflict(own, target, current, ifMatch === undefined ? {} : { ifMatch })?.reason

  it('returns no conflict without a precondition, or with one that holds', () => {
    for (const current of [before, 'deleted', 'absent'] as const)
      assert.equal(find(condition, current), undefined)
    assert.equal(find(condition, before, 'W/"2"'), undefined)
  })

  it('reports a stale version to a caller who may see the resource', () => {
    assert.equal(find(condition, before, 'W/"1"'), 'if-match-differs')
    assert.equal(find(condition, 'deleted', 'W/"1"'), 'if-match-of-absent')
    assert.equal(find(patient, 'absent', 'W/"1"'), 'if-match-of-absent')
  })

  it('does not reveal to other callers that the resource is absent', () => {
    assert.equal(find(condition, 'absent', 'W/"1"'), 'outside-access')
    assert.equal(find({ type: 'Patient', id: '2' }, 'absent', 'W/"1"'), 'outside-access')
  })
})

const own: Constraint = { id: '1' }

const patient: Constraint = { patient: '1' }

const query = [['code', 'x']] as const

const panel = { patients: new Set(['1']), organizations: [], careTeams: [] }

// A filter, the requested type and id, and whether a response may reveal that the resource is absent.
const CASES: readonly (readonly [AccessFilter, string, string, boolean])[] = [
  ['everything', 'Condition', '1', true],
  [[], 'Condition', '1', false],
  [[{}], 'Condition', '1', false],
  [[own], 'Practitioner', '1', true],
  [[own], 'Practitioner', '2', false],
  [[{ ...own, query }], 'Practitioner', '1', false],
  [[patient], 'Patient', '1', true],
  [[patient], 'Patient', '2', false],
  [[patient], 'Condition', '1', false],
  [[{ ...patient, query }], 'Patient', '1', false],
  [[{ ...patient, id: '2' }], 'Patient', '1', false],
  [[{ ...patient, id: '1' }], 'Patient', '1', true],
  [[{ query }], 'Condition', '1', false],
  [[{ panel }], 'Patient', '1', false],
  [[{ query }, patient], 'Patient', '1', true],
  [[patient, { query }], 'Patient', '1', true],
]

describe('mayRevealAbsence', () => {
  for (const [filter, type, id, expected] of CASES) {
    const constraints = filter === 'everything' ? filter : JSON.stringify(filter)
    it(`returns ${expected} for ${type}/${id} under ${constraints} (ABSENT-2)`, () =>
      assert.equal(mayRevealAbsence(filter, type, id), expected))
  }
})

const stored: Resource = { resourceType: 'Observation', id: 'o', status: 'final' }

const result: Resource = { ...stored, status: 'amended' }

const replace = [{ op: 'replace', path: '/status', value: 'amended' }]

const test = [{ op: 'test', path: '/status', value: 'final' }, ...replace]

const malformed = failFor('patch-not-operations')

const failed = failFor('patch-path-to-nothing')

/** Permits the listed accesses, such as `r:stored`. */
const permitting =
  (...granted: string[]) =>
  (permission: Permission, resource: Resource) =>
    granted.includes(`${permission}:${resource === stored ? 'stored' : 'result'}`)

describe('checkPatch', () => {
  const reader = permitting('r:stored')

  it('lets a caller who may read the resource test it, and learn why the patch fails', () => {
    assert.equal(checkPatch(test, stored, result, reader), undefined)
    assert.equal(checkPatch(test, stored, failed, reader), failed)
  })

  it('lets a caller who may not read the resource replace elements', () => {
    assert.equal(checkPatch(replace, stored, result, permitting()), undefined)
    assert.equal(checkPatch(replace, stored, result, permitting('s:stored')), undefined)
  })

  it('refuses a patch with a test from a caller who may not read the resource', () => {
    for (const outcome of [result, failed])
      assert.equal(checkPatch(test, stored, outcome, permitting())?.reason, 'outside-access')
  })

  it('tells a caller who may not read the resource why a patch fails only if the patch itself is malformed', () => {
    assert.equal(checkPatch(replace, stored, malformed, permitting()), malformed)
    const hidden = checkPatch(replace, stored, failed, permitting())
    assert.partialDeepStrictEqual(hidden, { reason: 'patch-unusable' })
  })

  for (const granted of ['r:result', 's:result'])
    it(`refuses a patch that makes a hidden resource readable by ${granted[0]}`, () =>
      assert.equal(checkPatch(replace, stored, result, permitting(granted))?.reason, 'outside-access'))
})
