import { capitalize, readOwnFile, remember } from '../core/index.ts'
import type { SearchParameter, SearchParameterType } from './resource.ts'

/** The output of `scripts/compile-r4.ts`. */
interface Definitions {
  readonly resources: readonly string[]
  readonly structures: Readonly<Record<string, StructureText>>
  readonly codes: Readonly<Record<string, readonly (readonly [system: string, ...codes: string[]])[]>>
  /** By the path of their element. */
  readonly invariants: Readonly<
    Record<
      string,
      readonly (readonly [key: string, severity: 'error' | 'warning', expression: string, text: string])[]
    >
  >
  readonly search: Readonly<
    Record<string, readonly (readonly [string, SearchParameterType, string, (readonly string[])?])[]>
  >
  /** The URLs of US Core's profiles, by resource type. */
  readonly profiles: Readonly<Record<string, readonly string[]>>
  readonly patientCompartment: Readonly<Record<string, readonly string[]>>
}

/** A type or backbone element. An element reads `min max types #binding`: `0 1 code #administrative-gender`; a modifier has `!` after `min`. */
export interface StructureText {
  readonly base?: string
  readonly elements: Readonly<Record<string, string>>
}

export const definitions: Definitions = JSON.parse(readOwnFile('src/fhir/definitions/r4.json'))

/** The 146 resource types of R4, in alphabetical order. */
export const resourceTypes: readonly string[] = definitions.resources

const known: ReadonlySet<string> = new Set(resourceTypes)

export function isResourceType(text: string): boolean {
  return known.has(text)
}

type Parameters = ReadonlyMap<string, SearchParameter>

const parametersByType = new Map<string, Parameters>()
const listsByType = new Map<string, readonly SearchParameter[]>()

/** The search parameters of a type, with those of all types (`_id`, …). */
export function listSearchParameters(type: string): readonly SearchParameter[] {
  return known.has(type) ? remember(listsByType, type, () => [...findParameters(type).values()]) : []
}

export function findSearchParameter(type: string, code: string): SearchParameter | undefined {
  return findParameters(type).get(code)
}

function findParameters(type: string): Parameters {
  return known.has(type) ? remember(parametersByType, type, readParameters) : new Map()
}

function readParameters(type: string): Parameters {
  const rows = [...(definitions.search.Resource ?? []), ...(definitions.search[type] ?? [])]
  return new Map(
    rows.map(([code, kind, expression, target]) => [
      code,
      { code, type: kind, expression, ...(target === undefined ? {} : { target }) },
    ]),
  )
}

/** The URLs of the US Core profiles of a type. */
export function listProfiles(type: string): readonly string[] {
  return known.has(type) ? (definitions.profiles[type] ?? []) : []
}

/** An element of a resource, a data type or a backbone element. A choice (`value[x]`) has several types. */
export interface Element {
  /** Without `[x]`. */
  readonly name: string
  readonly min: number
  /** Whether it may change the meaning of the others (R4 conformance-rules.html#isModifier). */
  readonly isModifier: boolean
  /** Infinity for `*`. */
  readonly max: number
  readonly choice: boolean
  readonly types: readonly ElementType[]
  /** The required value set, where its codes are known. */
  readonly binding: string | undefined
}

export interface ElementType {
  /** A data type, `Resource`, or the path of a backbone element (`Patient.contact`). */
  readonly code: string
  /** The resource types that a Reference may point to; undefined for any. */
  readonly targets: readonly string[] | undefined
  /** A SimpleQuantity, which has no comparator. */
  readonly simple: boolean
}

/** An element under the name that it has in JSON: `value[x]` is `valueQuantity`, `valueString`, … */
export interface Property {
  readonly key: string
  readonly element: Element
  readonly type: ElementType
}

export interface Structure {
  readonly name: string
  readonly elements: ReadonlyMap<string, Element>
  readonly properties: ReadonlyMap<string, Property>
}

const structures = new Map<string, Structure>()

/** The structure of a resource type, data type or backbone element; undefined for primitives and unknown names. */
export function findStructure(name: string): Structure | undefined {
  const text = Object.hasOwn(definitions.structures, name) ? definitions.structures[name] : undefined
  return text && remember(structures, name, () => readStructure(name, text))
}

function readStructure(name: string, text: StructureText): Structure {
  const elements = new Map(text.base === undefined ? [] : findStructure(text.base)?.elements)
  for (const [key, definition] of Object.entries(text.elements)) {
    const element = readElement(key, definition)
    elements.set(element.name, element)
  }
  const properties = [...elements.values()].flatMap(listProperties)
  return { name, elements, properties: new Map(properties.map(it => [it.key, it])) }
}

function readElement(key: string, definition: string): Element {
  const [min = '', max, types, binding] = definition.split(' ')
  const choice = key.endsWith('[x]')
  const code = binding?.slice(1)
  return {
    name: choice ? key.slice(0, -3) : key,
    min: Number.parseInt(min, 10),
    isModifier: min.endsWith('!'),
    max: max === '*' ? Number.POSITIVE_INFINITY : Number(max),
    choice,
    types: (types ?? '').split(',').map(readType),
    binding: code !== undefined && Object.hasOwn(definitions.codes, code) ? code : undefined,
  }
}

function readType(text: string): ElementType {
  const [code = '', targets] = text.replace(/^@/, '').split('(')
  return {
    code: code.replace('~', ''),
    targets: targets?.slice(0, -1).split('|'),
    simple: code.endsWith('~'),
  }
}

function listProperties(element: Element): Property[] {
  return element.types.map(type => ({ key: getKey(element, type), element, type }))
}

/** The names in JSON that an element may have, one for each of its types. */
export function listJsonKeys(element: Element): readonly string[] {
  return element.types.map(type => getKey(element, type))
}

/** The name in JSON of an element whose value has this type. */
export function getKey(element: Element, type: ElementType): string {
  return element.choice ? element.name + capitalize(type.code) : element.name
}
