import { definitions, type StructureText } from './definitions.ts'

/** An element of a resource, a data type or a backbone element. A choice (`value[x]`) has several types. */
export interface Element {
  /** Without `[x]`. */
  readonly name: string
  readonly min: number
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
  const found = structures.get(name)
  if (found !== undefined) return found
  const text = Object.hasOwn(definitions.structures, name) ? definitions.structures[name] : undefined
  if (text === undefined) return undefined
  const read = readStructure(name, text)
  structures.set(name, read)
  return read
}

function readStructure(name: string, text: StructureText): Structure {
  const elements = new Map(text.base === undefined ? [] : findStructure(text.base)?.elements)
  for (const [key, definition] of Object.entries(text.elements)) {
    const element = readElement(key, definition)
    elements.set(element.name, element)
  }
  const properties = [...elements.values()].flatMap(propertiesOf)
  return { name, elements, properties: new Map(properties.map(it => [it.key, it])) }
}

function readElement(key: string, definition: string): Element {
  const [min, max, types, binding] = definition.split(' ')
  const choice = key.endsWith('[x]')
  const code = binding?.slice(1)
  return {
    name: choice ? key.slice(0, -3) : key,
    min: Number(min),
    max: max === '*' ? Number.POSITIVE_INFINITY : Number(max),
    choice,
    types: (types ?? '').split(',').map(readType),
    binding: code !== undefined && Object.hasOwn(definitions.codes, code) ? code : undefined,
  }
}

function readType(text: string): ElementType {
  const [code, targets] = text.replace(/^@/, '').split('(')
  return { code: code ?? '', targets: targets?.slice(0, -1).split('|') }
}

function propertiesOf(element: Element): Property[] {
  return element.types.map(type => ({ key: keyOf(element, type), element, type }))
}

/** The name in JSON of an element that has a value of this type. */
export function keyOf(element: Element, type: ElementType): string {
  return element.choice ? element.name + type.code.charAt(0).toUpperCase() + type.code.slice(1) : element.name
}
