import { isRecord } from '../record.ts'
import { checkObject } from './objects.ts'
import { type PlanEntry, planOf } from './plan.ts'
import { fault, type Walk } from './walk.ts'

/** `_birthDate`, `_given`: id and extensions of a primitive, for an array one per value, null where there are none. */
export function checkCompanion(walk: Walk, companion: unknown, value: unknown, entry: PlanEntry): void {
  if (!entry.repeats) checkOne(walk, companion)
  else if (!Array.isArray(companion)) fault(walk, 'structure', 'Expected an array')
  else if (!isAlongside(companion, value))
    fault(walk, 'structure', `Expected as many items as ${entry.key} has`)
  else checkEach(walk, companion, Array.isArray(value))
}

function isAlongside(companion: readonly unknown[], value: unknown): boolean {
  return Array.isArray(value)
    ? value.length === companion.length
    : value === undefined && companion.length > 0
}

function checkEach(walk: Walk, companion: readonly unknown[], sparse: boolean): void {
  for (let index = 0; index < companion.length; index++) {
    if (companion[index] === null && sparse) continue
    walk.path.push(index)
    checkOne(walk, companion[index])
    walk.path.pop()
  }
}

function checkOne(walk: Walk, companion: unknown): void {
  if (isRecord(companion)) checkObject(walk, companion, planOf('Element'), false)
  else fault(walk, 'structure', 'Expected an object (Element)')
}
