import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { describe, it } from 'node:test'
import { JsonSkimmer, OMITTED, readPartial } from './skim-json.ts'
import { streamContent } from './stream-content.ts'

/** The bytes of a text in chunks of a size. */
function split(text: string, size: number): readonly Buffer[] {
  const bytes = Buffer.from(text)
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
    bytes.subarray(at * size, (at + 1) * size),
  )
}

function skim(text: string, size: number, longest: number): string {
  const skimmer = new JsonSkimmer({ longest, replace: () => '*' })
  for (const chunk of split(text, size)) skimmer.push(chunk)
  return skimmer.finish()
}

const SIZES = [1, 2, 3, 5, 7, 16, 1_000]

describe('JsonSkimmer', () => {
  const STRINGS = ['', 'a', '0123456789', '"'.repeat(9), '\\'.repeat(8), '\\"\\', 'é€\u{1f600}'.repeat(3)]
  const value = { a: STRINGS, b: STRINGS.map(it => ({ [`k${it.length}`]: it })), c: [1, true, null] }

  for (const size of SIZES)
    it(`replaces the long strings and nothing else, in chunks of ${size}`, () => {
      for (const space of [0, 2]) {
        const text = JSON.stringify(value, undefined, space)
        assert.equal(skim(text, size, 1_000), text)
        const isLong = (it: unknown) =>
          typeof it === 'string' && Buffer.byteLength(JSON.stringify(it)) - 2 > 8
        const expected = JSON.stringify(value, (_key, it) => (isLong(it) ? '*' : it), space)
        assert.equal(skim(text, size, 8), expected)
      }
    })

  it('passes the bytes of replaced strings on, and asks by the text before them', () => {
    const text = '{"data" : "0123456789","text":"0123456789","x":{"data":"abcdefghij"}}'
    for (const size of SIZES) {
      const added: string[] = []
      const skimmer = new JsonSkimmer({
        longest: 4,
        replace(before) {
          if (!/"data"\s*:\s*$/.test(before)) return undefined
          added.push('')
          return `#${added.length}`
        },
        add: bytes => added.push(`${added.pop()}${bytes}`),
      })
      for (const chunk of split(text, size)) skimmer.push(chunk)
      assert.equal(skimmer.finish(), '{"data" : "#1","text":"0123456789","x":{"data":"#2"}}')
      assert.deepEqual(added, ['0123456789', 'abcdefghij'])
    }
  })
})

describe('readPartial', () => {
  it('leaves out the members that were long, and marks the resource as incomplete', () => {
    const text = `{"resourceType":"Binary","id":"b","contentType":"a/b","data":"${OMITTED}","x":[1.50,"${OMITTED}"]}`
    const partial = readPartial(text)
    assert.deepEqual(partial?.resource, {
      resourceType: 'Binary',
      id: 'b',
      contentType: 'a/b',
      x: [1.5],
    })
    assert.match(partial?.text ?? '', /"x":\[1\.50\].*"code":"SUBSETTED"/)
    assert.equal(readPartial('{"resourceType":"Binary","data":"AAAA"}'), undefined)
  })
})

describe('streamContent', () => {
  const bytes = Buffer.from(Array.from({ length: 1_000 }, (_, at) => (at * 7919) % 256))
  const base64 = bytes.toString('base64')
  const WRITTEN = {
    plain: base64,
    'escaped slashes': base64.replaceAll('/', '\\/'),
    'escaped plus signs': base64.replaceAll('+', '\\u002B'),
    lines: base64.replace(/.{76}/g, '$&\\r\\n'),
  }
  for (const [name, data] of Object.entries(WRITTEN))
    it(`decodes base64 in chunks: ${name}`, async () => {
      const json = `{"resourceType":"Binary","meta":{"x":"data"},"contentType":"application/pdf","data":"${data}"}`
      for (const size of SIZES) {
        const content = streamContent('{"contentType":"application/pdf"}', Readable.from(split(json, size)))
        assert.equal(content.contentType, 'application/pdf')
        assert.ok(content.bytes instanceof Readable)
        assert.deepEqual(await buffer(content.bytes), bytes)
      }
    })
})
