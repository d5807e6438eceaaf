import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { LineWriter } from './line.ts'

const BASE = 'http://localhost:8080/fhir'

function write(lines: readonly string[]): readonly Buffer[] {
  const writer = new LineWriter(BASE)
  const pieces = [...lines.map(line => writer.add(line)), writer.take()]
  return pieces.filter(it => it !== undefined)
}

describe('LineWriter', () => {
  it('returns every line, whatever its characters and its length, in pieces of whole lines', () => {
    const lines = Array.from({ length: 2_000 }, (_, at) => {
      const character = ['a', 'é', '日', '😀'][at % 4] ?? ''
      return `"${character.repeat(at % 500 === 0 ? 100_000 : at % 97)}"`
    })
    const pieces = write(lines)
    assert.equal(Buffer.concat(pieces).toString(), lines.map(it => `${it}\n`).join(''))
    assert(pieces.length > 2)
    for (const piece of pieces) assert.equal(piece.at(-1), 10)
  })

  it('returns no bytes twice, and none of lines that come later', () => {
    const writer = new LineWriter(BASE)
    writer.add('first')
    const first = writer.take()
    writer.add('later')
    assert.deepEqual([String(first), String(writer.take()), writer.take()], ['first\n', 'later\n', undefined])
  })

  it('makes the URLs of attachments absolute, and changes nothing else (EXPORT-2)', () => {
    const text = JSON.stringify({ text: '"url":"Binary/a"', reference: 'Binary/b', other: 'url:Binary/c' })
    const [piece] = write([text, '{"url":"Binary/a","other":{"url" : "Binary/b"}}'])
    assert.equal(String(piece), `${text}\n{"url":"${BASE}/Binary/a","other":{"url" : "${BASE}/Binary/b"}}\n`)
  })
})
