import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { splitLines } from './read-lines.ts'
import { chunked, collected } from './testing/files.ts'

const read = async (text: string, size: number, limit = 1000) =>
  (await collected(splitLines(chunked(Buffer.from(text), size), limit))).map(line =>
    line.kind === 'text'
      ? `${line.number}:${line.bytes.toString().replace('\r', '')}`
      : `${line.number}:too long`,
  )

describe('splitLines', () => {
  it('counts lines from 1 and skips blank ones', async () => {
    assert.deepEqual(await read('a\n\n  \nb\n', 3), ['1:a', '4:b'])
  })

  it('reads a last line without its end, and CRLF', async () => {
    assert.deepEqual(await read('a\r\nb', 2), ['1:a', '2:b'])
    assert.deepEqual(await read('', 2), [])
  })

  it('reports only the number of a line beyond the limit, and continues', async () => {
    assert.deepEqual(await read(`a\n${'x'.repeat(50)}\nb`, 7, 10), ['1:a', '2:too long', '3:b'])
    assert.deepEqual(await read('x'.repeat(50), 7, 10), ['1:too long'])
    assert.deepEqual(await read('x'.repeat(10), 7, 10), [`1:${'x'.repeat(10)}`])
  })

  it('returns the same lines however the bytes are split', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.stringMatching(/^[a-zé ]{0,12}$/)),
        fc.integer({ min: 1, max: 9 }),
        async (lines, size) => {
          const expected = lines
            .map((line, at) => `${at + 1}:${line}`)
            .filter((_, at) => lines[at]?.trim() !== '')
          assert.deepEqual(await read(lines.join('\n'), size), expected)
        },
      ),
    )
  })
})
