import { isResourceType } from '../definitions.ts'
import { isRecord } from '../resource.ts'
import type { PlanEntry, RequiredCodes } from './plan.ts'
import { addFault, addFaultAt, checkInvariants, type Walk } from './walk.ts'

type Values = Readonly<Record<string, unknown>>

export function checkPrimitive(walk: Walk, value: unknown, entry: PlanEntry): void {
  const expected = entry.primitive?.(value)
  if (expected !== undefined) addFault(walk, 'value', `Expected ${expected}`)
  else if (entry.codes !== undefined && !entry.codes.codes.has(String(value))) faultCode(walk, entry.codes)
  else if (typeof value === 'string' && value.startsWith('#')) addReferred(walk, value.slice(1))
  if (entry.invariants.length > 0) checkInvariants(walk, value, entry.invariants)
}

function addReferred({ container }: Walk, id: string): void {
  if (container.types.size > 0) container.referred.add(id)
}

/** A concept with a required binding has a coding of the value set; further codings are free (R4 terminologies.html). */
export function checkConcept(walk: Walk, value: Values, codes: RequiredCodes): void {
  const codings = Array.isArray(value.coding) ? value.coding.filter(isRecord) : []
  const absent = codings.length === 0 && value.text === undefined && value.extension !== undefined
  if (!absent && !codings.some(it => codes.codings.has(`${it.system}|${it.code}`))) faultCode(walk, codes)
}

function faultCode(walk: Walk, codes: RequiredCodes): void {
  addFault(walk, 'code-invalid', `Expected a code of the value set ${codes.name}`)
}

const relative = /^([A-Z][A-Za-z]+)(?:\/[A-Za-z0-9\-.]{1,64}(?:\/_history\/[A-Za-z0-9\-.]{1,64})?|\?\S+)$/
const absolute = /^[A-Za-z][A-Za-z0-9+.-]*:\S+$/
const resourceUrl = /\/([A-Z][A-Za-z]+)\/[A-Za-z0-9\-.]{1,64}(?:\/_history\/[A-Za-z0-9\-.]{1,64})?$/

/** `Type/id`, `Type?search` (in a transaction), `#contained`, `urn:…` or an absolute URL, to a type that is allowed. */
export function checkReference(walk: Walk, value: Values, targets: readonly string[] | undefined): void {
  const { reference } = value
  const type = typeof reference === 'string' ? findTargetType(walk, reference) : undefined
  if (typeof value.type === 'string') checkNamedType(walk, value.type, type)
  if (type !== undefined && targets !== undefined && !targets.includes(type))
    addFaultAt(walk, 'reference', 'value', `Expected a reference to ${targets.join(', ')}`)
}

/** `Reference.type` is the name of a type of R4, or the URL of its definition. */
function checkNamedType(walk: Walk, named: string, type: string | undefined): void {
  const name = named.replace('http://hl7.org/fhir/StructureDefinition/', '')
  if (type !== undefined && name !== type)
    addFaultAt(walk, 'type', 'value', 'Expected the type of the resource that reference names')
  else if (!isResourceType(name) && !absolute.test(name))
    addFaultAt(walk, 'type', 'value', 'Expected a resource type of R4')
}

/** The type of the resource that a reference names, if it is known. */
function findTargetType(walk: Walk, reference: string): string | undefined {
  if (reference.startsWith('#')) return findContainedType(walk, reference.slice(1))
  const [, local] = relative.exec(reference) ?? []
  const type = local ?? (absolute.test(reference) ? (resourceUrl.exec(reference)?.[1] ?? '') : undefined)
  if (type === undefined) addFaultAt(walk, 'reference', 'value', 'Expected Type/id, #id or an absolute URL')
  else if (local !== undefined && !isResourceType(local))
    addFaultAt(walk, 'reference', 'value', 'Expected a reference to a resource type of R4')
  return type !== undefined && isResourceType(type) ? type : undefined
}

/** ref-1; a lone `#` is the container itself. */
function findContainedType(walk: Walk, id: string): string | undefined {
  if (id === '') return undefined
  const { types } = walk.container
  const type = types.get(id)
  if (!types.has(id)) addFaultAt(walk, 'reference', 'invariant', 'No contained resource has this id (ref-1)')
  return typeof type === 'string' ? type : undefined
}

/** sqty-1 */
export function checkSimpleQuantity(walk: Walk, { comparator, _comparator }: Values): void {
  if (comparator !== undefined || _comparator !== undefined)
    addFaultAt(walk, 'comparator', 'invariant', 'A SimpleQuantity has no comparator (sqty-1)')
}

/** R4 extensibility.html: only an extension inside another may have a relative URL. */
export function checkExtensionUrl(walk: Walk, { url }: Values): void {
  if (typeof url === 'string' && !absolute.test(url))
    addFaultAt(walk, 'url', 'value', 'Expected an absolute URL')
}
