import { isFailure, isRecord } from '../../core/index.ts'
import { type Element, findStructure, getKey, listJsonKeys } from '../definitions.ts'
import { PATCH_ELEMENTS } from '../limits.ts'
import { failFor } from '../reasons/reasons.ts'
import { cloneJson } from '../resource.ts'
import type { Work } from '../work.ts'
import {
  checkDepth,
  checkWork,
  countElements,
  insertItem,
  isSameValue,
  openWork,
  type Patched,
  type PatchOperation,
  type PatchProblem,
  type PatchWork,
  parseOperations,
  removeItem,
  type Value,
} from './operations.ts'
import type { PatchCondition, PatchStep } from './patch-path.ts'

/** Applies a FHIRPath Patch (R4 fhirpatch.html) to a copy of a resource. */
export function applyFhirPathPatch(resource: unknown, patch: unknown, work: Work): Patched {
  const operations = parseOperations(patch)
  if (isFailure(operations)) return operations
  const patched: unknown = cloneJson(resource)
  if (!isRecord(patched)) return failFor('patch-without-resource')
  const root: Place = { value: patched, type: String(patched.resourceType) }
  const budget = { left: PATCH_ELEMENTS, work: openWork(work) }
  for (const [index, operation] of operations.entries()) {
    if (operation.path.root !== root.type)
      return failFor('patch-of-another-type', { type: operation.path.root })
    const tooDeep = 'value' in operation ? checkDepth(operation.value, index) : undefined
    const failure = tooDeep ?? apply(root, operation, budget)
    if (failure) return failure
  }
  return { value: patched }
}

/** Whether a patch reads stored data: its success reveals whether a condition holds, or whether a list is long enough. */
export function readsByFhirPathPatch(patch: unknown): boolean {
  const operations = parseOperations(patch)
  return !isFailure(operations) && operations.some(reads)
}

function reads({ type, path }: PatchOperation): boolean {
  return type === 'move' || path.steps.some(step => step.kind === 'where' || step.kind === 'type')
}

function apply(root: Place, operation: PatchOperation, budget: Budget): PatchProblem | undefined {
  const { steps } = operation.path
  switch (operation.type) {
    case 'add': {
      const place = findOnly(root, steps, budget)
      return isFailure(place) ? place : add(place, operation.name, operation.value)
    }
    case 'insert': {
      const list = findList(root, steps, budget)
      return isFailure(list) ? list : insert(list, operation.index, operation.value, budget)
    }
    case 'delete': {
      const places = locate(root, steps, budget)
      // An absent element is not an error (R4 fhirpatch.html).
      if (isFailure(places) || places.length === 0) return isFailure(places) ? places : undefined
      const place = findOnly(root, steps, budget)
      return isFailure(place) ? place : remove(place, budget)
    }
    case 'replace': {
      const place = findOnly(root, steps, budget)
      return isFailure(place) ? place : replace(place, operation.value)
    }
    case 'move': {
      const list = findList(root, steps, budget)
      return isFailure(list) ? list : move(list, operation.source, operation.destination, budget)
    }
  }
}

function findOnly(root: Place, steps: readonly PatchStep[], budget: Budget): Place | PatchProblem {
  const places = locate(root, steps, budget)
  if (isFailure(places)) return places
  const [place, another] = places
  if (!place) return failFor('patch-path-to-nothing')
  return another ? failFor('patch-path-to-several') : place
}

function add(place: Place, name: string, value: Value): PatchProblem | undefined {
  const child = openChild(place, name)
  if (isFailure(child)) return child
  const { by, element } = child
  const added = toJsonValue(element, value)
  if (isFailure(added)) return added
  const { key } = added
  const taken = listJsonKeys(element).find(it => by[it] !== undefined)
  if (element.max > 1) append(by, key, added.value)
  else if (taken !== undefined || by[`_${key}`] !== undefined) return failFor('patch-element-taken', { name })
  else by[key] = added.value
  return undefined
}

