import { isSameJson } from '../exact-json.ts'
import { PATCH_ELEMENTS } from '../limits.ts'
import { isRecord } from '../record.ts'
import { type Element, findStructure, keyOf } from '../structure.ts'
import { PatchFailure } from './failure.ts'
import type { Condition, PatchStep } from './patch-path.ts'

/** An element of a resource: the value, and where it stands. */
export interface Place {
  readonly value: unknown
  /** The data type, resource type or path of a backbone element. */
  readonly type: string
  /** What holds it; undefined for the resource itself. */
  readonly held?: { readonly by: Record<string, unknown>; readonly key: string; readonly index?: number }
  readonly element?: Element
}

/** How many more elements a patch may look at. */
export interface Budget {
  left: number
}

/** The elements that the steps lead to. A name that the definitions do not have is a failure. */
export function locate(from: Place, steps: readonly PatchStep[], budget: Budget): readonly Place[] {
  return steps.reduce<readonly Place[]>((places, step) => follow(places, step, budget), [from])
}

function follow(places: readonly Place[], step: PatchStep, budget: Budget): readonly Place[] {
  switch (step.kind) {
    case 'child':
      return places.flatMap(place => spend(listChildren(place, step.name), budget))
    case 'index':
      return places.slice(step.index, step.index === -1 ? undefined : step.index + 1)
    case 'type':
      return places.filter(place => place.type === step.type)
    case 'where':
      return places.filter(place => step.conditions.every(condition => holds(place, condition, budget)))
  }
}

function spend(places: readonly Place[], budget: Budget): readonly Place[] {
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
    const key = keyOf(element, it)
    const value = Object.hasOwn(by, key) ? by[key] : undefined
    if (value === undefined) return []
    const common = { type: it.code, element }
    if (!Array.isArray(value)) return [{ ...common, value, held: { by, key } }]
    return value.map((item: unknown, index) => ({ ...common, value: item, held: { by, key, index } }))
  })
}

function holds(place: Place, { names, value }: Condition, budget: Budget): boolean {
  const steps = names.map(name => ({ kind: 'child', name }) as const)
  return locate(place, steps, budget).some(found => isSameJson(found.value, value))
}
