import { PATCH_ELEMENTS } from '../limits.ts'
import { cloneJson, isRecord } from '../record.ts'
import { type Element, keyOf } from '../structure.ts'
import { attempt, checkDepth, type Patched, PatchFailure } from './failure.ts'
import { type Budget, findChild, locate, type Place } from './locate.ts'
import { type PatchOperation, parseOperations, type Value } from './operations.ts'
import type { PatchStep } from './patch-path.ts'

/** Applies a FHIRPath Patch (R4 fhirpatch.html) to a resource, which stays as it is. */
export function applyFhirPathPatch(resource: unknown, patch: unknown): Patched {
  return attempt(() => {
    const operations = parseOperations(patch)
    const patched: unknown = cloneJson(resource)
    if (!isRecord(patched)) throw new PatchFailure('there is no resource')
    const root: Place = { value: patched, type: String(patched.resourceType) }
    const budget = { left: PATCH_ELEMENTS }
    for (const [index, operation] of operations.entries()) {
      if (operation.path.root !== root.type)
        throw new PatchFailure(`the resource is not a ${operation.path.root}`)
      if ('value' in operation) checkDepth(operation.value, index)
      apply(root, operation, budget)
    }
    return patched
  })
}

/** Whether a patch reads what is stored: by a condition whether it holds, by a move whether there are so many. */
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
      add(onlyAt(root, steps, budget), operation.name, operation.value)
      break
    case 'insert': {
      const list = listAt(root, steps, budget)
      insert(list, operation.index, valueFor(list.element, operation.value).value)
      break
    }
    case 'delete':
      // What is not there is deleted already (R4 fhirpatch.html).
      if (locate(root, steps, budget).length > 0) remove(onlyAt(root, steps, budget))
      break
    case 'replace':
      replace(onlyAt(root, steps, budget), operation.value)
      break
    case 'move':
      move(listAt(root, steps, budget), operation.source, operation.destination)
      break
  }
}

function onlyAt(root: Place, steps: readonly PatchStep[], budget: Budget): Place {
  const [place, another] = locate(root, steps, budget)
  if (!place) throw new PatchFailure('the path leads to nothing')
  if (another) throw new PatchFailure('the path leads to several elements')
  return place
}

function add(place: Place, name: string, value: Value): void {
  const element = findChild(place, name)
  const holder = findHolder(place)
  const { key, value: added } = valueFor(element, value)
  const taken = element.types.map(type => keyOf(element, type)).find(it => holder[it] !== undefined)
  if (element.max > 1) insert({ by: holder, key, element }, lengthOf(holder[key]), added)
  else if (taken !== undefined || holder[`_${key}`] !== undefined)
    throw new PatchFailure(`there already is a ${name}`)
  else holder[key] = added
}

function replace({ held, element }: Place, value: Value): void {
  if (!held || !element) throw new PatchFailure('the whole resource cannot be replaced')
  const { by, key, index } = held
  const { key: next, value: replacing } = valueFor(element, value)
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

function remove({ held }: Place): void {
  if (!held) throw new PatchFailure('the whole resource cannot be deleted')
  const { by, key, index } = held
  for (const name of [key, `_${key}`]) {
    const items = by[name]
    if (index !== undefined && Array.isArray(items)) items.splice(index, 1)
    // FHIR JSON has no empty arrays (R4 json.html).
    if (index === undefined || lengthOf(items) === 0) delete by[name]
  }
}

/** A repeating element as a whole, which may have no items yet. */
interface List {
  readonly by: Record<string, unknown>
  readonly key: string
  readonly element: Element
}

function listAt(root: Place, steps: readonly PatchStep[], budget: Budget): List {
  const last = steps.at(-1)
  if (last?.kind !== 'child') throw new PatchFailure('the path does not lead to a list')
  const place = onlyAt(root, steps.slice(0, -1), budget)
  const element = findChild(place, last.name)
  if (element.max === 1) throw new PatchFailure(`${last.name} is not a list`)
  return { by: findHolder(place), key: last.name, element }
}

function insert({ by, key }: List, index: number, value: unknown): void {
  if (index > lengthOf(by[key])) throw new PatchFailure(`there is no place ${index} in ${key}`)
  const items = Array.isArray(by[key]) ? by[key] : []
  by[key] = items
  items.splice(index, 0, value)
  const others = by[`_${key}`]
  if (Array.isArray(others)) others.splice(index, 0, null)
}

function move({ by, key }: List, source: number, destination: number): void {
  if (Math.max(source, destination) >= lengthOf(by[key]))
    throw new PatchFailure(`there is no place ${Math.max(source, destination)} in ${key}`)
  for (const items of [by[key], by[`_${key}`]])
    if (Array.isArray(items)) items.splice(destination, 0, ...items.splice(source, 1))
}

function lengthOf(items: unknown): number {
  return Array.isArray(items) ? items.length : 0
}

function findHolder({ value, type }: Place): Record<string, unknown> {
  if (!isRecord(value)) throw new PatchFailure(`a ${type} has no elements`)
  return value
}

/** The value as it stands in JSON, and the name that it has there. */
function valueFor(element: Element, value: Value): { readonly key: string; readonly value: unknown } {
  if (value.kind === 'parts') {
    const [type] = element.types
    if (!type || element.choice) throw new PatchFailure(`${element.name} has no parts`)
    return { key: element.name, value: toObject(type.code, value.parts) }
  }
  if (!element.choice) return { key: element.name, value: cloneJson(value.content) }
  const type = element.types.find(({ code }) => code.toLowerCase() === value.type.toLowerCase())
  if (!type) throw new PatchFailure(`${element.name} cannot be a ${value.type}`)
  return { key: keyOf(element, type), value: cloneJson(value.content) }
}

/** A backbone element, which has no data type and so comes as parts. */
function toObject(type: string, parts: readonly (readonly [string, Value])[]): Record<string, unknown> {
  const made: Record<string, unknown> = {}
  for (const [name, value] of parts) add({ value: made, type }, name, value)
  return made
}
