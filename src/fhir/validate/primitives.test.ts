import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { primitives } from './primitives.ts'

/** For each type its valid and its invalid values. */
const table: Readonly<
  Record<string, { readonly good: readonly unknown[]; readonly bad: readonly unknown[] }>
> = {
  boolean: { good: [true, false], bad: ['true', 0, null] },
  integer: { good: [0, -5, 2_147_483_647], bad: ['1', 1.5, 2_147_483_648, Number.NaN] },
  unsignedInt: { good: [0, 7], bad: [-1, '0'] },
  positiveInt: { good: [1], bad: [0, -1, '1'] },
  decimal: { good: [0, 1.5, -1e9], bad: ['1.5', null, Number.POSITIVE_INFINITY] },
  string: { good: ['x', ' x\ty\r\n', '日本', '😀'], bad: ['', 7, 'a\u0000b', '\u0007', 'a\ud800b'] },
  markdown: { good: ['*x*\n'], bad: ['', '\u0001'] },
  code: { good: ['a', 'a b', 'a-b'], bad: ['', ' a', 'a ', 'a  b', 7, 'a\u0000b', '\udc00'] },
  id: { good: ['a', 'A-1.b', 'x'.repeat(64)], bad: ['', 'a_b', 'a/b', 'x'.repeat(65), 'a\n', 7] },
  uri: { good: ['http://x.example/a?b#c', 'urn:x', 'a'], bad: ['', 'a b', 7, 'urn:\u0000', 'urn:\ud800'] },
  url: { good: ['http://x.example'], bad: ['', 'a b'] },
  canonical: { good: ['http://x.example|1.0'], bad: ['', 'a b'] },
  oid: { good: ['urn:oid:1.2.3'], bad: ['1.2.3', 'urn:oid:3.1', 'urn:oid:1.02'] },
  uuid: {
    good: ['urn:uuid:c757873d-ec9a-4326-a141-556f43239520'],
    bad: [
      'c757873d-ec9a-4326-a141-556f43239520',
      'urn:uuid:C757873D-EC9A-4326-A141-556F43239520',
      'urn:uuid:x',
    ],
  },
  date: {
    good: ['2020', '2020-02', '2020-02-29', '0001-01-01'],
    bad: ['20', '2020-13', '2020-00', '2020-01-00', '2021-02-29', '0000', '2020-02-29T00:00:00Z', 2020, ''],
  },
  dateTime: {
    good: [
      '2020',
      '2020-02',
      '2020-02-29',
      '2020-02-29T23:59:60Z',
      '2020-02-29T10:00:00.123+14:00',
      '2020-02-29T10:00:00.123456789012Z',
    ],
    bad: [
      '2020-02-30T10:00:00Z',
      '2020-02-29T10:00:00',
      '2020-02-29T10:00Z',
      '2020-02-29T24:00:00Z',
      '2020-02T10:00:00Z',
    ],
  },
  instant: {
    good: ['2020-02-29T10:00:00Z', '2020-02-29T10:00:00.1-05:00', '2020-02-29T10:00:00.123456789012Z'],
    bad: ['2020-02-29', '2020-02-29T10:00:00', '2021-02-29T10:00:00Z'],
  },
  time: { good: ['10:00:00', '23:59:59.9', '10:00:00.1234567890'], bad: ['10:00', '24:00:00', '10:00:00Z'] },
  base64Binary: {
    good: ['U2Fs', 'U2FsbA==', 'U2Fs\nbHk='],
    bad: ['', 'U2F', 'U2F=s', 'U===', '====', 'U2F!', 7],
  },
  xhtml: { good: ['<div xmlns="http://www.w3.org/1999/xhtml">x</div>'], bad: ['x', '', 7] },
}

describe('primitives', () => {
  it('include all primitive types of R4', () => {
    assert.deepEqual([...primitives.keys()].toSorted(), Object.keys(table).toSorted())
  })

  for (const [type, { good, bad }] of Object.entries(table)) {
    it(`distinguishes valid and invalid values of ${type}`, () => {
      for (const value of good) assert.equal(primitives.get(type)?.(value), undefined, JSON.stringify(value))
      for (const value of bad)
        assert.equal(typeof primitives.get(type)?.(value), 'string', JSON.stringify(value))
    })
  }

  it('are fast on megabytes', () => {
    const started = process.cpuUsage()
    const long = 'QUJD'.repeat(2_500_000)
    assert.equal(primitives.get('base64Binary')?.(long), undefined)
    assert.equal(primitives.get('string')?.(long), undefined)
    assert.equal(
      primitives.get('code')?.(`${'a '.repeat(1_000_000)} `)?.length,
      'a code without needless white space'.length,
    )
    assert.ok(process.cpuUsage(started).user < 5_000_000)
  })
})