function replace({ held, element }: Place, value: Value): PatchProblem | undefined {
  if (!held || !element) return failFor('patch-replaces-resource')
  const { by, key, index } = held
  const replacing = toJsonValue(element, value)
  if (isFailure(replacing)) return replacing
  const items = by[key]
  if (index !== undefined && Array.isArray(items)) {
    items[index] = replacing.value
    const others = by[`_${key}`]
    if (Array.isArray(others)) others[index] = null
    return undefined
  }
  delete by[key]
  delete by[`_${key}`]
  by[replacing.key] = replacing.value
  return undefined
}

function remove({ held }: Place, { work }: Budget): PatchProblem | undefined {
  if (!held) return failFor('patch-deletes-resource')
  const { by, key, index } = held
  for (const name of [key, `_${key}`]) {
    const items = by[name]
    const failure = index !== undefined && Array.isArray(items) ? removeItem(items, index, work) : undefined
    if (failure) return failure
    // FHIR JSON has no empty arrays (R4 json.html).
    if (index === undefined || getLength(items) === 0) delete by[name]
  }
  return undefined
}

/** A repeating element as a whole, which may have no items yet. */
interface List {
  readonly by: Record<string, unknown>
  readonly key: string
  readonly element: Element
}

function findList(root: Place, steps: readonly PatchStep[], budget: Budget): List | PatchProblem {
  const last = steps.at(-1)
  if (last?.kind !== 'child') return failFor('patch-path-not-to-list')
  const place = findOnly(root, steps.slice(0, -1), budget)
  const child = isFailure(place) ? place : openChild(place, last.name)
  if (isFailure(child)) return child
  return child.element.max === 1
    ? failFor('patch-element-not-a-list', { name: last.name })
    : { ...child, key: last.name }
}

function append(by: Record<string, unknown>, key: string, value: unknown): void {
  const items = Array.isArray(by[key]) ? by[key] : []
  by[key] = items
  items.push(value)
  const others = by[`_${key}`]
  if (Array.isArray(others)) others.push(null)
}

function insert(
  { by, key, element }: List,
  index: number,
  value: Value,
  { work }: Budget,
): PatchProblem | undefined {
  const inserted = toJsonValue(element, value)
  if (isFailure(inserted)) return inserted
  if (index > getLength(by[key])) return failFor('patch-place-missing', { index, name: key })
  const items = Array.isArray(by[key]) ? by[key] : []
  by[key] = items
  const others = by[`_${key}`]
  return (
    insertItem(items, index, inserted.value, work) ??
    (Array.isArray(others) ? insertItem(others, index, null, work) : undefined)
  )
}

function move(
  { by, key }: List,
  source: number,
  destination: number,
  { work }: Budget,
): PatchProblem | undefined {
  if (Math.max(source, destination) >= getLength(by[key]))
    return failFor('patch-place-missing', { index: Math.max(source, destination), name: key })
  for (const items of [by[key], by[`_${key}`]]) {
    if (!Array.isArray(items)) continue
    const item = items[source]
    const failure = removeItem(items, source, work) ?? insertItem(items, destination, item, work)
    if (failure) return failure
  }
  return undefined
}

function getLength(items: unknown): number {
  return Array.isArray(items) ? items.length : 0
}

/** The value in JSON, and its name there. */
function toJsonValue(
  element: Element,
  value: Value,
): { readonly key: string; readonly value: unknown } | PatchProblem {
  if (value.kind === 'parts') {
    const [type] = element.types
    if (!type || element.choice) return failFor('patch-element-without-parts', { name: element.name })
    const made = toObject(type.code, value.parts)
    return isFailure(made) ? made : { key: element.name, value: made }
  }
  if (!element.choice) return { key: element.name, value: cloneJson(value.content) }
  const type = element.types.find(({ code }) => code.toLowerCase() === value.type.toLowerCase())
  if (!type) return failFor('patch-element-of-another-type', { name: element.name, type: value.type })
  return { key: getKey(element, type), value: cloneJson(value.content) }
}

