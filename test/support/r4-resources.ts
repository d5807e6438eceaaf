import { definitions, type Element, findStructure, getKey } from '../../src/fhir/definitions.ts'

type Values = Record<string, unknown>

const primitives: Readonly<Record<string, unknown>> = {
  base64Binary: 'U2FsbHlwb3J0',
  boolean: true,
  canonical: 'http://example.org/fhir/canonical|1.0',
  code: 'some-code',
  date: '2021-03-04',
  dateTime: '2021-03-04T05:06:07+01:00',
  decimal: 1.5,
  id: 'some-id',
  instant: '2021-03-04T05:06:07.089Z',
  integer: 7,
  markdown: 'Some *text*',
  oid: 'urn:oid:1.2.3',
  positiveInt: 3,
  string: 'Some text',
  time: '05:06:07',
  unsignedInt: 0,
  uri: 'http://example.org/uri',
  url: 'http://example.org/url',
  uuid: 'urn:uuid:c757873d-ec9a-4326-a141-556f43239520',
  xhtml: '<div xmlns="http://www.w3.org/1999/xhtml"><p>Some text</p></div>',
}

/** Elements that exclude another one which is kept (obs-6, tim-10, bdl-1, …), and what would never end. */
const leftOut: Readonly<Record<string, readonly string[]>> = {
  Bundle: ['total'],
  DomainResource: ['contained'],
  Observation: ['dataAbsentReason'],
  'Timing.repeat': ['when', 'offset'],
}

const RACE = { system: 'urn:oid:2.16.840.1.113883.6.238', code: '2028-9', display: 'Asian' }
const usCore = 'http://hl7.org/fhir/us/core/StructureDefinition'

/** What one element must be because of another (con-4, bdl-3), and the extensions by which US Core searches. */
const fixed: Readonly<Record<string, Values>> = {
  Bundle: { type: 'history' },
  Condition: {
    extension: [
      {
        url: 'http://hl7.org/fhir/StructureDefinition/condition-assertedDate',
        valueDateTime: '2021-03-04',
      },
    ],
    clinicalStatus: {
      coding: [{ system: 'http://terminology.hl7.org/CodeSystem/condition-clinical', code: 'resolved' }],
    },
  },
  Patient: {
    extension: [
      { url: `${usCore}/us-core-race`, extension: [{ url: 'ombCategory', valueCoding: RACE }] },
      { url: `${usCore}/us-core-ethnicity`, extension: [{ url: 'detailed', valueCoding: RACE }] },
      { url: `${usCore}/us-core-genderIdentity`, valueCodeableConcept: { coding: [RACE] } },
    ],
  },
}

/**
 * A resource with every element that its type has, several levels deep, one value each. `variant` picks the type of
 * choice elements, so that a few variants show them all. Values are valid, not sensible.
 */
export function fullResource(
  type: string,
  variant: number,
): { readonly resourceType: string; readonly id: string } {
  return { resourceType: type, ...fill(type, variant, 0), ...fixed[type], id: `full-${variant}` }
}

function fill(name: string, variant: number, depth: number): Values {
  const filled: Values = {}
  for (const element of findStructure(name)?.elements.values() ?? []) {
    if (
      isLeftOut(name, element, variant) ||
      (depth > 4 && name !== 'Ratio' && name !== 'Range' && element.min === 0 && !isPlain(element))
    )
      continue
    const type = element.types[variant % element.types.length]
    if (type === undefined) continue
    const value = exampleOf(element, type.code, type.targets, variant, depth)
    filled[getKey(element, type)] = element.max > 1 ? [value] : value
  }
  return filled
}

function isLeftOut(name: string, element: Element, variant: number): boolean {
  if (element.name === 'extension' || element.name === 'modifierExtension') return name !== 'Extension'
  if (name === 'Observation' && variant === 0) return element.name === 'value' || element.name === 'contained'
  return [...(leftOut[name] ?? []), ...(leftOut.DomainResource ?? [])].includes(element.name)
}

/** Without this, deep levels would be empty objects. */
function isPlain(element: Element): boolean {
  return element.types.every(type => type.code in primitives)
}

function exampleOf(
  element: Element,
  type: string,
  targets: readonly string[] | undefined,
  variant: number,
  depth: number,
): unknown {
  const codes = element.binding === undefined ? undefined : definitions.codes[element.binding]?.[0]
  if (codes !== undefined) return codeOf(type, codes, variant)
  if (type in primitives) return primitives[type]
  if (type === 'Resource') return { resourceType: 'Basic', id: 'held', code: { text: 'Held' } }
  if (type === 'Extension') return { url: 'http://example.org/extension', valueString: 'Some text' }
  if (type === 'Reference')
    return { reference: `${targets?.[variant % targets.length] ?? 'Patient'}/r${variant}` }
  return fill(type, variant, depth + 1)
}

function codeOf(type: string, [system, ...codes]: readonly string[], variant: number): unknown {
  const usable = codes.filter(it => it !== 'entered-in-error')
  const code = usable[variant % usable.length]
  return type === 'code' ? code : { coding: [{ system, code, display: 'Some display' }] }
}
