import type { ConditionKey } from '../conditions.ts'
import type { ServiceKey } from '../services.ts'

/** How old: a number of days or months, or the years on the birthday (`MM-DD`). */
export type Age =
  | { readonly days: number }
  | { readonly months: number }
  | { readonly years: number; readonly birthday: string }

/** A patient that does not depend on the seed. Each has a feature that a page must show correctly. */
export interface CastEntry {
  readonly family: string
  readonly given: readonly string[]
  readonly prefix?: readonly string[]
  readonly suffix?: readonly string[]
  readonly gender: 'female' | 'male' | 'other' | 'unknown'
  readonly age: Age
  /** How much of the birth date is on record. */
  readonly known?: 'month' | 'year' | 'nothing'
  /** None: a patient without a number of the hospital. */
  readonly mrn?: string
  readonly diedDaysAgo?: number
  /** Conditions with the days since they were found. Undefined: drawn by chance. */
  readonly story?: readonly (readonly [ConditionKey, number])[]
  readonly inProgress?: ServiceKey
  readonly multipleBirth?: number
  /** The given name of the mother, who acts for the patient. */
  readonly mother?: string
}

/** Days. */
export const year = 365.25
