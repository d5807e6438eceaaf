import type { PageRequest } from '../base/action.ts'
import { UNUSED_DAYS, type UserDescription, type UserFilter } from './users.ts'

/** What all users of a list have in common. */
export type ListFilter = Omit<UserFilter, keyof PageRequest | 'text'>

/** The lists of users, by `state`: of the URL of the page, of the administration API, and of commands. */
export const USER_LISTS = {
  all: {},
  administrators: { admin: true },
  auditors: { auditor: true },
  'without-second-factor': { hasSecondFactor: false, disabled: false },
  locked: { locked: true },
  unused: { unusedDays: UNUSED_DAYS, disabled: false },
  never: { hasSignedIn: false, disabled: false },
  disabled: { disabled: true },
} satisfies Readonly<Record<string, ListFilter>>

/** A word about an account, and whether it is good or bad news. */
interface StateWord {
  readonly text: string
  readonly tone?: 'ok' | 'bad' | 'accent'
}

/** The state of an account in words, on pages and by commands. */
export function listStateWords(user: UserDescription): readonly StateWord[] {
  const { disabled, lockedAt, admin, auditor, adminProviders, records, isForLoopback } = user
  return [
    disabled ? { text: 'Disabled', tone: 'bad' } : { text: 'Active', tone: 'ok' },
    ...(lockedAt === undefined ? [] : [{ text: 'Locked', tone: 'bad' } as const]),
    ...(admin ? [{ text: 'Administrator', tone: 'accent' } as const] : []),
    ...(auditor ? [{ text: 'Auditor', tone: 'accent' } as const] : []),
    ...adminProviders.map(id => ({ text: `Administrator by ${id}`, tone: 'accent' }) as const),
    ...(records ? [] : [{ text: 'No records' }]),
    ...(isForLoopback ? [{ text: 'Loopback only' }] : []),
  ]
}
