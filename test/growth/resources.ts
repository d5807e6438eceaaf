/**
 * Resources that are long where a rule of the R4 definitions looks: for every invariant, the lists and texts that its
 * expression names, alone and in pairs.
 */
import {
  definitions,
  type Element,
  type ElementType,
  findStructure,
  getKey,
  isResourceType,
  resourceTypes,
} from '../../src/fhir/definitions.ts'
import { type Expression, parseExpression } from '../../src/fhir/validate/parse-expression.ts'
import { IS_THOROUGH } from '../support/thorough.ts'
import type { Family } from './measure.ts'
import { sample } from './texts.ts'

type Values = Record<string, unknown>

/** An element of a resource: the elements from the resource to it. */
type Place = readonly Link[]

interface Link {
  readonly element: Element
  readonly type: ElementType
}

/** Starts with itself, as a path does (sdf-8a), and passes for most types. */
const TEXT = 'a.a'

const PRIMITIVES: Readonly<Record<string, unknown>> = {
  base64Binary: 'AAAA',
  boolean: true,
  date: '2021-03-04',
  dateTime: '2021-03-04',
  decimal: 1.5,
  instant: '2021-03-04T05:06:07Z',
  integer: 7,
  positiveInt: 3,
  time: '05:06:07',
  unsignedInt: 1,
  oid: 'urn:oid:1.2.3',
  uuid: 'urn:uuid:c757873d-ec9a-4326-a141-556f43239520',
  id: TEXT,
  code: TEXT,
  string: TEXT,
  markdown: TEXT,
  uri: TEXT,
  url: TEXT,
  canonical: TEXT,
  xhtml: '<div xmlns="http://www.w3.org/1999/xhtml">x</div>',
}

const TEXT_TYPES: ReadonlySet<string> = new Set([
  'id',
  'code',
  'string',
  'markdown',
  'uri',
  'url',
  'canonical',
])

/** The least that is valid, or nearly so. */
function makeValue(element: Element, { code }: ElementType, depth = 0): unknown {
  const [codes] = element.binding === undefined ? [] : (definitions.codes[element.binding] ?? [])
  if (codes && code === 'code') return codes[1]
  if (codes && code === 'CodeableConcept') return { coding: [{ system: codes[0], code: codes[1] }] }
  if (code in PRIMITIVES) return PRIMITIVES[code]
  if (code === 'Resource') return { resourceType: 'Basic', id: 'a', code: { text: TEXT } }
  return makeObject(code, depth + 1)
}

function makeObject(structure: string, depth = 0): Values {
  const made: Values = {}
  if (isResourceType(structure)) made.resourceType = structure
  for (const element of findStructure(structure)?.elements.values() ?? []) {
    const [type] = element.types
    if (!type || element.min === 0 || depth > 5) continue
    const value = makeValue(element, type, depth)
    made[getKey(element, type)] = element.max > 1 ? [value] : value
  }
  return Object.keys(made).length > 0 ? made : { extension: [{ url: 'http://a', valueString: TEXT }] }
}

/** The object or list item at a place, made if it is absent. */
function reach(
  resource: Values,
  place: Place,
): { readonly holder: Values; readonly key: string } | undefined {
  let holder = resource
  for (const [at, { element, type }] of place.entries()) {
    const key = getKey(element, type)
    if (holder[key] === undefined) {
      const value = makeValue(element, type)
      holder[key] = element.max > 1 ? [value] : value
    }
    if (at === place.length - 1) return { holder, key }
    const next: unknown = Array.isArray(holder[key]) ? holder[key][0] : holder[key]
    if (typeof next !== 'object' || next === null) return undefined
    holder = next as Values
  }
  return undefined
}

/** Half the characters of a text, for each item of a list of the same size. */
const CHARACTERS = 32

interface Dimension {
  readonly place: Place
  readonly kind: 'items' | 'characters'
}

/** A resource whose dimensions have this size. A list gets items as it had, so that the first one may be long itself. */
function makeResource(type: string, dimensions: readonly Dimension[], size: number): Values {
  const resource = makeObject(type)
  for (const { place } of dimensions) reach(resource, place)
  for (const { place, kind } of dimensions) {
    const found = reach(resource, place)
    if (!found) continue
    const { holder, key } = found
    const value = holder[key]
    if (kind === 'characters') {
      const text = `a${'.a'.repeat(size * CHARACTERS)}`
      if (Array.isArray(value)) value[0] = text
      else holder[key] = text
    } else if (Array.isArray(value)) {
      const item = structuredClone(value[0])
      for (let at = 1; at < size; at++) value.push(item)
    }
  }
  return resource
}

function listDimensions(place: Place): readonly Dimension[] {
  const last = place.at(-1)
  if (!last) return []
  const isLong = last.element.binding === undefined && TEXT_TYPES.has(last.type.code)
  return [
    ...(last.element.max > 1 ? [{ place, kind: 'items' } as const] : []),
    ...(isLong ? [{ place, kind: 'characters' } as const] : []),
  ]
}

const formatPlace = (place: Place) => place.map(({ element, type }) => getKey(element, type)).join('.')

function toFamily(type: string, dimensions: readonly Dimension[]): Family<Values> {
  const names = dimensions.map(({ place, kind }) => `${kind} of ${formatPlace(place)}`)
  return { name: `${type}: ${names.join(' and ')}`, make: size => makeResource(type, dimensions, size) }
}

