import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { measureGrowth } from '../../test/support/growth.ts'
import { closeBundle, formatExact, isSameJson, parseExact, splitBundle, toPlain } from './json.ts'

const DECIMALS = [
  '7.00',
  '0.10',
  '1.0e3',
  '1E5',
  '-0.0',
  '-0',
  '12345678901234567.89',
  '1e-400',
  '0.0000001',
  '-1.50',
  '12345678901234567890',
  '0.30000000000000004000',
  '1.5',
  '7',
  '-3',
  '0',
  '1e+2',
]

describe('exact JSON', () => {
  it('keeps the digits of every number anywhere in a document', () => {
    for (const digits of DECIMALS)
      for (const text of [`{"a":${digits}}`, `[${digits},${digits}]`, `{"a":[1,{"b":${digits},"c":"x"}]}`])
        assert.equal(formatExact(parseExact(text)), text)
    assert.equal(formatExact(parseExact('{ "a" : 1.50 ,\n"b":[ 2.0 ]\t}')), '{"a":1.50,"b":[2.0]}')
  })

  it('converts to plain numbers and shares parts without marked decimals', () => {
    for (const digits of DECIMALS) assert.deepEqual(toPlain(parseExact(`[${digits}]`)), [Number(digits)])
    const value = { a: [1, { b: 'x' }], c: null }
    assert.equal(toPlain(value), value)
    const own = toPlain(parseExact('{"__proto__":{"a":1.0}}'))
    assert.deepEqual(Object.keys(own as object), ['__proto__'])
  })

  it('does not change strings', () => {
    for (const text of [
      '{"a":"b: 1.50, c","d":1.50}',
      '{"a":"\\"","b":1.50,"c":" 2.50 "}',
      '{"a":"\\\\","b":[1.50,"\\\\\\", 1.50 "]}',
      '{"x: 1.50 ":"","y":[" -0 "]}',
    ])
      assert.equal(formatExact(parseExact(text)), text)
  })

  it('accepts and parses the same texts as JSON.parse', () => {
    for (const text of ['[01.50]', '[1.]', '[.50]', '[1.50', '["1.50]', '[+1.50]', '[1.50e]', '{"a":1.50,}'])
      assert.throws(() => parseExact(text), SyntaxError, text)
    assert.equal(formatExact(parseExact('{"a":1.50,"a":2.50}')), '{"a":2.50}')
  })

  it('compares decimals by their value, to the last digit', () => {
    const same = (a: string, b: string) => isSameJson(parseExact(`[${a}]`), parseExact(`[${b}]`), () => true)
    for (const [a, b] of [
      ['7.00', '7'],
      ['7.00', '7.0'],
      ['1.0e3', '1000'],
      ['-0.0', '0'],
      ['0.00012', '1.2e-4'],
    ] as const)
      assert.ok(same(a, b), `${a} ${b}`)
    for (const [a, b] of [
      ['12345678901234567.89', '12345678901234567.88'],
      ['1e-400', '0'],
      ['1.50', '"1.50"'],
      ['1.50', '-1.50'],
      ['{"a":1.0}', '{"b":1.0}'],
      ['{"a":1}', '{"a":1,"b":1}'],
      ['[1]', '[1,1]'],
      ['null', '{}'],
    ] as const)
      assert.ok(!same(a, b), `${a} ${b}`)
    assert.ok(same('{"a":[1.0,"x",null,true]}', '{"a":[1,"x",null,true]}'))
  })

  it('compares a decimal in time that is linear in the number of its digits (LIMIT-7)', () => {
    const compare = (zeros: number) => isSameJson(parseExact(`[1.${'0'.repeat(zeros)}1]`), [1], () => true)
    const grown = measureGrowth(compare, 3_000)
    assert.ok(grown < 8, `${grown} times as long`)
  })

  it('takes about as long as JSON.parse for any number of decimals', () => {
    const text = JSON.stringify(Array.from({ length: 20_000 }, () => ({ code: 'x', value: 1.5 })))
    const marked = text.replaceAll('1.5', '1.50')
    const quickest = (work: () => unknown) =>
      Math.min(
        ...Array.from({ length: 5 }, () => {
          const begin = performance.now()
          work()
          return performance.now() - begin
        }),
      )
    const ratio = quickest(() => parseExact(marked)) / quickest(() => JSON.parse(text))
    assert.ok(ratio < 20, `${ratio} times as long`)
  })
})

