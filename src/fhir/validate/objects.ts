import { isRecord } from '../record.ts'
import { keyOf } from '../structure.ts'
import { checkCompanion } from './companions.ts'
import { type Plan, type PlanEntry, planOf } from './plan.ts'
import { checkContainedResource, checkResource } from './resources.ts'
import { checkConcept, checkPrimitive, checkReference } from './values.ts'
import { deepest, fault, faultAt, type Walk } from './walk.ts'

type Values = Readonly<Record<string, unknown>>

/** An object against the structure that it should have. `typed`: it is a resource, whose type has been read. */
export function checkObject(walk: Walk, value: Values, plan: Plan, typed: boolean): void {
  if (isTooDeep(walk)) return
  walk.depth++
  const keys = Object.keys(value)
  if (keys.length === 0) fault(walk, 'structure', 'Expected an object that is not empty')
  for (const key of keys) checkKey(walk, value, key, plan, typed)
  for (const { element, keys: names } of plan.required) {
    if (!names.some(name => value[name] !== undefined)) {
      faultAt(walk, element.choice ? `${element.name}[x]` : element.name, 'required', 'A value is needed')
    }
  }
  for (const invariant of plan.invariants) {
    if (!invariant.holds(value)) fault(walk, 'invariant', `${invariant.text} (${invariant.key})`)
  }
  walk.depth--
}

function isTooDeep(walk: Walk): boolean {
  if (walk.depth < deepest) return false
  fault(walk, 'structure', `Nested deeper than ${deepest} levels`)
  return true
}

function checkKey(walk: Walk, value: Values, key: string, plan: Plan, typed: boolean): void {
  const entry = plan.entries.get(key)
  walk.path.push(key)
  if (entry !== undefined) {
    checkEntry(walk, value, entry)
    if (entry.element.choice) checkChoice(walk, value, entry, plan)
  } else if (key.startsWith('_')) checkUnderscored(walk, value, key, plan)
  else if (!(typed && key === 'resourceType')) fault(walk, 'structure', 'Unknown element')
  walk.path.pop()
}

function checkUnderscored(walk: Walk, value: Values, key: string, plan: Plan): void {
  const entry = plan.entries.get(key.slice(1))
  if (entry?.primitive === undefined) {
    fault(walk, 'structure', 'Unknown element')
    return
  }
  checkCompanion(walk, value[key], value[entry.key], entry)
  if (entry.element.choice && value[entry.key] === undefined) checkChoice(walk, value, entry, plan)
}

/** One type of a choice only; told at each but the first, in the order of the definition. */
function checkChoice(walk: Walk, value: Values, entry: PlanEntry, plan: Plan): void {
  for (const type of entry.element.types) {
    const key = keyOf(entry.element, type)
    if (key === entry.key) return
    if (plan.entries.has(key) && (value[key] !== undefined || value[`_${key}`] !== undefined)) {
      fault(walk, 'structure', `Only one ${entry.element.name}[x] is allowed`)
      return
    }
  }
}

function checkEntry(walk: Walk, value: Values, entry: PlanEntry): void {
  const found = value[entry.key]
  if (entry.repeats) checkArray(walk, found, value, entry)
  else if (Array.isArray(found)) fault(walk, 'structure', 'Expected one value, not an array')
  else checkValue(walk, found, entry)
}

function checkArray(walk: Walk, found: unknown, value: Values, entry: PlanEntry): void {
  if (!Array.isArray(found) || found.length === 0) {
    fault(walk, 'structure', 'Expected an array that is not empty')
    return
  }
  if (found.length > entry.element.max)
    fault(walk, 'structure', `Expected at most ${entry.element.max} values`)
  const companions = entry.primitive === undefined ? undefined : value[`_${entry.key}`]
  for (let index = 0; index < found.length; index++) {
    // A primitive in an array may be null where only its extensions are known (R4 json.html#primitive).
    if (found[index] === null && Array.isArray(companions) && isRecord(companions[index])) continue
    walk.path.push(index)
    checkValue(walk, found[index], entry)
    walk.path.pop()
  }
}

function checkValue(walk: Walk, value: unknown, entry: PlanEntry): void {
  const { code } = entry.type
  if (entry.primitive !== undefined) checkPrimitive(walk, value, entry)
  else if (code === 'Resource') checkHeld(walk, value, entry)
  else if (!isRecord(value)) fault(walk, 'structure', `Expected an object (${code})`)
  else {
    if (code === 'Reference') checkReference(walk, value, entry.type.targets)
    if (entry.codes !== undefined) checkConcept(walk, value, entry.codes)
    checkObject(walk, value, planOf(code), false)
  }
}

function checkHeld(walk: Walk, value: unknown, entry: PlanEntry): void {
  if (isTooDeep(walk)) return
  if (entry.key === 'contained') checkContainedResource(walk, value)
  else checkResource(walk, value)
}
