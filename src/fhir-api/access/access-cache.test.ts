import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { fullAccess, noAccess } from '../../smart/index.ts'
import { computeDigest, createAccessCache } from './access-cache.ts'

describe('createAccessCache', () => {
  it('knows content by the access, the permission, the resource and the whole text', () => {
    const cache = createAccessCache()
    cache.add(fullAccess, 'rPatient/1', '{}')
    assert(cache.find(fullAccess, 'rPatient/1', '{}'))
    assert.equal(cache.find(noAccess, 'rPatient/1', '{}'), undefined)
    assert.equal(cache.find(fullAccess, 'uPatient/1', '{}'), undefined)
    assert.equal(cache.find(fullAccess, 'rPatient/1', '{ }'), undefined)
    assert(cache.find(fullAccess, 'rPatient/1', '{}'))
  })

  it('knows the text that was checked last for a resource', () => {
    const cache = createAccessCache()
    cache.add(fullAccess, 'a', 'old')
    cache.add(fullAccess, 'a', 'new')
    assert.equal(cache.find(fullAccess, 'a', 'old'), undefined)
    assert(cache.find(fullAccess, 'a', 'new'))
  })

  it('remembers the version that the text states', () => {
    const cache = createAccessCache()
    cache.add(fullAccess, 'a', '{}', { etag: 'W/"1"', lastModified: 5 })
    assert.deepEqual(cache.find(fullAccess, 'a', '{}'), { etag: 'W/"1"', lastModified: 5 })
  })

  it('holds a limited number', () => {
    const cache = createAccessCache(4)
    for (const place of ['a', 'b', 'c']) cache.add(fullAccess, place, '{}')
    assert(cache.find(fullAccess, 'a', '{}'))
    for (const place of ['d', 'e']) cache.add(fullAccess, place, '{}')
    const kept = ['a', 'b', 'c', 'd', 'e'].filter(place => cache.find(fullAccess, place, '{}'))
    assert.deepEqual(kept, ['a', 'd', 'e'])
  })

  it('keeps what is used again', () => {
    const cache = createAccessCache(4)
    cache.add(fullAccess, 'a', '{}')
    for (const place of ['b', 'c', 'd', 'e', 'f', 'g']) {
      cache.add(fullAccess, place, '{}')
      assert(cache.find(fullAccess, 'a', '{}'), place)
    }
    assert.equal(cache.find(fullAccess, 'b', '{}'), undefined)
  })

  it('knows a text by the given mark, by default its digest', () => {
    assert.equal(computeDigest('{}').length, 43)
    const cache = createAccessCache(4, text => text.slice(0, 1))
    cache.add(fullAccess, 'a', 'ab')
    assert(cache.find(fullAccess, 'a', 'ac'))
    assert.equal(cache.find(fullAccess, 'a', 'bb'), undefined)
  })
})
