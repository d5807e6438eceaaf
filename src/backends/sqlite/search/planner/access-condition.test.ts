import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type Access, type AccessFilter, fullAccess, type Panel } from '../../../../smart/index.ts'
import { condition, createAuthenticator, type Fhir, patient, readIds, startFhir } from '../../testing/fhir.ts'

const to = (reference: string) => ({ reference })
const makeTeam = (id: string, of: string, members: readonly string[], more: object = {}) => ({
  resourceType: 'CareTeam',
  id,
  status: 'active',
  subject: to(`Patient/${of}`),
  participant: members.map(member => ({ member: to(member) })),
  ...more,
})
const containing = (id: string, of: string, inner: string) =>
  condition(id, of, { contained: [condition('i', inner)], evidence: [{ detail: [to('#i')] }] })
const coded = { code: { text: 'Fever' } }

const DATA = [
  { resourceType: 'Organization', id: 'north', name: 'North' },
  { resourceType: 'Practitioner', id: 'kim' },
  patient('ann', { managingOrganization: to('Organization/north') }),
  patient('bob', { generalPractitioner: [to('Organization/north')] }),
  ...['cat', 'dan'].map(id => patient(id)),
  makeTeam('t', 'cat', ['Practitioner/kim', 'Patient/bob']),
  makeTeam('u', 'dan', ['Practitioner/kim'], {
    status: 'inactive',
    category: [{ coding: [{ code: 'active' }] }],
  }),
  makeTeam('v', 'ann', ['Practitioner/lee', 'Organization/kim']),
  condition('a', 'ann', coded),
  condition('b', 'bob'),
  condition('c', 'cat'),
  // The first version is about another patient.
  condition('d', 'bob'),
  condition('d', 'dan'),
  // The first version contains another patient.
  containing('aa', 'ann', 'bob'),
  containing('aa', 'ann', 'ann'),
  containing('ab', 'ann', 'bob'),
]

const makePanel = (more: Partial<Panel>): Panel => ({
  patients: new Set(),
  organizations: [],
  careTeams: [],
  ...more,
})
const member = { type: 'Practitioner', id: 'kim' }

/** Lists the Conditions that a search finds under a filter. */
const CASES: Readonly<Record<string, readonly [AccessFilter, found: string]>> = {
  everything: ['everything', 'a,aa,ab,b,c,d'],
  nothing: [[], ''],
  'one patient': [[{ patient: 'ann' }], 'a,aa'],
  'two patients': [[{ patient: 'ann' }, { patient: 'bob' }], 'a,aa,b'],
  'one id': [[{ id: 'b' }], 'b'],
  'one id of a patient': [[{ patient: 'ann', id: 'a' }], 'a'],
  'one id of another patient': [[{ patient: 'ann', id: 'b' }], ''],
  'a query': [[{ query: [['code:text', 'Fever']] }], 'a'],
  'a query of a patient': [[{ patient: 'bob', query: [['code:text', 'Fever']] }], ''],
  'a query that cannot be evaluated': [[{ patient: 'ann', query: [['patient.name', 'x']] }], ''],
  'an unknown parameter': [[{ patient: 'ann', query: [['nonsense', 'x']] }], ''],
  'a reverse chain': [[{ patient: 'ann', query: [['_has:Provenance:target:agent', 'x']] }], ''],
  'a patient, and a query': [[{ patient: 'bob' }, { query: [['code:text', 'Fever']] }], 'a,b'],
  'an empty panel': [[{ panel: makePanel({}) }], ''],
  'a panel of a named patient': [[{ panel: makePanel({ patients: new Set(['bob']) }) }], 'b'],
  'a panel of an organization': [[{ panel: makePanel({ organizations: ['north'] }) }], 'a,aa'],
  'a panel of care teams': [[{ panel: makePanel({ careTeams: ['t', 'u'] }) }], 'c'],
  'a panel of one care team': [[{ panel: makePanel({ careTeams: ['t'] }) }], 'c'],
  'a panel of the care teams of a member': [[{ panel: makePanel({ member }) }], 'c'],
  'a panel of the care teams of their patient': [
    [{ panel: makePanel({ member: { type: 'Patient', id: 'cat' } }) }],
    '',
  ],
  'a panel of two patients': [[{ panel: makePanel({ patients: new Set(['ann', 'bob']) }) }], 'a,aa,ab,b'],
  'a panel with a query': [
    [{ panel: makePanel({ patients: new Set(['ann', 'bob']) }), query: [['code:text', 'Fever']] }],
    'a',
  ],
  'a patient on a panel': [
    [{ patient: 'ann', panel: makePanel({ patients: new Set(['ann', 'bob']) }) }],
    'a,aa',
  ],
  'a patient on no panel': [[{ patient: 'ann', panel: makePanel({ patients: new Set(['bob']) }) }], ''],
}

const write: Access = { filterFor: () => [{ patient: 'ann', exclusive: true }] }

const accesses = Object.fromEntries(
  Object.entries(CASES).map(([name, [filter]]): [string, Access] => [
    name,
    { filterFor: type => (type === 'Condition' ? filter : []) },
  ]),
)

describe('an access filter', () => {
  let fhir: Fhir
  before(async () => {
    fhir = await startFhir({ guard: createAuthenticator({ ...accesses, write, all: fullAccess }) })
    for (const resource of DATA) {
      const reply = await fhir.as('all')(`PUT ${resource.resourceType}/${resource.id}`, resource)
      assert.ok([200, 201].includes(reply.status), JSON.stringify(reply.body))
    }
  })
  after(() => fhir.close())

  it('finds nothing under a constraint for writes', async () => {
    assert.deepEqual(readIds(await fhir.as('write')('GET Condition')), [])
  })

  for (const [name, [, found]] of Object.entries(CASES))
    it(`finds and reads ${found || 'nothing'} with ${name}`, async () => {
      const reply = await fhir.as(name)('GET Condition?_total=accurate')
      assert.equal(readIds(reply).toSorted().join(), found)
      for (const id of ['a', 'aa', 'ab', 'b', 'c', 'd']) {
        const { status } = await fhir.as(name)(`GET Condition/${id}`)
        assert.equal(status, found.split(',').includes(id) ? 200 : 403, id)
      }
      assert.equal(reply.body.total, found === '' ? 0 : found.split(',').length)
    })
})