describe('splitBundle', () => {
  /** The text of the resource of each entry. */
  function split(text: string): readonly (string | undefined)[] {
    const found = splitBundle(text)
    if (typeof found === 'string') throw new Error(found)
    const { entry } = found.bundle as { readonly entry: readonly { readonly resource?: number }[] }
    return entry.map(({ resource }) => (resource === undefined ? resource : found.texts[resource]))
  }

  it('returns each resource as it was received', () => {
    const texts = ['{"a":1.50,"b":"}]\\"{"}', '{ "resource" : { "resource" : [] } }', '{}']
    const [first, second, third] = texts
    const entries = `[{"search":{"mode":"match"},"resource":${first}},{"fullUrl":"u","resource"\n: ${second} },{"resource":${third}},{}]`
    for (const text of [
      `{"entry":${entries}}`,
      `{"meta":{"tag":[{"resource":{}}]},"entry" : ${entries},"total":1}`,
    ])
      assert.deepEqual(split(text), [...texts, undefined])
  })

  it('takes the last of several members of a name, like JSON.parse', () => {
    assert.deepEqual(split('{"entry":[{"resource":{"a":1},"resource":{"b":2}}]}'), ['{"b":2}'])
    assert.deepEqual(split('{"entry":[{"resource":{"a":1}}],"entry":[{"resource":{"b":2}}]}'), ['{"b":2}'])
    assert.deepEqual(split('{"entry":[{"resource":{"a":1},"x\\"resource":{"b":2}}]}'), ['{"a":1}'])
  })

  it('leaves no invalid JSON unnoticed', () => {
    for (const text of [
      '{"entry":[{"resource":{]}]}',
      '{"entry":[{"resource":{"a":1}}',
      '{"entry":[{"resource":{}]}}',
      '{"entry":[{"resource":{}{}}]}',
      '{"entry":[{resource:{}}]}',
      '{"entry":[{"resource":{"a":"}}]}',
    ])
      assert.throws(() => split(text).map(it => JSON.parse(it ?? 'null')), SyntaxError, text)
  })

  it('names the limit that a text exceeds', () => {
    assert.match(String(splitBundle('['.repeat(501))), /more than 500 levels/)
    assert.match(String(splitBundle('{"entry":[{},{}]}', 3)), /more than 3 values/)
  })
})

describe('closeBundle', () => {
  it('returns the complete entries before any cut', () => {
    const entry = [
      { fullUrl: 'urn:a', resource: { text: 'a "]}{" \\', list: [{}, [1]] }, search: { mode: 'match' } },
      { resource: { resource: { entry: [] } } },
      {},
    ]
    const text = JSON.stringify({ meta: { tag: [{ code: 'x' }] }, link: [{ relation: 'self' }], entry })
    const ends = entry.map((_, at) => text.indexOf(JSON.stringify(entry.slice(0, at + 1)).slice(0, -1)))
    const lengths = entry.map((_, at) => JSON.stringify(entry.slice(0, at + 1)).length - 1)
    for (let cut = (ends[0] ?? 0) + (lengths[0] ?? 0); cut < text.length; cut++) {
      const complete = entry.filter((_, at) => (ends[at] ?? 0) + (lengths[at] ?? 0) <= cut)
      const closed = JSON.parse(closeBundle(text.slice(0, cut)) ?? '{}')
      assert.deepEqual(closed.entry, complete, text.slice(0, cut))
    }
  })

  it('returns nothing if there is no entry, or too much to read', () => {
    assert.equal(closeBundle('{"resourceType":"Bundle","entry":[{"resource":{"a":"b'), undefined)
    assert.equal(closeBundle('{"entry":[{"a":[1,2,3]},', 3), undefined)
  })
})
