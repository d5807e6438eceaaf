import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { takeRandomBytes } from './random.ts'

describe('takeRandomBytes', () => {
  it('never returns the same bytes twice, also where its supply ends', () => {
    const taken = Array.from({ length: 2_000 }, () => takeRandomBytes(12))
    assert.ok(taken.every(it => it.length === 12))
    assert.equal(new Set(taken.map(it => Buffer.from(it).toString('hex'))).size, taken.length)
  })

  it('returns as many bytes as are asked for', () => assert.equal(takeRandomBytes(10_000).length, 10_000))
})
