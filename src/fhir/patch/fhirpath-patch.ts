import { type Element, findStructure, getKey } from '../definitions.ts'
import { isSameJson } from '../json.ts'
import { PATCH_ELEMENTS } from '../limits.ts'
import { cloneJson, isRecord } from '../resource.ts'
import {
  attempt,
  checkDepth,
  insertItem,
  openWork,
  type Patched,
  PatchFailure,
  type PatchOperation,
  type PatchWork,
  parseOperations,
  removeItem,
  spend,
  type Value,
} from './operations.ts'
import type { Condition, PatchStep } from './patch-path.ts'

/** Applies a FHIRPath Patch (R4 fhirpatch.html) to a copy of a resource. */
export function applyFhirPathPatch(resource: unknown, patch: unknown): Patched {
  return attempt(() => {
    const operations = parseOperations(patch)
    const patched: unknown = cloneJson(resource)
    if (!isRecord(patched)) throw new PatchFailure('there is no resource')
    const root: Place = { value: patched, type: String(patched.resourceType) }
    const budget = { left: PATCH_ELEMENTS, work: openWork() }
    for (const [index, operation] of operations.entries()) {
      if (operation.path.root !== root.type)
        throw new PatchFailure(`the resource is not a ${operation.path.root}`)
      if ('value' in operation) checkDepth(operation.value, index)
      apply(root, operation, budget)
    }
    return patched
  })
}

/** Whether a patch reads stored data: its success reveals whether a condition holds, or whether a list is long enough. */
export function readsByFhirPathPatch(patch: unknown): boolean {
  const parsed = attempt(() => parseOperations(patch).some(reads))
  return 'value' in parsed && parsed.value
}

function reads({ type, path }: PatchOperation): boolean {
  return type === 'move' || path.steps.some(step => step.kind === 'where' || step.kind === 'type')
}

function apply(root: Place, operation: PatchOperation, budget: Budget): void {
  const { steps } = operation.path
  switch (operation.type) {
    case 'add':
      add(findOnly(root, steps, budget), operation.name, operation.value)
      break
    case 'insert': {
      const list = findList(root, steps, budget)
      insert(list, operation.index, toJsonValue(list.element, operation.value).value, budget)
      break
    }
    case 'delete':
      // An absent element is not an error (R4 fhirpatch.html).
      if (locate(root, steps, budget).length > 0) remove(findOnly(root, steps, budget), budget)
      break
    case 'replace':
      replace(findOnly(root, steps, budget), operation.value)
      break
    case 'move':
      move(findList(root, steps, budget), operation.source, operation.destination, budget)
      break
  }
}

function findOnly(root: Place, steps: readonly PatchStep[], budget: Budget): Place {
  const [place, another] = locate(root, steps, budget)
  if (!place) throw new PatchFailure('the path leads to nothing')
  if (another) throw new PatchFailure('the path leads to several elements')
  return place
}

function add(place: Place, name: string, value: Value): void {
  const element = findChild(place, name)
  const holder = findHolder(place)
  const { key, value: added } = toJsonValue(element, value)
  const taken = element.types.map(type => getKey(element, type)).find(it => holder[it] !== undefined)
  if (element.max > 1) append({ by: holder, key, element }, added)
  else if (taken !== undefined || holder[`_${key}`] !== undefined)
    throw new PatchFailure(`there already is a ${name}`)
  else holder[key] = added
}

function replace({ held, element }: Place, value: Value): void {
  if (!held || !element) throw new PatchFailure('the whole resource cannot be replaced')
  const { by, key, index } = held
  const { key: next, value: replacing } = toJsonValue(element, value)
  const items = by[key]
  if (index !== undefined && Array.isArray(items)) {
    items[index] = replacing
    const others = by[`_${key}`]
    if (Array.isArray(others)) others[index] = null
    return
  }
  delete by[key]
  delete by[`_${key}`]
  by[next] = replacing
}

function remove({ held }: Place, { work }: Budget): void {
  if (!held) throw new PatchFailure('the whole resource cannot be deleted')
  const { by, key, index } = held
  for (const name of [key, `_${key}`]) {
    const items = by[name]
    if (index !== undefined && Array.isArray(items)) removeItem(items, index, work)
    // FHIR JSON has no empty arrays (R4 json.html).
    if (index === undefined || getLength(items) === 0) delete by[name]
  }
}

/** A repeating element as a whole, which may have no items yet. */
interface List {
  readonly by: Record<string, unknown>
  readonly key: string
  readonly element: Element
}

function findList(root: Place, steps: readonly PatchStep[], budget: Budget): List {
  const last = steps.at(-1)
  if (last?.kind !== 'child') throw new PatchFailure('the path does not lead to a list')
  const place = findOnly(root, steps.slice(0, -1), budget)
  const element = findChild(place, last.name)
  if (element.max === 1) throw new PatchFailure(`${last.name} is not a list`)
  return { by: findHolder(place), key: last.name, element }
}

