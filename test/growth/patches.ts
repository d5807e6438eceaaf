/** Patches that are long in one or two dimensions: operations, the list that they change, digits that they compare. */
import { parseExact } from '../../src/fhir/json.ts'
import { PATCH_OPERATIONS } from '../../src/fhir/limits.ts'
import type { Family } from './measure.ts'

export interface Patch {
  readonly resource: unknown
  readonly patch: unknown
}

type MakeOperation = (length: number) => object

const NOTE = { text: 'x' }

const JSON_OPERATIONS: Readonly<Record<string, MakeOperation>> = {
  'add at the start': () => ({ op: 'add', path: '/note/0', value: NOTE }),
  'add at the end': () => ({ op: 'add', path: '/note/-', value: NOTE }),
  replace: length => ({ op: 'replace', path: `/note/${length - 1}`, value: NOTE }),
  'remove and add': () => ({ op: 'move', from: '/note/0', path: '/note/-' }),
  'move to the start': length => ({ op: 'move', from: `/note/${length - 1}`, path: '/note/0' }),
  copy: () => ({ op: 'copy', from: '/note/0', path: '/note/0' }),
  'test of an item': length => ({ op: 'test', path: `/note/${length - 1}`, value: NOTE }),
  'test of a decimal': () => ({ op: 'test', path: '/valueQuantity/value', value: 1 }),
}

const part = (name: string, value: object) => ({ name, ...value })
const operation = (type: string, path: string, ...more: readonly object[]) => ({
  name: 'operation',
  part: [part('type', { valueCode: type }), part('path', { valueString: path }), ...more],
})
const VALUE = part('value', { valueAnnotation: NOTE })

const FHIRPATH_OPERATIONS: Readonly<Record<string, MakeOperation>> = {
  add: () => operation('add', 'Observation', part('name', { valueString: 'note' }), VALUE),
  insert: () => operation('insert', 'Observation.note', part('index', { valueInteger: 0 }), VALUE),
  replace: length => operation('replace', `Observation.note[${length - 1}]`, VALUE),
  delete: () => operation('delete', 'Observation.note[0]'),
  move: length =>
    operation(
      'move',
      'Observation.note',
      part('source', { valueInteger: length - 1 }),
      part('destination', { valueInteger: 0 }),
    ),
  'condition on a list': () => operation('replace', "Observation.note.where(text = 'y')", VALUE),
  'condition on a decimal': () => operation('delete', 'Observation.component.where(value.value = 1)'),
}

function makeResource(items: number, digits: number): unknown {
  const quantity = `"valueQuantity":{"value":1.${'0'.repeat(digits)}1}`
  const notes = Array.from({ length: items }, () => '{"text":"x"}').join(',')
  return parseExact(
    `{"resourceType":"Observation","note":[${notes}],${quantity},"component":[{${quantity}}]}`,
  )
}

const count = (size: number) => Math.max(1, Math.min(PATCH_OPERATIONS - 1, Math.floor(size / 16)))

function growPatches(
  kind: string,
  operations: Readonly<Record<string, MakeOperation>>,
  wrap: (made: readonly object[]) => unknown,
): readonly Family<Patch>[] {
  return Object.entries(operations).flatMap(([name, make]) => {
    const family = (grown: string, measure: (size: number) => readonly [number, number, number]) => ({
      name: `${kind}: ${name}: ${grown}`,
      make: (size: number): Patch => {
        const [many, items, digits] = measure(size)
        return {
          resource: makeResource(items, digits),
          patch: wrap(Array.from({ length: many }, () => make(items))),
        }
      },
    })
    return [
      family('operations', size => [count(size), 10, 10]),
      family('items', size => [1, size, 10]),
      family('operations and items', size => [count(size), size, 10]),
      family('operations and digits', size => [count(size), 10, size * 30]),
    ]
  })
}

export const PATCHES: readonly Family<Patch>[] = [
  ...growPatches('JSON Patch', JSON_OPERATIONS, made => made),
  ...growPatches('FHIRPath Patch', FHIRPATH_OPERATIONS, parameter => ({
    resourceType: 'Parameters',
    parameter,
  })),
]
