import { isResourceType } from '../definitions.ts'
import { isRecord } from '../resource.ts'
import type { PlanEntry, RequiredCodes } from './plan.ts'
import { addFault, addFaultAt, type Walk } from './walk.ts'

type Values = Readonly<Record<string, unknown>>

export function checkPrimitive(walk: Walk, value: unknown, entry: PlanEntry): void {
  const expected = entry.primitive?.(value)
  if (expected !== undefined) addFault(walk, 'value', `Expected ${expected}`)
  else if (entry.codes !== undefined && !entry.codes.codes.has(String(value))) faultCode(walk, entry.codes)
  else if (typeof value === 'string' && value.startsWith('#')) walk.container.referred.add(value.slice(1))
}

/** A concept under a required binding has a coding of the value set; its other codings are free (R4 terminologies.html). */
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
const addressed = /\/([A-Z][A-Za-z]+)\/[A-Za-z0-9\-.]{1,64}(?:\/_history\/[A-Za-z0-9\-.]{1,64})?$/

/** `Type/id`, `Type?search` (in a transaction), `#contained`, `urn:…` or an absolute address; and to a type it may name. */
export function checkReference(walk: Walk, value: Values, targets: readonly string[] | undefined): void {
  const { reference } = value
  if (typeof reference !== 'string') return
  if (reference.startsWith('#')) checkContained(walk, reference.slice(1))
  else checkAddress(walk, reference, targets)
}

function checkAddress(walk: Walk, address: string, targets: readonly string[] | undefined): void {
  const local = relative.exec(address)
  const type = (local ?? addressed.exec(address))?.[1]
  if (local === null && !absolute.test(address)) {
    addFaultAt(walk, 'reference', 'value', 'Expected Type/id, #id or an absolute address')
  } else if (local !== null && !isResourceType(local[1] ?? '')) {
    addFaultAt(walk, 'reference', 'value', 'Expected a reference to a resource type of R4')
  } else if (type !== undefined && targets !== undefined && isResourceType(type) && !targets.includes(type)) {
    addFaultAt(walk, 'reference', 'value', `Expected a reference to ${targets.join(', ')}`)
  }
}

/** ref-1; a lone `#` is the container itself. */
function checkContained(walk: Walk, id: string): void {
  if (id !== '' && !walk.container.ids.has(id)) {
    addFaultAt(walk, 'reference', 'invariant', 'Nothing contained has this id (ref-1)')
  }
}
