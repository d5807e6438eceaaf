import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { describe, it } from 'node:test'
import { fullAccess, noAccess } from '../smart/index.ts'
import { createAccessCache } from './access-cache.ts'

describe('createAccessCache', () => {
  it('finds content by access filter, permission, resource and the whole text', () => {
    const cache = createAccessCache()
    cache.add(fullAccess, 'rPatient/1', '{}', {})
    assert(cache.find(fullAccess, 'rPatient/1', '{}'))
    assert.equal(cache.find(noAccess, 'rPatient/1', '{}'), undefined)
    assert.equal(cache.find(fullAccess, 'uPatient/1', '{}'), undefined)
    assert.equal(cache.find(fullAccess, 'rPatient/1', '{ }'), undefined)
    assert(cache.find(fullAccess, 'rPatient/1', '{}'))
  })

  it('finds only the text that was checked last for a resource', () => {
    const cache = createAccessCache()
    cache.add(fullAccess, 'a', 'old', {})
    cache.add(fullAccess, 'a', 'new', {})
    assert.equal(cache.find(fullAccess, 'a', 'old'), undefined)
    assert(cache.find(fullAccess, 'a', 'new'))
  })

  it('remembers the version that the text states', () => {
    const cache = createAccessCache()
    cache.add(fullAccess, 'a', '{}', { etag: 'W/"1"', lastModified: 5 })
    assert.deepEqual(cache.find(fullAccess, 'a', '{}'), { etag: 'W/"1"', lastModified: 5 })
  })

  it('holds a limited number of entries', () => {
    const cache = createAccessCache({ entries: 4 })
    for (const place of ['a', 'b', 'c']) cache.add(fullAccess, place, '{}', {})
    assert(cache.find(fullAccess, 'a', '{}'))
    for (const place of ['d', 'e']) cache.add(fullAccess, place, '{}', {})
    const kept = ['a', 'b', 'c', 'd', 'e'].filter(place => cache.find(fullAccess, place, '{}'))
    assert.deepEqual(kept, ['a', 'd', 'e'])
  })

  it('keeps recently used entries', () => {
    const cache = createAccessCache({ entries: 4 })
    cache.add(fullAccess, 'a', '{}', {})
    for (const place of ['b', 'c', 'd', 'e', 'f', 'g']) {
      cache.add(fullAccess, place, '{}', {})
      assert(cache.find(fullAccess, 'a', '{}'), place)
    }
    assert.equal(cache.find(fullAccess, 'b', '{}'), undefined)
  })

  it('holds a limited number of characters', () => {
    const cache = createAccessCache({ characters: 40 })
    for (const place of ['a', 'b', 'c']) cache.add(fullAccess, place, '0123456789', {})
    assert(cache.find(fullAccess, 'c', '0123456789'))
    for (const place of ['d', 'e']) cache.add(fullAccess, place, '0123456789', {})
    assert.equal(cache.find(fullAccess, 'a', '0123456789'), undefined)
  })

  it('stores a long text as its digest', () => {
    const cache = createAccessCache()
    const text = 'x'.repeat(10_000)
    cache.add(fullAccess, 'a', `${text}1`, {})
    assert(cache.find(fullAccess, 'a', `${text}1`))
    assert.equal(cache.find(fullAccess, 'a', `${text}2`), undefined)
    assert.equal(cache.find(fullAccess, 'a', hash('sha256', `${text}1`, 'base64url')), undefined)
  })
})
