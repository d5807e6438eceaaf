import type { AdminOperation } from '../base/action.ts'
import { SIGN_IN_OPERATIONS } from './change-sign-in.ts'
import { CHANGE_OPERATIONS } from './change-user.ts'
import { LINK_OPERATIONS } from './link-user.ts'
import { nameOperation } from './perform-on-user.ts'
import type { UserKind } from './user-fields.ts'

/** The operations on users, by verb, in the order of their links. The audit trail and the command line name them `clinician disable`, `account disable`. */
export const USER_OPERATIONS = { ...SIGN_IN_OPERATIONS, ...CHANGE_OPERATIONS, ...LINK_OPERATIONS }

export function getUserOperation(kind: UserKind, verb: keyof typeof USER_OPERATIONS): AdminOperation {
  return nameOperation(kind, { verb, signIn: USER_OPERATIONS[verb].signIn })
}
