import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { splitDocument } from './split-document.ts'
import { chunked, collected } from './testing/files.ts'

const split = async (text: string, size = 5, limit = 10_000) =>
  collected(splitDocument(chunked(Buffer.from(text), size), limit))

const items = (parts: Awaited<ReturnType<typeof split>>) =>
  parts.flatMap(part => (part.kind === 'item' ? [JSON.parse(part.bytes.toString()) as unknown] : []))

const frame = (parts: Awaited<ReturnType<typeof split>>) => {
  const last = parts.at(-1)
  return last?.kind === 'frame' ? (JSON.parse(last.bytes.toString()) as unknown) : last
}

describe('splitDocument', () => {
  it('splits a Bundle into its entries, and keeps the other elements', async () => {
    const parts = await split(
      '{ "resourceType": "Bundle", "entry": [ {"a": [1, {"b": "]}"}]}, {"c": "\\""} ], "type": "batch" }',
    )
    assert.deepEqual(items(parts), [{ a: [1, { b: ']}' }] }, { c: '"' }])
    assert.deepEqual(frame(parts), { resourceType: 'Bundle', entry: [], type: 'batch' })
  })

  it('reports the first line of each entry', async () => {
    const parts = await split('{\n"entry":\n[\n{"a":\n1},\n\n{"b":2}\n]}')
    assert.deepEqual(
      parts.map(part => (part.kind === 'item' ? part.line : part.kind)),
      [4, 7, 'frame'],
    )
  })

  it('reads only the `entry` of the root as the list', async () => {
    const parts = await split(
      '{"meta": {"entry": [{"x": 1}]}, "note": "entry", "other": [{"y": 2}], "entry": [{"z": 3}]}',
    )
    assert.deepEqual(items(parts), [{ z: 3 }])
    assert.deepEqual(frame(parts), {
      meta: { entry: [{ x: 1 }] },
      note: 'entry',
      other: [{ y: 2 }],
      entry: [],
    })
  })

  it('splits an array into its items', async () => {
    const parts = await split(' [{"a":1},\n{"b":[{}]}] ')
    assert.deepEqual(items(parts), [{ a: 1 }, { b: [{}] }])
    assert.deepEqual(frame(parts), [])
  })

  it('skips an item beyond the limit, and continues', async () => {
    const parts = await split(`{"entry":[{"a":"${'x'.repeat(99)}"},{"b":1}]}`, 7, 50)
    assert.deepEqual(
      parts.map(part => part.kind),
      ['too-long', 'item', 'frame'],
    )
  })

  for (const [name, text, reason] of [
    ['that is cut off in an entry', '{"entry":[{"a":1},{"b', /ends early/],
    ['that is cut off in a string', '{"a":"x', /ends early/],
    ['that is followed by something', '{"a":1} x', /follows/],
    ['that is followed by another', '{"a":1}\n{"b":2}', /follows/],
    ['that closes more than it opens', '{"a":1}}', /follows/],
    ['that is empty', '', /ends early/],
  ] as const) {
    it(`reports a document ${name}`, async () => {
      const last = (await split(text)).at(-1)
      assert.equal(last?.kind, 'broken')
      assert.match(last?.kind === 'broken' ? last.reason : '', reason)
    })
  }

  it('returns the same pieces for any JSON, however the bytes are split', async () => {
    const entries = fc.array(fc.dictionary(fc.string(), fc.jsonValue()), { maxLength: 6 })
    const rest = fc.dictionary(
      fc.string().filter(key => key !== 'entry' && key !== '__proto__'),
      fc.jsonValue(),
    )
    const spaces = fc.constantFrom(0, 2)
    await fc.assert(
      fc.asyncProperty(
        entries,
        rest,
        spaces,
        fc.integer({ min: 1, max: 40 }),
        async (entry, others, indent, size) => {
          const text = JSON.stringify({ ...others, entry }, null, indent)
          const parts = await split(text, size)
          assert.deepEqual(items(parts), JSON.parse(JSON.stringify(entry)))
          assert.deepEqual(frame(parts), JSON.parse(JSON.stringify({ ...others, entry: [] })))
        },
      ),
    )
  })
})
