import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isFailure, isRecord } from '../../core/index.ts'
import { parseExact } from '../json.ts'
import { PATCH_ELEMENTS, PATCH_OPERATIONS } from '../limits.ts'
import { MALFORMED_PATCHES, UNUSABLE_PATCHES } from '../reasons/content.ts'
import { describeFailed, failFor } from '../reasons/reasons.ts'
import { Work } from '../work.ts'
import { applyPatch as applyCounted, readsStored } from './apply-patch.ts'

const applyPatch = (resource: unknown, patch: unknown) => applyCounted(resource, patch, new Work())

type Parts = Readonly<Record<string, unknown>>

/** `{ type: 'add', path: 'Patient', name: 'gender', value: { valueCode: 'male' } }` as a parameter. */
function operation({ type, path, name, value, index, source, destination }: Parts): object {
  const part = [
    { name: 'type', valueCode: type },
    { name: 'path', valueString: path },
    ...(name === undefined ? [] : [{ name: 'name', valueString: name }]),
    ...(isRecord(value) ? [{ name: 'value', ...value }] : []),
    ...Object.entries({ index, source, destination }).flatMap(([key, number]) =>
      number === undefined ? [] : [{ name: key, valueInteger: number }],
    ),
  ]
  return { name: 'operation', part }
}

const makePatch = (...operations: readonly Parts[]) => ({
  resourceType: 'Parameters',
  parameter: operations.map(operation),
})

const patient = (more: object = {}) => ({ resourceType: 'Patient', ...more })
const names = [
  { use: 'usual', given: ['A', 'B'], _given: [null, { id: 'b' }] },
  { use: 'official', family: 'X' },
]

