import { type FactsArgument, type FactsIn, type Failed, fail, type StoredFacts } from '../core/index.ts'
import { API_REASONS } from './api.ts'
import { LAUNCH_REASONS } from './launches.ts'
import type { AppWords } from './words.ts'

const APP_REASONS = { ...API_REASONS, ...LAUNCH_REASONS } as const

export type AppReason = keyof typeof APP_REASONS

/** A failure that names its reason. No fact is a token or data of a patient. */
export interface AppFailure<Reason extends AppReason = AppReason> extends Failed {
  readonly reason: Reason
  readonly facts: StoredFacts
}

export function failApp<const Reason extends AppReason>(
  reason: Reason,
  ...[facts]: FactsArgument<FactsIn<(typeof APP_REASONS)[Reason]>>
): AppFailure<Reason> {
  return fail({ reason, facts: facts ?? {} })
}

export function getAppWords(reason: AppReason): AppWords {
  return APP_REASONS[reason]
}

export function isAppReason(name: string): name is AppReason {
  return Object.hasOwn(APP_REASONS, name)
}
