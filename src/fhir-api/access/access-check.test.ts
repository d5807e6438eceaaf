import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { condition, patient } from '../../backends/sqlite/testing/fhir.ts'
import { isFailure } from '../../core/index.ts'
import { failFor, type Resource } from '../../fhir/index.ts'
import { type Access, fullAccess, noAccess, type Panel, type Permission, seesAll } from '../../smart/index.ts'
import { createAccessCheck } from './access-check.ts'

const panel: Panel = { patients: new Set(['zoe']), organizations: ['north'], careTeams: [] }
const panelled: Access = { filterFor: () => [{ panel }] }
const ann: Access = { filterFor: () => [{ patient: 'ann' }] }

const AUDIT_EVENTS = new Set(['AuditEvent'])

/** Creates a check under this access, where Ann is on the panel. `lookups` lists the patients of each membership lookup. */
async function check(access: Access, resources: readonly Resource[], standIn?: string) {
  const lookups: string[][] = []
  const created = await createAccessCheck({
    access,
    resources,
    standIn,
    baseUrl: 'http://fhir.test/fhir',
    excludedTypes: AUDIT_EVENTS,
    async panelMembers(_panels, patients) {
      lookups.push([...patients])
      return { includes: (_panel, id) => id === 'ann' }
    },
  })
  if (isFailure(created)) assert.fail()
  return { check: created, lookups }
}

describe('createAccessCheck', () => {
  it('reads no panel if no panel limits the access, and can be cached', async () => {
    for (const access of [ann, fullAccess]) {
      const { check: checked, lookups } = await check(access, [condition('c', 'ann')], 'x')
      assert.deepEqual(
        [checked.allows('r', condition('c', 'ann')), checked.isCacheable, lookups],
        [true, true, []],
      )
    }
    const { check: checked } = await check(ann, [])
    assert(!checked.allows('r', condition('c', 'bob')))
  })

  for (const permission of ['c', 'r', 'u', 'd', 's'] as const)
    it(`reads the panel if it limits only ${permission}`, async () => {
      const access: Access = { filterFor: (_type, it: Permission) => (it === permission ? [{ panel }] : []) }
      const { check: checked, lookups } = await check(access, [condition('c', 'ann')])
      assert.deepEqual([lookups, checked.isCacheable], [[['ann']], false])
      assert(checked.allows(permission, condition('c', 'ann')))
      assert(!checked.allows(permission, condition('c', 'bob')))
    })

  it('reads the panel once for all patients that the resources name, and for the substitute patient only if they name none', async () => {
    const contained = [condition('i', 'dan'), { id: 'no type' }]
    const resources = [
      condition('c', 'ann', { contained, asserter: { reference: 'Patient/bob' } }),
      patient('eve'),
    ]
    assert.deepEqual((await check(panelled, resources, 'x')).lookups, [['ann', 'bob', 'dan', 'eve']])
    const withoutPatient = { resourceType: 'Condition' }
    assert.deepEqual((await check(panelled, [withoutPatient], 'x')).lookups, [['x']])
    assert.deepEqual((await check(panelled, [withoutPatient])).lookups, [[]])
  })

  it('fails if the backend cannot read the panel', async () => {
    const unreachable = failFor('upstream-unreachable')
    const content = { access: panelled, baseUrl: 'http://fhir.test/fhir', resources: [condition('c', 'ann')] }
    assert.equal(await createAccessCheck({ ...content, panelMembers: async () => unreachable }), unreachable)
  })

  it('checks every contained resource', async () => {
    const holding = (...of: unknown[]) => condition('c', 'ann', { contained: of })
    for (const access of [ann, panelled]) {
      const { check: checked } = await check(access, [holding(condition('i', 'ann'))])
      assert(checked.allows('r', holding(condition('i', 'ann'), { resourceType: 'Medication' })))
      for (const other of [condition('i', 'bob'), 'text', { id: 'no type' }])
        assert(!checked.allows('r', holding(condition('i', 'ann'), other)), JSON.stringify(other))
      assert(!checked.allows('r', condition('c', 'ann', { contained: condition('i', 'ann') })))
    }
    const { check: checked } = await check(panelled, [holding(condition('i', 'zoe'))])
    assert(checked.allows('r', holding(condition('i', 'zoe'))))
  })

  it('excludes patients whose membership it did not read', async () => {
    const { check: checked } = await check(panelled, [])
    assert(checked.allows('r', condition('c', 'zoe')))
    assert(!checked.allows('r', condition('c', 'zoe', { contained: [condition('i', 'ann')] })))
    assert(!checked.allows('r', condition('c', 'ann')))
  })

  it('never allows a type that the backend does not serve', async () => {
    const { check: checked } = await check(fullAccess, [])
    assert(!checked.allows('r', { resourceType: 'AuditEvent', id: '1' }))
  })
})

/** Grants full access except for one permission or one type. */
const allBut = (missing: string): Access => ({
  filterFor: (type, permission) => (permission === missing || type === missing ? [] : 'everything'),
})

describe('seesAll', () => {
  it('is true only for a caller who may read and search every type', () => {
    for (const access of [fullAccess, allBut('c'), allBut('d')]) assert(seesAll(access))
    for (const access of [noAccess, allBut('r'), allBut('s'), allBut('Binary')]) assert(!seesAll(access))
  })
})
