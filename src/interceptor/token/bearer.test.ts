import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { readBearer } from './verifier.ts'

describe('readBearer', () => {
  it('reads a token after a scheme in any case (BEARER-2)', () => {
    for (const header of ['Bearer a.b.c', 'bearer a.b.c', 'BEARER   a.b.c '])
      assert.deepEqual(readBearer(header), { kind: 'token', token: 'a.b.c' })
  })

  it('finds no token in other headers', () => {
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

  it('rejects a token longer than 12288 characters', () => {
    const longest = 'a'.repeat(12_288)
    assert.deepEqual(readBearer(`Bearer ${longest}`), { kind: 'token', token: longest })
    assert.deepEqual(readBearer(`Bearer ${longest}a`), { kind: 'too-long' })
  })
})