function append({ by, key }: List, value: unknown): void {
  const items = Array.isArray(by[key]) ? by[key] : []
  by[key] = items
  items.push(value)
  const others = by[`_${key}`]
  if (Array.isArray(others)) others.push(null)
}

function insert({ by, key }: List, index: number, value: unknown, { work }: Budget): void {
  if (index > getLength(by[key])) throw new PatchFailure(`there is no place ${index} in ${key}`)
  const items = Array.isArray(by[key]) ? by[key] : []
  by[key] = items
  insertItem(items, index, value, work)
  const others = by[`_${key}`]
  if (Array.isArray(others)) insertItem(others, index, null, work)
}

function move({ by, key }: List, source: number, destination: number, { work }: Budget): void {
  if (Math.max(source, destination) >= getLength(by[key]))
    throw new PatchFailure(`there is no place ${Math.max(source, destination)} in ${key}`)
  for (const items of [by[key], by[`_${key}`]])
    if (Array.isArray(items)) moveItem(items, source, destination, work)
}

function moveItem(items: unknown[], source: number, destination: number, work: PatchWork): void {
  const item = items[source]
  removeItem(items, source, work)
  insertItem(items, destination, item, work)
}

function getLength(items: unknown): number {
  return Array.isArray(items) ? items.length : 0
}

function findHolder({ value, type }: Place): Record<string, unknown> {
  if (!isRecord(value)) throw new PatchFailure(`a ${type} has no elements`)
  return value
}

/** The value in JSON, and its name there. */
function toJsonValue(element: Element, value: Value): { readonly key: string; readonly value: unknown } {
  if (value.kind === 'parts') {
    const [type] = element.types
    if (!type || element.choice) throw new PatchFailure(`${element.name} has no parts`)
    return { key: element.name, value: toObject(type.code, value.parts) }
  }
  if (!element.choice) return { key: element.name, value: cloneJson(value.content) }
  const type = element.types.find(({ code }) => code.toLowerCase() === value.type.toLowerCase())
  if (!type) throw new PatchFailure(`${element.name} cannot be a ${value.type}`)
  return { key: getKey(element, type), value: cloneJson(value.content) }
}

/** A backbone element, which has no data type and therefore comes as parts. */
function toObject(type: string, parts: readonly (readonly [string, Value])[]): Record<string, unknown> {
  const made: Record<string, unknown> = {}
  for (const [name, value] of parts) add({ value: made, type }, name, value)
  return made
}

/** An element of a resource: its value and its position. */
export interface Place {
  readonly value: unknown
  /** The data type, resource type or path of a backbone element. */
  readonly type: string
  /** Its container; undefined for the resource itself. */
  readonly held?: { readonly by: Record<string, unknown>; readonly key: string; readonly index?: number }
  readonly element?: Element
}

/** The number of elements that a patch may still visit, and the work that it may still do. */
export interface Budget {
  left: number
  readonly work: PatchWork
}

/** The elements that the steps lead to. An unknown element name is a failure. */
export function locate(from: Place, steps: readonly PatchStep[], budget: Budget): readonly Place[] {
  return steps.reduce<readonly Place[]>((places, step) => follow(places, step, budget), [from])
}

function follow(places: readonly Place[], step: PatchStep, budget: Budget): readonly Place[] {
  switch (step.kind) {
    case 'child':
      return places.flatMap(place => visit(listChildren(place, step.name), budget))
    case 'index':
      return places.slice(step.index, step.index === -1 ? undefined : step.index + 1)
    case 'type':
      return places.filter(place => place.type === step.type)
    case 'where':
      return places.filter(place => step.conditions.every(condition => holds(place, condition, budget)))
  }
}

function visit(places: readonly Place[], budget: Budget): readonly Place[] {
  budget.left -= places.length + 1
  if (budget.left < 0) throw new PatchFailure(`it visits more than ${PATCH_ELEMENTS} elements`)
  return places
}

/** The definition of a child of an element. */
export function findChild({ type, value }: Place, name: string): Element {
  const known = type === 'Resource' && isRecord(value) ? String(value.resourceType) : type
  const element = findStructure(known)?.elements.get(name)
  if (!element) throw new PatchFailure(`${known} has no element ${name}`)
  return element
}

function listChildren(place: Place, name: string): readonly Place[] {
  const element = findChild(place, name)
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

function holds(place: Place, { names, value }: Condition, budget: Budget): boolean {
  const steps = names.map(name => ({ kind: 'child', name }) as const)
  const compare = (found: Place) => isSameJson(found.value, value, digits => spend(budget.work, digits))
  return locate(place, steps, budget).some(compare)
}
