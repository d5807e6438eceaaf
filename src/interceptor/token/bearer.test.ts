import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { readBearer } from './bearer.ts'

describe('readBearer', () => {
  it('reads a token whatever the case of the scheme', () => {
    for (const header of ['Bearer a.b.c', 'bearer a.b.c', 'BEARER   a.b.c '])
      assert.deepEqual(readBearer(header), { kind: 'token', token: 'a.b.c' })
  })

  it('finds none elsewhere', () => {
    for (const header of [
      undefined,
      '',
      'Bearer',
      'Bearer ',
      'Basic YTpi',
      'xBearer a',
      'Bearera.b.c',
      'a.b.c',
    ])
      assert.deepEqual(readBearer(header), { kind: 'none' }, String(header))
  })

  it('reads none that is longer than 12288 characters', () => {
    const longest = 'a'.repeat(12_288)
    assert.deepEqual(readBearer(`Bearer ${longest}`), { kind: 'token', token: longest })
    assert.deepEqual(readBearer(`Bearer ${longest}a`), { kind: 'too-long' })
  })
})