describe('applyPatch with a FHIRPath Patch', () => {
  /** R4 fhirpatch.html: resource, operation, result. */
  const WORKS: Readonly<Record<string, readonly [before: object, operation: Parts, after: object]>> = {
    'adds an element': [
      patient(),
      { type: 'add', path: 'Patient', name: 'birthDate', value: { valueDate: '1930-01-01' } },
      patient({ birthDate: '1930-01-01' }),
    ],
    'appends to a list': [
      patient({ identifier: [{ value: '1' }] }),
      { type: 'add', path: 'Patient', name: 'identifier', value: { valueIdentifier: { value: '2' } } },
      patient({ identifier: [{ value: '1' }, { value: '2' }] }),
    ],
    'adds a choice by the type of its value': [
      patient(),
      { type: 'add', path: 'Patient', name: 'deceased', value: { valueBoolean: true } },
      patient({ deceasedBoolean: true }),
    ],
    'adds a backbone element by its parts': [
      patient(),
      {
        type: 'add',
        path: 'Patient',
        name: 'contact',
        value: {
          part: [
            { name: 'name', valueHumanName: { text: 'c' } },
            { name: 'telecom', valueContactPoint: { value: '1' } },
            { name: 'telecom', valueContactPoint: { value: '2' } },
          ],
        },
      },
      patient({ contact: [{ name: { text: 'c' }, telecom: [{ value: '1' }, { value: '2' }] }] }),
    ],
    'adds below what a condition finds': [
      patient({ name: names }),
      {
        type: 'add',
        path: "Patient.name.where(use = 'official')",
        name: 'given',
        value: { valueString: 'C' },
      },
      patient({ name: [names[0], { use: 'official', family: 'X', given: ['C'] }] }),
    ],
    'inserts, and keeps what goes with a primitive beside it': [
      patient({ name: names }),
      { type: 'insert', path: 'Patient.name[0].given', index: 1, value: { valueString: 'M' } },
      patient({
        name: [{ use: 'usual', given: ['A', 'M', 'B'], _given: [null, null, { id: 'b' }] }, names[1]],
      }),
    ],
    'deletes an item, and its companion': [
      patient({ name: names }),
      { type: 'delete', path: 'Patient.name.first().given[1]' },
      patient({ name: [{ use: 'usual', given: ['A'], _given: [null] }, names[1]] }),
    ],
    'leaves no empty list': [
      patient({ identifier: [{ value: '1' }] }),
      { type: 'delete', path: "Patient.identifier.where(value='1')" },
      patient(),
    ],
    'deletes what is not there': [patient(), { type: 'delete', path: 'Patient.birthDate' }, patient()],
    'deletes a choice': [
      patient({ deceasedDateTime: '2020' }),
      { type: 'delete', path: 'Patient.deceased' },
      patient(),
    ],
    'replaces a value': [
      patient({ name: names }),
      { type: 'replace', path: 'Patient.name.last().family', value: { valueString: 'Y' } },
      patient({ name: [names[0], { use: 'official', family: 'Y' }] }),
    ],
    'replaces a choice by one of another type': [
      patient({ deceasedDateTime: '2020', _deceasedDateTime: { id: 'x' } }),
      { type: 'replace', path: 'Patient.deceased', value: { valueBoolean: true } },
      patient({ deceasedBoolean: true }),
    ],
    'replaces an item': [
      patient({ name: names }),
      { type: 'replace', path: 'Patient.name[0].given[1]', value: { valueString: 'C' } },
      patient({ name: [{ use: 'usual', given: ['A', 'C'], _given: [null, null] }, names[1]] }),
    ],
    'moves an item': [
      patient({ identifier: [{ value: '1' }, { value: '2' }, { value: '3' }] }),
      { type: 'move', path: 'Patient.identifier', source: 2, destination: 0 },
      patient({ identifier: [{ value: '3' }, { value: '1' }, { value: '2' }] }),
    ],
    'finds by several conditions, deep ones and quotes in them': [
      patient({
        name: [
          { period: { start: '2020' }, text: "O'N" },
          { period: { start: '2020' }, text: 'x' },
        ],
      }),
      { type: 'delete', path: "Patient.name.where(period.start='2020' and text = 'O\\'N')" },
      patient({ name: [{ period: { start: '2020' }, text: 'x' }] }),
    ],
    'finds an extension by its address': [
      patient({ extension: [{ url: 'http://a', valueString: 'x' }] }),
      { type: 'replace', path: "Patient.extension('http://a').value", value: { valueString: 'y' } },
      patient({ extension: [{ url: 'http://a', valueString: 'y' }] }),
    ],
    'goes into a contained resource': [
      patient({ contained: [{ resourceType: 'Organization', id: 'o', name: 'x' }] }),
      { type: 'replace', path: 'Patient.contained[0].name', value: { valueString: 'y' } },
      patient({ contained: [{ resourceType: 'Organization', id: 'o', name: 'y' }] }),
    ],
  }
  for (const [name, [before, step, after]] of Object.entries(WORKS))
    it(name, () => {
      const kept = structuredClone(before)
      assert.deepEqual(applyPatch(before, makePatch(step)), { value: after })
      assert.deepEqual(before, kept, 'the resource is left as it was')
    })

  it('applies operations one after the other (FHIR-8)', () => {
    const patch = makePatch(
      { type: 'add', path: 'Patient', name: 'name', value: { valueHumanName: { use: 'old' } } },
      { type: 'add', path: "Patient.name.where(use='old')", name: 'family', value: { valueString: 'Z' } },
      { type: 'delete', path: "Patient.name.where(family='Z').use" },
    )
    assert.deepEqual(applyPatch(patient(), patch), { value: patient({ name: [{ family: 'Z' }] }) })
  })

  const FAILS: Readonly<Record<string, readonly [operation: Parts, failure: RegExp]>> = {
    'an element that is there already': [
      { type: 'add', path: 'Patient', name: 'gender', value: { valueCode: 'male' } },
      /there already is a gender/,
    ],
    'an element that the type does not have': [
      { type: 'add', path: 'Patient', name: '__proto__', value: { valueString: 'x' } },
      /Patient has no element __proto__/,
    ],
    'a choice of a type that it cannot have': [
      { type: 'add', path: 'Patient', name: 'deceased', value: { valueString: 'x' } },
      /deceased cannot be a String/,
    ],
    'a path to nothing': [
      { type: 'replace', path: 'Patient.birthDate', value: { valueDate: '2020' } },
      /leads to nothing/,
    ],
    'a path to several': [{ type: 'delete', path: 'Patient.name' }, /leads to several/],
    'the whole resource': [{ type: 'delete', path: 'Patient' }, /whole resource/],
    'another resource': [{ type: 'delete', path: 'Group.name' }, /the resource is not a Group/],
    'a place past the end': [
      { type: 'insert', path: 'Patient.name', index: 3, value: { valueHumanName: {} } },
      /no place 3 in name/,
    ],
    'a move past the end': [
      { type: 'move', path: 'Patient.name', source: 0, destination: 2 },
      /no place 2 in name/,
    ],
    'a list that is none': [
      { type: 'insert', path: 'Patient.gender', index: 0, value: { valueCode: 'male' } },
      /gender is not a list/,
    ],
    'an element of a primitive': [
      { type: 'add', path: 'Patient.gender', name: 'extension', value: { valueExtension: {} } },
      /code has no element extension/,
    ],
  }
  for (const [name, [step, failure]] of Object.entries(FAILS))
    it(`refuses ${name}`, () => {
      const patched = applyPatch(patient({ gender: 'male', name: names }), makePatch(step))
      assert(isFailure(patched))
      assert.match(describeFailed(patched), failure)
      assert(patched.reason in UNUSABLE_PATCHES)
    })

  const UNREADABLE: readonly Parts[] = [
    { type: 'copy', path: 'Patient.name' },
    { type: 'delete' },
    { type: 'delete', path: 'name' },
    { type: 'delete', path: 'Patient.name.select(given)' },
    { type: 'delete', path: 'Patient.name | Patient.gender' },
    { type: 'delete', path: "Patient.name.where(use = 'a' and)" },
    { type: 'delete', path: "Patient.name.where(use = 'a' use = 'b')" },
    { type: 'delete', path: 'Patient.name.where(use = use)' },
    { type: 'delete', path: "Patient.name.where(use = 'a'" },
    { type: 'delete', path: 'Patient.name[-1]' },
    { type: 'delete', path: 'Patient.name[1.5]' },
    { type: 'delete', path: 'Patient..name' },
    { type: 'delete', path: `Patient.${'name.'.repeat(300)}use` },
    { type: 'add', path: 'Patient', value: { valueString: 'x' } },
    { type: 'add', path: 'Patient', name: 'gender' },
    { type: 'add', path: 'Patient', name: 'gender', value: { valueCode: 'male', valueString: 'x' } },
    { type: 'insert', path: 'Patient.name', value: { valueHumanName: {} } },
    { type: 'move', path: 'Patient.name', source: 0, destination: -1 },
  ]
  for (const step of UNREADABLE)
    it(`cannot read ${JSON.stringify(step).slice(0, 80)}`, () => {
      const patched = applyPatch(patient(), makePatch(step))
      assert(isFailure(patched))
      assert(patched.reason in MALFORMED_PATCHES)
    })

  it('accepts operations up to the limit', () => {
    const step = { type: 'delete', path: 'Patient.gender' }
    const many = (count: number) =>
      applyPatch(patient(), makePatch(...Array.from({ length: count }, () => step)))
    assert(!isFailure(many(PATCH_OPERATIONS)))
    assert.deepEqual(
      many(PATCH_OPERATIONS + 1),
      failFor('patch-operations-too-many', { most: PATCH_OPERATIONS }),
    )
  })

  it('visits elements up to the limit', () => {
    const identifier = Array.from({ length: 500 }, (_, at) => ({ value: `${at}` }))
    const path = "Patient.identifier.where(value = 'none')"
    const steps = Array.from({ length: PATCH_OPERATIONS }, () => ({ type: 'delete', path }))
    assert.deepEqual(
      applyPatch(patient({ identifier }), makePatch(...steps)),
      failFor('patch-visits-too-much', { most: PATCH_ELEMENTS }),
    )
  })

  it('compares decimals by their value', () => {
    const before = parseExact('{"resourceType":"Observation","component":[{"valueQuantity":{"value":1.50}}]}')
    const path = 'Observation.component.where(value.value = 1.5)'
    const after = applyPatch(before, makePatch({ type: 'delete', path }))
    assert.deepEqual(after, { value: { resourceType: 'Observation' } })
  })

  it('refuses a number as a name without revealing how decimals are marked', () => {
    const value = { name: 'value', part: [{ name: 'NUMBER', valueString: 'x' }] }
    for (const step of [
      { type: 'add', path: 'Patient', name: 'NUMBER', value: { valueString: 'x' } },
      { type: 'add', path: 'Patient', name: 'contact', value },
    ]) {
      const patch = parseExact(JSON.stringify(makePatch(step)).replaceAll('"NUMBER"', '1.50'))
      const patched = applyPatch(patient(), patch)
      assert(isFailure(patched))
      assert.match(describeFailed(patched), /: operation 0 has no (name|value)/)
    }
  })

  it('refuses a value that is nested too deeply', () => {
    let deep: object = { url: 'x', valueString: 'x' }
    for (let depth = 0; depth < 200; depth++) deep = { url: 'x', extension: [deep] }
    const step = { type: 'add', path: 'Patient', name: 'extension', value: { valueExtension: deep } }
    assert.deepEqual(
      applyPatch(patient(), makePatch(step)),
      failFor('patch-value-too-deep', { index: 0, most: 100 }),
    )
  })
})

describe('readsStored of a FHIRPath Patch', () => {
  const reads = (step: Parts) => readsStored(makePatch(step))

  it('is true for conditions and moves only', () => {
    assert(reads({ type: 'delete', path: "Patient.name.where(use='a')" }))
    assert(reads({ type: 'delete', path: "Patient.extension('x')" }))
    assert(reads({ type: 'delete', path: 'Patient.deceased.ofType(boolean)' }))
    assert(reads({ type: 'move', path: 'Patient.name', source: 0, destination: 1 }))
    assert(!reads({ type: 'delete', path: 'Patient.name[0]' }))
    assert(!reads({ type: 'add', path: 'Patient', name: 'gender', value: { valueCode: 'male' } }))
  })
})
