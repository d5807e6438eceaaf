import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { countDownloads } from './open-exports.ts'

describe('countDownloads', () => {
  it('lets a client have two downloads at a time, and others their own (EXPORT-9)', () => {
    const downloads = countDownloads()
    const one = { issuer: '', client: 'one' }
    const first = downloads.take(one)
    assert(first && downloads.take(one))
    assert.equal(downloads.take(one), undefined)
    assert(downloads.take({ issuer: 'https://other', client: 'one' }))
    first()
    assert(downloads.take(one))
    assert.equal(downloads.take(one), undefined)
  })
})
