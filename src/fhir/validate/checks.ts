import { isRecord } from '../../core/index.ts'
import { isResourceType } from '../definitions.ts'
import type { ResourceFault } from '../resource.ts'
import type { EvaluationScope } from './items.ts'
import { breaksInvariant, type Invariant, type PlanEntry, type RequiredCodes } from './plan.ts'

/** Levels of elements in a resource, which are deeper than in any real one. A resource inside a Bundle starts again. */
export const MAX_DEPTH = 100

/** Enough to correct a resource; the response to a hostile body must not be larger than the body. */
const MAX_FAULTS = 100

/** The position of a validation, and its findings. */
export interface ValidationWalk {
  /** Names and array indexes from the root to the current value. */
  readonly path: (string | number)[]
  readonly faults: ResourceFault[]
  depth: number
  /** The resource that `#` references are resolved in. */
  container: Container
  /** The current resource for invariants. */
  scope: EvaluationScope
  /** Whether broken rules that are only recommended are found too. */
  readonly warns: boolean
  /** The number of values so far. */
  checked: number
}

export interface Container {
  /** The types of the contained resources by their ids. */
  readonly types: ReadonlyMap<string, unknown>
  readonly referred: Set<string>
}

export const nothingContained: Container = { types: new Map(), referred: new Set() }

export function startWalk(root: string, warns: boolean): ValidationWalk {
  return {
    path: [root],
    faults: [],
    depth: 0,
    container: nothingContained,
    scope: createScope(undefined),
    warns,
    checked: 0,
  }
}

export function createScope(resource: unknown): EvaluationScope {
  return { resource, context: undefined, constants: new Map() }
}

/** Texts never repeat the value, which may be personal data. */
export function addFault(walk: ValidationWalk, code: ResourceFault['code'], text: string): void {
  if (walk.faults.length < MAX_FAULTS) walk.faults.push({ path: formatPath(walk.path), code, text })
}

export function checkInvariants(
  walk: ValidationWalk,
  value: unknown,
  invariants: readonly Invariant[],
): void {
  for (const invariant of invariants) {
    const { severity, text } = invariant
    if ((severity === 'warning' && !walk.warns) || !breaksInvariant(invariant, value, walk.scope)) continue
    if (severity === 'error') addFault(walk, 'invariant', text)
    else if (walk.faults.length < MAX_FAULTS)
      walk.faults.push({ path: formatPath(walk.path), code: 'invariant', text, severity })
  }
}

export function addFaultAt(
  walk: ValidationWalk,
  key: string,
  code: ResourceFault['code'],
  text: string,
): void {
  walk.path.push(key)
  addFault(walk, code, text)
  walk.path.pop()
}

function formatPath(path: readonly (string | number)[]): string {
  let text = ''
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`
    else text += text === '' ? part : `.${part.length > 80 ? `${part.slice(0, 80)}…` : part}`
  }
  return text
}

type Values = Readonly<Record<string, unknown>>

export function checkPrimitive(walk: ValidationWalk, value: unknown, entry: PlanEntry): void {
  const expected = entry.primitive?.(value)
  if (expected !== undefined) addFault(walk, 'value', `Expected ${expected}`)
  else if (entry.codes !== undefined && !entry.codes.codes.has(String(value))) faultCode(walk, entry.codes)
  else if (typeof value === 'string' && value.startsWith('#')) addReferred(walk, value.slice(1))
  if (entry.invariants.length > 0) checkInvariants(walk, value, entry.invariants)
}

function addReferred({ container }: ValidationWalk, id: string): void {
  if (container.types.size > 0) container.referred.add(id)
}

/** A concept with a required binding has a coding of the value set; further codings are free (R4 terminologies.html). */
export function checkConcept(walk: ValidationWalk, value: Values, codes: RequiredCodes): void {
  const codings = Array.isArray(value.coding) ? value.coding.filter(isRecord) : []
  const absent = codings.length === 0 && value.text === undefined && value.extension !== undefined
  if (!absent && !codings.some(it => codes.codings.has(`${it.system}|${it.code}`))) faultCode(walk, codes)
}

function faultCode(walk: ValidationWalk, codes: RequiredCodes): void {
  addFault(walk, 'code-invalid', `Expected a code of the value set ${codes.name}`)
}

const relative = /^([A-Z][A-Za-z]+)(?:\/[A-Za-z0-9\-.]{1,64}(?:\/_history\/[A-Za-z0-9\-.]{1,64})?|\?\S+)$/
const absolute = /^[A-Za-z][A-Za-z0-9+.-]*:\S+$/
const resourceUrl = /\/([A-Z][A-Za-z]+)\/[A-Za-z0-9\-.]{1,64}(?:\/_history\/[A-Za-z0-9\-.]{1,64})?$/

/** `Type/id`, `Type?search` (in a transaction), `#contained`, `urn:…` or an absolute URL, to a type that is allowed. */
export function checkReference(
  walk: ValidationWalk,
  value: Values,
  targets: readonly string[] | undefined,
): void {
  const { reference } = value
  const type = typeof reference === 'string' ? findTargetType(walk, reference) : undefined
  if (typeof value.type === 'string') checkNamedType(walk, value.type, type)
  if (type !== undefined && targets !== undefined && !targets.includes(type))
    addFaultAt(walk, 'reference', 'value', `Expected a reference to ${targets.join(', ')}`)
}

/** `Reference.type` is the name of a type of R4, or the URL of its definition. */
function checkNamedType(walk: ValidationWalk, named: string, type: string | undefined): void {
  const name = named.replace('http://hl7.org/fhir/StructureDefinition/', '')
  if (type !== undefined && name !== type)
    addFaultAt(walk, 'type', 'value', 'Expected the type of the resource that reference names')
  else if (!isResourceType(name) && !absolute.test(name))
    addFaultAt(walk, 'type', 'value', 'Expected a resource type of R4')
}

/** The type of the resource that a reference names, if it is known. */
function findTargetType(walk: ValidationWalk, reference: string): string | undefined {
  if (reference.startsWith('#')) return findContainedType(walk, reference.slice(1))
  const [, local] = relative.exec(reference) ?? []
  const type = local ?? (absolute.test(reference) ? (resourceUrl.exec(reference)?.[1] ?? '') : undefined)
  if (type === undefined) addFaultAt(walk, 'reference', 'value', 'Expected Type/id, #id or an absolute URL')
  else if (local !== undefined && !isResourceType(local))
    addFaultAt(walk, 'reference', 'value', 'Expected a reference to a resource type of R4')
  return type !== undefined && isResourceType(type) ? type : undefined
}

/** ref-1; a lone `#` is the container itself. */
function findContainedType(walk: ValidationWalk, id: string): string | undefined {
  if (id === '') return undefined
  const { types } = walk.container
  const type = types.get(id)
  if (!types.has(id)) addFaultAt(walk, 'reference', 'invariant', 'No contained resource has this id (ref-1)')
  return typeof type === 'string' ? type : undefined
}

/** sqty-1 */
export function checkSimpleQuantity(walk: ValidationWalk, { comparator, _comparator }: Values): void {
  if (comparator !== undefined || _comparator !== undefined)
    addFaultAt(walk, 'comparator', 'invariant', 'A SimpleQuantity has no comparator (sqty-1)')
}

/** R4 extensibility.html: only an extension inside another may have a relative URL. */
export function checkExtensionUrl(walk: ValidationWalk, { url }: Values): void {
  if (typeof url === 'string' && !absolute.test(url))
    addFaultAt(walk, 'url', 'value', 'Expected an absolute URL')
}
