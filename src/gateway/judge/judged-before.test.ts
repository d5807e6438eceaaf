import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { fullAccess, noAccess } from '../../consent/index.ts'
import { judgedBefore } from './judged-before.ts'

describe('judgedBefore', () => {
  it('knows a judgement by its grant, its place and every byte', () => {
    const judged = judgedBefore()
    const name = judged.name(fullAccess, 'rPatient/1 ', Buffer.from('{}'))
    judged.remember(name, { versionId: '1' })
    assert.deepEqual(judged.recall(name), { versionId: '1', lastUpdated: undefined })
    for (const other of [
      judged.name(noAccess, 'rPatient/1 ', Buffer.from('{}')),
      judged.name(fullAccess, 'uPatient/1 ', Buffer.from('{}')),
      judged.name(fullAccess, 'rPatient/1 ', Buffer.from('{ }')),
    ])
      assert.equal(judged.recall(other), undefined)
    assert.equal(judged.name(fullAccess, 'rPatient/1 ', Buffer.from('{}')), name)
  })

  it('keeps so many and no more, and nothing of what they were about', () => {
    const judged = judgedBefore(2)
    const meta = { versionId: '1', lastUpdated: 'x', security: [{ code: 'R' }] }
    for (const name of ['a', 'b', 'c']) judged.remember(name, meta)
    assert.deepEqual(
      ['a', 'b', 'c'].map(name => judged.recall(name)),
      [undefined, { versionId: '1', lastUpdated: 'x' }, { versionId: '1', lastUpdated: 'x' }],
    )
  })
})
