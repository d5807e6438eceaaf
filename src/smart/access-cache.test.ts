import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { computeDigest, createAccessCache } from './access-cache.ts'
import { fullAccess, noAccess } from './access-filter.ts'

describe('judgedBefore', () => {
  it('knows a judgement by its grant, its place and every permission', () => {
    const judged = createAccessCache()
    judged.remember(fullAccess, 'rPatient/1', '{}', { versionId: '1' })
    assert.deepEqual(judged.recall(fullAccess, 'rPatient/1', '{}'), {
      versionId: '1',
      lastUpdated: undefined,
    })
    assert.equal(judged.recall(noAccess, 'rPatient/1', '{}'), undefined)
    assert.equal(judged.recall(fullAccess, 'uPatient/1', '{}'), undefined)
    assert.equal(judged.recall(fullAccess, 'rPatient/1', '{ }'), undefined)
    assert.notEqual(judged.recall(fullAccess, 'rPatient/1', '{}'), undefined)
  })

  it('knows of a place what was judged there last', () => {
    const judged = createAccessCache()
    judged.remember(fullAccess, 'a', 'old')
    judged.remember(fullAccess, 'a', 'new')
    assert.equal(judged.recall(fullAccess, 'a', 'old'), undefined)
    assert.deepEqual(judged.recall(fullAccess, 'a', 'new'), { versionId: undefined, lastUpdated: undefined })
  })

  it('keeps so many and no more, and nothing of what they were about', () => {
    const judged = createAccessCache(4)
    const meta = { versionId: '1', lastUpdated: 'x', security: [{ code: 'R' }] }
    for (const place of ['a', 'b', 'c']) judged.remember(fullAccess, place, '{}', meta)
    assert.deepEqual(judged.recall(fullAccess, 'a', '{}'), { versionId: '1', lastUpdated: 'x' })
    for (const place of ['d', 'e']) judged.remember(fullAccess, place, '{}', meta)
    const kept = ['a', 'b', 'c', 'd', 'e'].filter(place => judged.recall(fullAccess, place, '{}'))
    assert.deepEqual(kept, ['a', 'd', 'e'])
  })

  it('keeps what is asked for again', () => {
    const judged = createAccessCache(4)
    judged.remember(fullAccess, 'a', '{}')
    for (const place of ['b', 'c', 'd', 'e', 'f', 'g']) {
      judged.remember(fullAccess, place, '{}')
      assert(judged.recall(fullAccess, 'a', '{}'), place)
    }
    assert.equal(judged.recall(fullAccess, 'b', '{}'), undefined)
  })

  it('knows a text by the mark that it is given, by its digest unless told', () => {
    assert.equal(computeDigest('{}').length, 43)
    const judged = createAccessCache(4, text => text.slice(0, 1))
    judged.remember(fullAccess, 'a', 'ab')
    assert(judged.recall(fullAccess, 'a', 'ac'))
    assert.equal(judged.recall(fullAccess, 'a', 'bb'), undefined)
  })
})
