import { acuteConditions } from './acute-conditions.ts'
import { cardiometabolicConditions } from './cardiometabolic-conditions.ts'
import { chronicConditions } from './chronic-conditions.ts'
import type { ConditionEntry } from './condition-entry.ts'

export const conditions = { ...cardiometabolicConditions, ...chronicConditions, ...acuteConditions }

export type ConditionKey = keyof typeof conditions

export function isConditionKey(text: string): text is ConditionKey {
  return Object.hasOwn(conditions, text)
}

/** The entry with all its optional parts. */
export function getConditionEntry(key: ConditionKey): ConditionEntry {
  return conditions[key]
}