/** A backbone element, which has no data type and therefore comes as parts. */
function toObject(
  type: string,
  parts: readonly (readonly [string, Value])[],
): Record<string, unknown> | PatchProblem {
  const made: Record<string, unknown> = {}
  for (const [name, value] of parts) {
    const failure = add({ value: made, type }, name, value)
    if (failure) return failure
  }
  return made
}

/** An element of a resource: its value and its position. */
interface Place {
  readonly value: unknown
  /** The data type, resource type or path of a backbone element. */
  readonly type: string
  /** Its container; undefined for the resource itself. */
  readonly held?: { readonly by: Record<string, unknown>; readonly key: string; readonly index?: number }
  readonly element?: Element
}

/** The number of elements that a patch may still visit, and the work that it may still do. */
interface Budget {
  left: number
  readonly work: PatchWork
}

/** The elements that the steps lead to. An unknown element name is a failure. */
function locate(from: Place, steps: readonly PatchStep[], budget: Budget): readonly Place[] | PatchProblem {
  let places: readonly Place[] = [from]
  for (const step of steps) {
    const next = follow(places, step, budget)
    if (isFailure(next)) return next
    places = next
  }
  return places
}

function follow(places: readonly Place[], step: PatchStep, budget: Budget): readonly Place[] | PatchProblem {
  switch (step.kind) {
    case 'child':
      return visitChildren(places, step.name, budget)
    case 'index':
      return places.slice(step.index, step.index === -1 ? undefined : step.index + 1)
    case 'type':
      return places.filter(place => place.type === step.type)
    case 'where':
      return select(places, step.conditions, budget)
  }
}

function visitChildren(
  places: readonly Place[],
  name: string,
  budget: Budget,
): readonly Place[] | PatchProblem {
  const found: Place[] = []
  for (const place of places) {
    const children = listChildren(place, name)
    if (isFailure(children)) return children
    budget.left -= children.length + 1
    if (budget.left < 0) return failFor('patch-visits-too-much', { most: PATCH_ELEMENTS })
    const excess = countElements(budget.work, children.length + 1)
    if (excess) return excess
    for (const child of children) found.push(child)
  }
  return found
}

/** The elements for which all conditions hold. */
function select(
  places: readonly Place[],
  conditions: readonly PatchCondition[],
  budget: Budget,
): readonly Place[] | PatchProblem {
  let selected = places
  for (const { names, value } of conditions) {
    const steps = names.map(name => ({ kind: 'child', name }) as const)
    const kept: Place[] = []
    for (const place of selected) {
      const found = locate(place, steps, budget)
      if (isFailure(found)) return found
      if (found.some(it => isSameValue(it.value, value, budget.work))) kept.push(place)
    }
    selected = kept
  }
  return checkWork(budget.work) ?? selected
}

/** The definition of a child of an element. */
function findChild({ type, value }: Place, name: string): Element | PatchProblem {
  const known = type === 'Resource' && isRecord(value) ? String(value.resourceType) : type
  return findStructure(known)?.elements.get(name) ?? failFor('patch-element-unknown', { type: known, name })
}

/** A child of an element that has children, to be written. */
function openChild(place: Place, name: string): Pick<List, 'by' | 'element'> | PatchProblem {
  const element = findChild(place, name)
  if (isFailure(element)) return element
  return isRecord(place.value)
    ? { by: place.value, element }
    : failFor('patch-type-without-elements', { type: place.type })
}

function listChildren(place: Place, name: string): readonly Place[] | PatchProblem {
  const element = findChild(place, name)
  if (isFailure(element)) return element
  const { value: by } = place
  if (!isRecord(by)) return []
  return element.types.flatMap((it): readonly Place[] => {
    const key = getKey(element, it)
    const value = Object.hasOwn(by, key) ? by[key] : undefined
    if (value === undefined) return []
    const common = { type: it.code, element }
    if (!Array.isArray(value)) return [{ ...common, value, held: { by, key } }]
    return value.map((item: unknown, index) => ({ ...common, value: item, held: { by, key, index } }))
  })
}
