import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { judgedBefore } from './judged-before.ts'
import { fullAccess, noAccess } from './reach.ts'

describe('judgedBefore', () => {
  it('knows a judgement by its grant, its place and every byte', () => {
    const judged = judgedBefore()
    const name = judged.name(fullAccess, 'rPatient/1 ', '{}')
    judged.remember(name, { versionId: '1' })
    assert.deepEqual(judged.recall(name), { versionId: '1', lastUpdated: undefined })
    for (const other of [
      judged.name(noAccess, 'rPatient/1 ', '{}'),
      judged.name(fullAccess, 'uPatient/1 ', '{}'),
      judged.name(fullAccess, 'rPatient/1 ', '{ }'),
    ])
      assert.equal(judged.recall(other), undefined)
    assert.equal(judged.name(fullAccess, 'rPatient/1 ', '{}'), name)
  })

  it('keeps so many and no more, and nothing of what they were about', () => {
    const judged = judgedBefore(4)
    const meta = { versionId: '1', lastUpdated: 'x', security: [{ code: 'R' }] }
    for (const name of ['a', 'b', 'c']) judged.remember(name, meta)
    assert.deepEqual(judged.recall('a'), { versionId: '1', lastUpdated: 'x' })
    for (const name of ['d', 'e']) judged.remember(name, meta)
    const kept = ['a', 'b', 'c', 'd', 'e'].filter(name => judged.recall(name))
    assert.deepEqual(kept, ['a', 'd', 'e'])
  })

  it('keeps what is asked for again', () => {
    const judged = judgedBefore(4)
    judged.remember('a', {})
    for (const name of ['b', 'c', 'd', 'e', 'f', 'g']) {
      judged.remember(name, {})
      assert(judged.recall('a'), name)
    }
    assert.equal(judged.recall('b'), undefined)
  })
})