/** The first place of a structure in a resource, whose type is returned too. */
function findHost(structure: string): { readonly type: string; readonly place: Place } | undefined {
  const [first = ''] = structure.split('.')
  for (const type of isResourceType(first) ? [first] : HOSTS) {
    const place = type === structure ? [] : findPlace(type, structure, 4)
    if (place) return { type, place }
  }
  // A base, such as DomainResource: one of the structures that have its rules stands for all.
  const derived = Object.keys(definitions.structures).find(
    it => definitions.structures[it]?.base === structure,
  )
  return derived === undefined ? undefined : findHost(derived)
}

/** Observations and Patients have most data types. */
const HOSTS = ['Observation', 'Patient', ...resourceTypes]

function findPlace(from: string, structure: string, levels: number): Place | undefined {
  if (levels === 0) return undefined
  const links = listLinks(from)
  const link = links.find(({ type }) => type.code === structure)
  if (link) return [link]
  for (const next of links) {
    if (!findStructure(next.type.code) || next.type.code === 'Extension') continue
    const rest = findPlace(next.type.code, structure, levels - 1)
    if (rest) return [next, ...rest]
  }
  return undefined
}

function listLinks(structure: string): readonly Link[] {
  return [...(findStructure(structure)?.elements.values() ?? [])].flatMap(element =>
    element.types.map(type => ({ element, type })),
  )
}

/** The places that an expression reads, from the places of its items. */
function listPlaces(expression: Expression, items: readonly Place[], root: string): readonly Place[] {
  const found: Place[] = []
  const visit = (node: Expression, from: readonly Place[]): readonly Place[] => {
    switch (node.kind) {
      case 'literal':
        return []
      case 'this':
        return from
      case 'variable':
        return node.name === 'resource' ? [[]] : from
      case 'child': {
        const children = visit(node.of, from).flatMap(place => follow(place, node.name, root))
        found.push(...children)
        return children
      }
      case 'call': {
        const of = visit(node.of, from)
        const inner = node.name === 'children' ? of.flatMap(place => follow(place, undefined, root)) : of
        const args = node.args.flatMap(argument => visit(argument, inner))
        return node.name === 'select' ? args : inner
      }
      case 'binary':
        return [...visit(node.left, from), ...visit(node.right, from)]
    }
  }
  visit(expression, items)
  return found
}

/** The element of a name, or all. Of a choice the first three types stand for the others. */
function follow(place: Place, name: string | undefined, root: string): readonly Place[] {
  return listLinks(place.at(-1)?.type.code ?? root)
    .filter(({ element, type }) =>
      name === undefined ? element.max > 1 : element.name === name && element.types.indexOf(type) < 3,
    )
    .map(link => [...place, link])
}

/** Every list above a place may be long, too. */
function listPrefixes(place: Place): readonly Place[] {
  return place.map((_, at) => place.slice(0, at + 1))
}

function listRuleFamilies(path: string, expression: string): readonly Family<Values>[] {
  const host = findHost(findStructure(path) ? path : path.slice(0, path.lastIndexOf('.')))
  if (!host) throw new Error(`Cannot find a resource with ${path}`)
  const { type, place } = host
  const own = findStructure(path)
    ? [place]
    : follow(place, path.slice(path.lastIndexOf('.') + 1).replace('[x]', ''), type)
  const places = [...own, ...listPlaces(parseExpression(expression), own, type)].flatMap(listPrefixes)
  const dimensions = [
    ...new Map(
      places.flatMap(listDimensions).map(it => [`${it.kind} ${formatPlace(it.place)}`, it]),
    ).values(),
  ]
  const pairs = dimensions.flatMap((first, at) => dimensions.slice(at + 1).map(second => [first, second]))
  return [...dimensions.map(it => [it]), ...pairs].map(some => toFamily(type, some))
}

/** The rules of R4 by their keys, with the families that are long where each of them looks. */
export const RULES: ReadonlyMap<string, readonly Family<Values>[]> = new Map(
  Object.entries(definitions.invariants).flatMap(([path, rows]) =>
    rows.map(([key, , expression]) => [`${path} ${key}`, listRuleFamilies(path, expression)] as const),
  ),
)

/** All families of rules, each once. */
const ALL_FAMILIES = [...new Map([...RULES.values()].flat().map(it => [it.name, it])).values()]

export const RULE_FAMILIES: readonly Family<Values>[] = IS_THOROUGH ? ALL_FAMILIES : sample(ALL_FAMILIES)

/** Structures that contain themselves: chains of them, many times. */
const LEVELS = 40

export const NESTED_FAMILIES: readonly Family<Values>[] = Object.keys(definitions.structures).flatMap(
  structure => {
    const link = listLinks(structure).find(({ type }) => type.code === structure)
    const host = link && structure !== 'Resource' ? findHost(structure) : undefined
    if (!link || !host || host.place.length === 0) return []
    return [
      {
        name: `${host.type}: ${structure} in itself`,
        make: (size: number) => {
          const resource = makeObject(host.type)
          const found = reach(resource, host.place)
          const count = (host.place.at(-1)?.element.max ?? 1) > 1 ? Math.ceil(size / LEVELS) : 1
          const chains = Array.from({ length: count }, () => nest(link, LEVELS))
          if (found) found.holder[found.key] = Array.isArray(found.holder[found.key]) ? chains : chains[0]
          return resource
        },
      },
    ]
  },
)

function nest({ element, type }: Link, levels: number): Values {
  const made = makeObject(type.code)
  const key = getKey(element, type)
  if (levels > 1)
    made[key] = element.max > 1 ? [nest({ element, type }, levels - 1)] : nest({ element, type }, levels - 1)
  return made
}
