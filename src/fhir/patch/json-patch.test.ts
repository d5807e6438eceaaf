import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isFailure } from '../../core/index.ts'
import { parseExact } from '../json.ts'
import { PATCH_OPERATIONS } from '../limits.ts'
import { MALFORMED_PATCHES } from '../reasons/content.ts'
import { describeFailed } from '../reasons/reasons.ts'
import { Work } from '../work.ts'
import { applyJsonPatch as applyCounted } from './json-patch.ts'
import type { Patched } from './operations.ts'

const applyJsonPatch = (document: unknown, patch: unknown) => applyCounted(document, patch, new Work())

const TOO_MUCH = 'it shifts or compares more than 5000000 items of lists and digits'

function describeWhy(patched: Patched): string | undefined {
  return isFailure(patched) ? describeFailed(patched).replace('Cannot apply patch: ', '') : undefined
}

describe('applyJsonPatch', () => {
  /** RFC 6902, appendix A and around it: document, patch, result. */
  const WORKS: Readonly<Record<string, readonly [document: unknown, patch: unknown, result: unknown]>> = {
    'A.1 adds a member': [
      { foo: 'bar' },
      [{ op: 'add', path: '/baz', value: 'qux' }],
      { foo: 'bar', baz: 'qux' },
    ],
    'A.2 adds an element': [
      { foo: ['a', 'b'] },
      [{ op: 'add', path: '/foo/1', value: 'x' }],
      { foo: ['a', 'x', 'b'] },
    ],
    'A.3 removes a member': [{ a: 1, b: 2 }, [{ op: 'remove', path: '/a' }], { b: 2 }],
    'A.4 removes an element': [{ foo: [1, 2, 3] }, [{ op: 'remove', path: '/foo/1' }], { foo: [1, 3] }],
    'A.5 replaces': [{ a: 1 }, [{ op: 'replace', path: '/a', value: 2 }], { a: 2 }],
    'A.6 moves a value': [
      { a: { b: 1 }, c: {} },
      [{ op: 'move', from: '/a/b', path: '/c/d' }],
      { a: {}, c: { d: 1 } },
    ],
    'A.7 moves an element': [
      { foo: [1, 2, 3, 4] },
      [{ op: 'move', from: '/foo/1', path: '/foo/3' }],
      { foo: [1, 3, 4, 2] },
    ],
    'A.8 tests values': [
      { a: [1, { b: 2 }] },
      [{ op: 'test', path: '/a', value: [1, { b: 2 }] }],
      { a: [1, { b: 2 }] },
    ],
    'A.10 adds a nested member': [{}, [{ op: 'add', path: '/a', value: { b: {} } }], { a: { b: {} } }],
    'A.14 reads ~1 and ~0': [
      { '/': 9, '~1': 10 },
      [
        { op: 'test', path: '/~01', value: 10 },
        { op: 'remove', path: '/~1' },
      ],
      { '~1': 10 },
    ],
    'A.16 adds an array value at the end': [
      { foo: ['a'] },
      [{ op: 'add', path: '/foo/-', value: ['b'] }],
      { foo: ['a', ['b']] },
    ],
    'copies by value': [
      { a: { b: 1 } },
      [
        { op: 'copy', from: '/a', path: '/c' },
        { op: 'replace', path: '/c/b', value: 2 },
      ],
      { a: { b: 1 }, c: { b: 2 } },
    ],
    'replaces the whole': [{ a: 1 }, [{ op: 'replace', path: '', value: 7 }], 7],
    'ignores what it does not know (A.11)': [{}, [{ op: 'add', path: '/a', value: 1, xyz: 2 }], { a: 1 }],
    'adds null': [{}, [{ op: 'add', path: '/a', value: null }], { a: null }],
  }
  for (const [name, [document, patch, result]] of Object.entries(WORKS))
    it(name, () => {
      const before = structuredClone(document)
      assert.deepEqual(applyJsonPatch(document, patch), { value: result })
      assert.deepEqual(document, before, 'the document is left as it was')
    })

  const FAILS: Readonly<Record<string, readonly [document: unknown, patch: unknown, failure: string]>> = {
    'A.9 a failing test': [
      { baz: 'qux' },
      [{ op: 'test', path: '/baz', value: 'bar' }],
      'test of /baz failed',
    ],
    'A.12 a target without a parent': [
      {},
      [{ op: 'add', path: '/baz/bat', value: 1 }],
      'there is nothing at /baz',
    ],
    'A.15 text and number are not the same': [
      { a: 10 },
      [{ op: 'test', path: '/a', value: '10' }],
      'test of /a failed',
    ],
    'a missing member': [{}, [{ op: 'remove', path: '/a' }], 'there is nothing at /a'],
    'an index past the end': [
      { a: [1] },
      [{ op: 'add', path: '/a/2', value: 1 }],
      'there is nothing at /a/2',
    ],
    'an index with a leading zero': [
      { a: [1, 2] },
      [{ op: 'remove', path: '/a/01' }],
      'there is nothing at /a/01',
    ],
    'an inherited member': [
      {},
      [{ op: 'test', path: '/constructor', value: 1 }],
      'there is nothing at /constructor',
    ],
    'a member of a text': [
      { a: 'x' },
      [{ op: 'add', path: '/a/length', value: 1 }],
      'there is nothing at /a to go into',
    ],
    'a move into itself': [
      { a: { b: 1 } },
      [{ op: 'move', from: '/a', path: '/a/b' }],
      'a value cannot be moved into itself',
    ],
    'the removal of the whole': [{}, [{ op: 'remove', path: '' }], 'the whole resource cannot be removed'],
  }
  for (const [name, [document, patch, failure]] of Object.entries(FAILS))
    it(`fails on ${name}`, () => {
      assert.equal(describeWhy(applyJsonPatch(document, patch)), failure)
    })

  it('fails on a value that is nested too deeply', () => {
    let value: unknown = 1
    for (let level = 0; level < 20_000; level++) value = [value]
    const patched = applyJsonPatch({}, [{ op: 'add', path: '/a', value }])
    assert.equal(describeWhy(patched), 'the value of operation 0 is nested over 100 levels deep')
  })

  it('fails when copies of copies grow past a bound', () => {
    const doubling = Array.from({ length: 28 }, () => ({ op: 'copy', from: '/note', path: '/note/-' }))
    const patched = applyJsonPatch({ note: [{ text: 'x'.repeat(1000) }] }, doubling)
    assert.equal(describeWhy(patched), 'it copies more than 1048576 characters')
  })

  it('fails when it shifts more items of lists than the limit', () => {
    const moves = Array.from({ length: PATCH_OPERATIONS }, () => ({
      op: 'move',
      from: '/note/1',
      path: '/note/0',
    }))
    const patched = applyJsonPatch({ note: Array(90_000).fill({ text: 'x' }) }, moves)
    assert.equal(describeWhy(patched), TOO_MUCH)
  })

  it('fails when it compares more digits than the limit', () => {
    const document = parseExact(`{"value":1.${'0'.repeat(1_000_000)}}`)
    const tests = Array.from({ length: 20 }, () => ({ op: 'test', path: '/value', value: 1 }))
    assert.equal(describeWhy(applyJsonPatch(document, tests)), TOO_MUCH)
  })

  it('refuses more operations than the limit before it applies any', () => {
    const adding = (count: number) =>
      Array.from({ length: count }, () => ({ op: 'add', path: '/note/0', value: 1 }))
    const patched = applyJsonPatch({ note: [] }, adding(PATCH_OPERATIONS))
    assert.ok(!isFailure(patched))
    assert.equal(
      describeWhy(applyJsonPatch({ note: [] }, adding(150_000))),
      'it has more than 1000 operations',
    )
  })

  it('shortens a long path in a message', () => {
    const patched = applyJsonPatch({}, [{ op: 'remove', path: `/${'a'.repeat(100_000)}` }])
    assert.ok((describeWhy(patched) ?? '').length < 300 && isFailure(patched))
  })

  it('marks a malformed patch (FHIR-8)', () => {
    for (const patch of [
      {},
      undefined,
      1,
      [1],
      [null],
      [{ op: 'grow', path: '/a' }],
      [{ op: 'add', path: '/a' }],
      [{ op: 'remove', path: 'a' }],
      [{ op: 'remove', path: '/~2' }],
      [{ op: 'move', path: '/a' }],
      [{ op: 'remove' }],
    ]) {
      const patched = applyJsonPatch({ a: 1 }, patch)
      assert(isFailure(patched) && patched.reason in MALFORMED_PATCHES, JSON.stringify(patch))
    }
  })

  it('refuses a path of more than 1,000 characters', () => {
    const patch = (characters: number) => [{ op: 'add', path: `/${'a'.repeat(characters - 1)}`, value: 1 }]
    assert.ok(!isFailure(applyJsonPatch({}, patch(1_000))))
    const refused = applyJsonPatch({}, patch(1_001))
    assert.ok(isFailure(refused) && refused.reason in MALFORMED_PATCHES)
    assert.match(describeFailed(refused), /operation 0 has more than 1000 characters/)
  })

  it('keeps a member called __proto__ and returns a deep copy', () => {
    const document: unknown = JSON.parse('{"__proto__":{"a":[1]},"b":{"c":[]}}')
    const patch = [
      { op: 'add', path: '/b/c/-', value: { d: [] } },
      { op: 'add', path: '/b/c/0/d/-', value: 2 },
    ]
    const patched = applyJsonPatch(document, patch)
    assert.ok(!isFailure(patched))
    assert.equal(JSON.stringify(patched.value), '{"__proto__":{"a":[1]},"b":{"c":[{"d":[2]}]}}')
    assert.equal(JSON.stringify(document), '{"__proto__":{"a":[1]},"b":{"c":[]}}')
    assert.deepEqual(patch[0]?.value, { d: [] })
  })

  it('changes no prototype', () => {
    const patched = applyJsonPatch(
      {},
      JSON.parse('[{"op":"add","path":"/__proto__","value":{"polluted":1}}]'),
    )
    assert.equal(
      (!isFailure(patched) && (patched.value as { polluted?: number }).polluted) || undefined,
      undefined,
    )
    assert.equal(({} as { polluted?: number }).polluted, undefined)
  })
})
