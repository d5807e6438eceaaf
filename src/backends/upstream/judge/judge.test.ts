import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { fail } from '../../../fhir/index.ts'
import { type Access, fullAccess, type Panel, type Permission } from '../../../smart/index.ts'
import { condition, patient } from '../../sqlite/testing/fhir.ts'
import type { Call, Context } from '../call.ts'
import type { Problem } from '../problem.ts'
import { type Judge, judgeOf } from './judge.ts'

const panel: Panel = { patients: new Set(['zoe']), organizations: ['north'], careTeams: [] }
const panelled: Access = { filterFor: () => [{ panel }] }
const ann: Access = { filterFor: () => [{ patient: 'ann' }] }

/** A judge for one who has this access, where Ann is on the panel; and whom it asked about. */
async function judging(access: Access, resources: Parameters<typeof judgeOf>[2], standIn?: string) {
  const asked: string[][] = []
  const context = {
    baseUrl: 'http://fhir.test/fhir',
    async rosterOf(_context: unknown, _call: unknown, _panels: readonly Panel[], patients: Set<string>) {
      asked.push([...patients])
      return { includes: (_panel: Panel, id: string) => id === 'ann' }
    },
  } as unknown as Context
  const judge = (await judgeOf(context, { access } as Call, resources, standIn)) as Judge
  return { judge, asked }
}

describe('the judge of what the upstream gives', () => {
  it('asks nobody where no panel decides, and says the same tomorrow', async () => {
    for (const access of [ann, fullAccess]) {
      const { judge, asked } = await judging(access, [condition('c', 'ann')], 'x')
      assert.deepEqual([judge.reaches('r', condition('c', 'ann')), judge.lasts, asked], [true, true, []])
    }
    const { judge } = await judging(ann, [])
    assert(!judge.reaches('r', condition('c', 'bob')))
  })

  for (const permission of ['c', 'r', 'u', 'd', 's'] as const)
    it(`asks where a panel decides about ${permission} alone`, async () => {
      const access: Access = { filterFor: (_type, it: Permission) => (it === permission ? [{ panel }] : []) }
      const { judge, asked } = await judging(access, [condition('c', 'ann')])
      assert.deepEqual([asked, judge.lasts], [[['ann']], false])
      assert(judge.reaches(permission, condition('c', 'ann')))
      assert(!judge.reaches(permission, condition('c', 'bob')))
    })

  it('asks once, about all whom the resources name, also inside, and about a stand-in only where they name nobody', async () => {
    const contained = [condition('i', 'dan'), { id: 'no type' }]
    const resources = [
      condition('c', 'ann', { contained, asserter: { reference: 'Patient/bob' } }),
      patient('eve'),
    ]
    assert.deepEqual((await judging(panelled, resources, 'x')).asked, [['ann', 'bob', 'dan', 'eve']])
    const nobodys = { resourceType: 'Condition' }
    assert.deepEqual((await judging(panelled, [nobodys], 'x')).asked, [['x']])
    assert.deepEqual((await judging(panelled, [nobodys])).asked, [[]])
  })

  it('is the trouble of whoever was asked', async () => {
    const away: Problem = fail({ problem: 'upstream-away' })
    const context = { baseUrl: 'http://fhir.test/fhir', rosterOf: async () => away } as unknown as Context
    assert.equal(await judgeOf(context, { access: panelled } as Call, [condition('c', 'ann')]), away)
  })

  it('looks into everything that a resource contains', async () => {
    const holding = (...of: unknown[]) => condition('c', 'ann', { contained: of })
    for (const access of [ann, panelled]) {
      const { judge } = await judging(access, [holding(condition('i', 'ann'))])
      assert(judge.reaches('r', holding(condition('i', 'ann'), { resourceType: 'Medication' })))
      for (const other of [condition('i', 'bob'), 'text', { id: 'no type' }])
        assert(!judge.reaches('r', holding(condition('i', 'ann'), other)), JSON.stringify(other))
      assert(!judge.reaches('r', condition('c', 'ann', { contained: condition('i', 'ann') })))
    }
    const { judge } = await judging(panelled, [holding(condition('i', 'zoe'))])
    assert(judge.reaches('r', holding(condition('i', 'zoe'))))
  })

  it('takes nobody to be on a panel about whom it did not ask', async () => {
    const { judge } = await judging(panelled, [])
    assert(judge.reaches('r', condition('c', 'zoe')))
    assert(!judge.reaches('r', condition('c', 'zoe', { contained: [condition('i', 'ann')] })))
    assert(!judge.reaches('r', condition('c', 'ann')))
  })

  it('never reaches what is kept elsewhere, whoever asks', async () => {
    const { judge } = await judging(fullAccess, [])
    assert(!judge.reaches('r', { resourceType: 'AuditEvent', id: '1' }))
  })
})
