import { type FailBy, failBy, type NamedFailure } from '../core/index.ts'
import { API_REASONS } from './api.ts'
import { LAUNCH_REASONS } from './launches.ts'
import type { AppWords } from './words.ts'

const APP_REASONS = { ...API_REASONS, ...LAUNCH_REASONS } as const

export type AppReason = keyof typeof APP_REASONS

export type AppFailure<Reason extends AppReason = AppReason> = NamedFailure<Reason>

export const failApp: FailBy<typeof APP_REASONS> = failBy()

export function getAppWords(reason: AppReason): AppWords {
  return APP_REASONS[reason]
}

export function isAppReason(name: string): name is AppReason {
  return Object.hasOwn(APP_REASONS, name)
}
