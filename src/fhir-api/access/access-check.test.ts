import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { condition, patient } from '../../backends/sqlite/testing/fhir.ts'
import { fail, type Resource } from '../../fhir/index.ts'
import { type Access, fullAccess, noAccess, type Panel, type Permission } from '../../smart/index.ts'
import { isFailure } from '../failure.ts'
import { createAccessCheck, seesAll } from './access-check.ts'

const panel: Panel = { patients: new Set(['zoe']), organizations: ['north'], careTeams: [] }
const panelled: Access = { filterFor: () => [{ panel }] }
const ann: Access = { filterFor: () => [{ patient: 'ann' }] }

const AUDIT_EVENTS = new Set(['AuditEvent'])

/** A check for one who has this access, where Ann is on the panel; and whom it asked about. */
async function check(access: Access, resources: readonly Resource[], standIn?: string) {
  const asked: string[][] = []
  const created = await createAccessCheck({
    ...{ access, resources, standIn, baseUrl: 'http://fhir.test/fhir', excludedTypes: AUDIT_EVENTS },
    async panelMembers(_panels, patients) {
      asked.push([...patients])
      return { includes: (_panel, id) => id === 'ann' }
    },
  })
  if (isFailure(created)) assert.fail()
  return { check: created, asked }
}

describe('createAccessCheck', () => {
  it('asks nobody where no panel decides, and can be cached', async () => {
    for (const access of [ann, fullAccess]) {
      const { check: checked, asked } = await check(access, [condition('c', 'ann')], 'x')
      assert.deepEqual(
        [checked.allows('r', condition('c', 'ann')), checked.isCacheable, asked],
        [true, true, []],
      )
    }
    const { check: checked } = await check(ann, [])
    assert(!checked.allows('r', condition('c', 'bob')))
  })

  for (const permission of ['c', 'r', 'u', 'd', 's'] as const)
    it(`asks where a panel decides about ${permission} alone`, async () => {
      const access: Access = { filterFor: (_type, it: Permission) => (it === permission ? [{ panel }] : []) }
      const { check: checked, asked } = await check(access, [condition('c', 'ann')])
      assert.deepEqual([asked, checked.isCacheable], [[['ann']], false])
      assert(checked.allows(permission, condition('c', 'ann')))
      assert(!checked.allows(permission, condition('c', 'bob')))
    })

  it('asks once, about all whom the resources name, also inside, and about a stand-in only where they name nobody', async () => {
    const contained = [condition('i', 'dan'), { id: 'no type' }]
    const resources = [
      condition('c', 'ann', { contained, asserter: { reference: 'Patient/bob' } }),
      patient('eve'),
    ]
    assert.deepEqual((await check(panelled, resources, 'x')).asked, [['ann', 'bob', 'dan', 'eve']])
    const nobodys = { resourceType: 'Condition' }
    assert.deepEqual((await check(panelled, [nobodys], 'x')).asked, [['x']])
    assert.deepEqual((await check(panelled, [nobodys])).asked, [[]])
  })

  it('fails where the backend does', async () => {
    const away = fail({ problem: 'upstream-unreachable' })
    const content = { access: panelled, baseUrl: 'http://fhir.test/fhir', resources: [condition('c', 'ann')] }
    assert.equal(await createAccessCheck({ ...content, panelMembers: async () => away }), away)
  })

  it('looks into everything that a resource contains', async () => {
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

  it('takes nobody to be on a panel about whom it did not ask', async () => {
    const { check: checked } = await check(panelled, [])
    assert(checked.allows('r', condition('c', 'zoe')))
    assert(!checked.allows('r', condition('c', 'zoe', { contained: [condition('i', 'ann')] })))
    assert(!checked.allows('r', condition('c', 'ann')))
  })

  it('never allows a type that is not taken from the backend', async () => {
    const { check: checked } = await check(fullAccess, [])
    assert(!checked.allows('r', { resourceType: 'AuditEvent', id: '1' }))
  })
})

/** Everything but one permission, or one type. */
const allBut = (missing: string): Access => ({
  filterFor: (type, permission) => (permission === missing || type === missing ? [] : 'everything'),
})

describe('seesAll', () => {
  it('holds for a caller who may read and search every type, and for no other', () => {
    for (const access of [fullAccess, allBut('c'), allBut('d')]) assert(seesAll(access))
    for (const access of [noAccess, allBut('r'), allBut('s'), allBut('Binary')]) assert(!seesAll(access))
  })
})
