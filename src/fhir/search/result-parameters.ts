import { isFailure, remember } from '../../core/index.ts'
import {
  findSearchParameter,
  findStructure,
  isResourceType,
  listJsonKeys,
  listSearchParameters,
  resourceTypes,
} from '../definitions.ts'
import type { Params } from '../interaction.ts'
import { formatExact, parseExact } from '../json.ts'
import { failFor } from '../reasons/reasons.ts'
import type { ExactResource, Resource } from '../resource.ts'
import type { BadSearch } from './bad-search.ts'

/** `_include=MedicationRequest:requester:Practitioner` and the like. */
export interface IncludeRule {
  /** From a match to the resources it refers to, or to those that refer to it (`_revinclude`). */
  readonly direction: 'forward' | 'reverse'
  /** Also from included resources (`:iterate`). */
  readonly iterate: boolean
  /** The type with the references. */
  readonly source: string
  readonly parameters: readonly string[]
  /** The only type they may refer to, if named. */
  readonly target: string | undefined
  /** One of the rules that `_revinclude=*` stands for. */
  readonly isOfStar?: true
}

/** The rules of an include in a search of these types, or why there are none. */
export function parseInclude(
  name: string,
  value: string,
  types: readonly string[],
): readonly IncludeRule[] | BadSearch {
  const [direction, modifier] = name.split(':')
  // With :iterate the types are not known beforehand.
  if (value === '*' && modifier === undefined)
    return direction === '_include' ? types.flatMap(includeReferences) : types.flatMap(includeReferrers)
  const rule = parseRule(name, value, direction, modifier)
  return isFailure(rule) ? rule : [rule]
}

/** `_include=*` means `Type:*` of the searched type. */
function includeReferences(type: string): readonly IncludeRule[] {
  const parameters = listReferenceParameters(type)
  if (parameters.length === 0) return []
  return [{ direction: 'forward', iterate: false, source: type, parameters, target: undefined }]
}

/** `_revinclude=*` means every parameter of every type that may refer to the searched type. */
function includeReferrers(target: string): readonly IncludeRule[] {
  return [...resourceTypes].flatMap(source => {
    const parameters = listSearchParameters(source)
      .filter(it => it.type === 'reference' && (it.target?.includes(target) ?? true))
      .map(it => it.code)
    return parameters.length === 0
      ? []
      : [{ direction: 'reverse', iterate: false, source, parameters, target, isOfStar: true } as const]
  })
}

function parseRule(
  name: string,
  value: string,
  direction: string | undefined,
  modifier: string | undefined,
): IncludeRule | BadSearch {
  const [source = '', parameter = '', target, ...more] = value.split(':')
  if (!isResourceType(source) || parameter === '' || more.length > 0)
    return failFor('include-malformed', { parameter: name })
  if (target !== undefined && !isResourceType(target))
    return failFor('include-target-unknown', { parameter: name, target })
  const parameters = parameter === '*' ? listReferenceParameters(source) : [parameter]
  if (parameter !== '*' && findSearchParameter(source, parameter)?.type !== 'reference')
    return failFor('include-not-a-reference', { type: source, parameter })
  return {
    direction: direction === '_include' ? 'forward' : 'reverse',
    iterate: modifier !== undefined,
    source,
    parameters,
    target,
  }
}

function listReferenceParameters(type: string): readonly string[] {
  return listSearchParameters(type)
    .filter(it => it.type === 'reference')
    .map(it => it.code)
}

/** The parts of each resource in a response (`_summary`, `_elements`). */
export interface Shape {
  readonly summary: 'false' | 'true' | 'text' | 'data' | 'count'
  readonly elements: readonly string[]
}

// R4 search.html#summary: an incomplete resource has this tag.
const SUBSETTED = {
  system: 'http://terminology.hl7.org/CodeSystem/v3-ObservationValue',
  code: 'SUBSETTED',
}
const ALWAYS: ReadonlySet<string> = new Set(['resourceType', 'id', 'meta'])

const WHOLE: Shape = { summary: 'false', elements: [] }

/** The JSON of a resource as far as it was asked for. With `_summary=true` R4 lets all be shown, and it is. */
export function shapeResponse(content: string, shape: Shape): string {
  return isWhole(shape) ? content : formatExact(shapeResource(parseExact(content) as ExactResource, shape))
}

/** A parsed resource as far as it was asked for. */
export function shapeResource<R extends Resource | ExactResource>(resource: R, shape: Shape): R {
  const { summary, elements } = shape
  if (isWhole(shape)) return resource
  const needed = listNeeded(resource.resourceType)
  if (elements.length > 0) return selectElements(resource, key => elements.includes(key) || needed.has(key))
  if (summary === 'text') return selectElements(resource, key => key === 'text' || needed.has(key))
  return selectElements(resource, key => key !== 'text')
}

const neededKeys = new Map<string, ReadonlySet<string>>()

/** The names in JSON of the top-level elements without which a resource is invalid or says something else (R4 search.html#elements, #summary). */
function listNeeded(type: string): ReadonlySet<string> {
  const structure = findStructure(type)
  if (!structure) return new Set()
  return remember(neededKeys, type, () => {
    const elements = [...structure.elements.values()].filter(it => it.min > 0 || it.isModifier)
    return new Set(elements.flatMap(listJsonKeys))
  })
}

/** Adds the mandatory elements and modifiers of a type to `_elements`, for servers that do not. */
export function nameNeeded(type: string, params: Params): Params {
  return params.map(([name, value]) =>
    name === '_elements' ? [name, [value, ...listNeeded(type)].join(',')] : [name, value],
  )
}

/** Whether a response contains complete resources. */
export function isWhole({ summary, elements }: Shape): boolean {
  return elements.length === 0 && summary !== 'text' && summary !== 'data'
}

/** The shape that `_summary` and `_elements` ask for on a read. */
export function findShape(params: Params): Shape {
  if (params.length === 0) return WHOLE
  const elements = params.filter(([name]) => name === '_elements').flatMap(([, value]) => listElements(value))
  const summary = params.findLast(([name]) => name === '_summary')?.[1]
  return { elements, summary: summary === 'text' || summary === 'data' ? summary : 'false' }
}

/** `name,Patient.birthDate` names the elements `name` and `birthDate` of any resource. */
export function listElements(value: string): readonly string[] {
  return value
    .split(',')
    .map(it => it.trim().replace(/^[A-Z][A-Za-z]*\./, ''))
    .map(it => it.split('.')[0] ?? '')
    .filter(it => it !== '')
}

function selectElements<R extends Resource | ExactResource>(
  resource: R,
  isShown: (key: string) => boolean,
): R {
  const shown = Object.entries(resource).filter(
    ([key]) => ALWAYS.has(key) || isShown(key.startsWith('_') ? key.slice(1) : key),
  )
  return tagSubsetted(Object.fromEntries(shown) as R)
}

/** A copy of a resource, marked as incomplete. */
export function tagSubsetted<R extends Resource | ExactResource>(resource: R): R {
  const tags = Array.isArray(resource.meta?.tag) ? resource.meta.tag : []
  return { ...resource, meta: { ...resource.meta, tag: [...tags, SUBSETTED] } }
}
