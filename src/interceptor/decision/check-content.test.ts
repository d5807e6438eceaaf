import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { collectPatchedParts } from './check-content.ts'

const collect = (...patch: readonly unknown[]) => collectPatchedParts(patch, 'Observation')

const add = (path: unknown, value: unknown) => ({ op: 'add', path, value })

const remove = (path: string) => ({ op: 'remove', path })

describe('collectPatchedParts with a JSON Patch', () => {
  const cases: Readonly<Record<string, readonly [patch: readonly unknown[], parts: object]>> = {
    'a value at its path': [[add('/status', 'final')], { status: 'final' }],
    'a replaced value': [[{ op: 'replace', path: '/status', value: 'final' }], { status: 'final' }],
    'an element of a list': [[add('/performer/0', { display: 'x' })], { performer: [{ display: 'x' }] }],
    'two elements appended to a list': [[add('/note/-', 'a'), add('/note/-', 'b')], { note: ['a', 'b'] }],
    'a member of an element': [
      [add('/performer/0', { display: 'x' }), add('/performer/0/reference', 'Patient/2')],
      { performer: [{ display: 'x', reference: 'Patient/2' }] },
    ],
    'a member of an element of a written list': [
      [add('/performer', [{ display: 'x' }]), add('/performer/0/reference', 'Patient/2')],
      { performer: [{ display: 'x', reference: 'Patient/2' }] },
    ],
    'the last of two values at one path': [[add('/status', 'a'), add('/status', 'b')], { status: 'b' }],
    'no value that is removed later': [
      [add('/subject/reference', 'a'), remove('/subject/reference')],
      { subject: {} },
    ],
    'null, an empty list and a list as they are': [
      [add('/a', null), add('/b', []), add('/c', [{ d: 1 }])],
      { a: null, b: [], c: [{ d: 1 }] },
    ],
    'the members of an object with names and numbers': [
      [add('/a/0', 1), add('/a/b', 2)],
      { a: { 0: 1, b: 2 } },
    ],
    'a member below a value that has no members': [[add('/a', 'text'), add('/a/b', 1)], { a: { b: 1 } }],
    'names with escaped characters': [
      [add('/a~1b', 1), add('/c~0d', 2), add('/e~01', 3)],
      { 'a/b': 1, 'c~d': 2, 'e~1': 3 },
    ],
    'nothing of an operation with a path that is none': [
      [add('status', 'x'), add(5, 'x'), add(undefined, 'x'), add('', {})],
      {},
    ],
    'nothing of a test, a copy or a move': [
      ['test', 'copy', 'move'].map(op => ({ op, path: '/a', from: '/b', value: 1 })),
      {},
    ],
  }
  for (const [what, [patch, parts]] of Object.entries(cases))
    it(`collects ${what}`, () => assert.deepEqual(collect(...patch), parts))

  it('reads __proto__ as a member, not as the prototype', () => {
    const parts = collect(add('/__proto__/a', 1), add('/__proto__/b', 2))
    assert.deepEqual(Object.entries(parts ?? {}), [['__proto__', { a: 1, b: 2 }]])
  })

  it('returns undefined for a malformed patch', () => {
    for (const patch of [undefined, null, 'x', {}, [1], [add('/a', 1), null]])
      assert.equal(collectPatchedParts(patch, 'Observation'), undefined)
  })
})

describe('collectPatchedParts with a FHIRPath Patch', () => {
  const operation = (type: string, path: string, more: readonly object[]) => ({
    name: 'operation',
    part: [{ name: 'type', valueCode: type }, { name: 'path', valueString: path }, ...more],
  })
  const collectAll = (...parameter: readonly object[]) =>
    collectPatchedParts({ resourceType: 'Parameters', parameter }, 'Observation')
  const value = { name: 'value', valueReference: { reference: 'Patient/2' } }

  it('collects the written values, and nothing for a path to the whole resource', () => {
    assert.deepEqual(collectAll(operation('replace', 'Observation.subject', [value])), {
      subject: { reference: 'Patient/2' },
    })
    assert.deepEqual(collectAll(operation('replace', 'Observation', [value])), {})
  })
})
