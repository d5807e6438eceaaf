import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { encodeDocument } from './compress.ts'

describe('encodeDocument', () => {
  it('encodes a document once in each encoding, and again when it has changed (HTTP-12)', async () => {
    const encode = (text: string) =>
      Promise.all(([undefined, 'gzip', 'br'] as const).map(it => encodeDocument('capabilities', text, it)))
    const first = await encode('{"a":1}')
    const again = await encode('{"a":1}')
    for (const [at, bytes] of first.entries()) assert.equal(again[at], bytes)
    const [plain, gzip, brotli] = await encode('{"a":2}')
    assert.ok(plain && gzip && brotli)
    for (const bytes of [plain, gunzipSync(gzip), brotliDecompressSync(brotli)])
      assert.equal(String(bytes), '{"a":2}')
  })
})
