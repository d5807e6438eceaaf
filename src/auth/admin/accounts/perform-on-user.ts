import type { Transaction } from 'kysely'
import { isFailure } from '../../../core/index.ts'
import type { Schema } from '../../../store/index.ts'
import { lockAccount } from '../../users/accounts.ts'
import { NO_PASSWORD } from '../../users/passwords.ts'
import {
  type Admin,
  type AdminFailure,
  type AdminOperation,
  compare,
  failAdmin,
  type Properties,
  perform,
  type SignInRule,
} from '../base/action.ts'
import {
  describe,
  findRow,
  isAdministrator,
  type UserDescription,
  type UserKind,
  type UserRow,
  type UserTarget,
} from './users.ts'

/** Whether an operation on a user needs a recent sign-in, by its verb in the audit trail (ADMIN-4). */
export const RECENT_SIGN_IN = {
  add: 'asks',
  set: 'asks',
  'set-password': 'asks',
  'end-sessions': 'never asks',
  'end-sign-in': 'never asks',
  'reset-second-factor': 'asks',
  unlock: 'asks',
  disable: 'asks about administrators',
  enable: 'asks',
  remove: 'asks about administrators',
  link: 'asks',
  unlink: 'asks',
} as const satisfies Readonly<Record<string, SignInRule>>

type UserVerb = keyof typeof RECENT_SIGN_IN

export function nameOperation(kind: UserKind, verb: UserVerb): AdminOperation {
  return { name: `${kind} ${verb}`, signIn: RECENT_SIGN_IN[verb] }
}

/** Operations after which an administrator who performs them on the own account would no longer be one. */
const ENDS_OWN_RIGHT: readonly string[] = [
  'remove-administrator',
  'make-auditor',
  // Ends all sign-ins.
  'change-fhir-user',
  'disable',
  'remove',
]

/** Administrators cannot end their own right: its end would undo the change that they make, and one of them stays. */
export function refuseOwnAccount({ actor }: Admin, userId: string, verb: string): AdminFailure | undefined {
  return actor.kind === 'clinician' && actor.id === userId && ENDS_OWN_RIGHT.includes(verb)
    ? failAdmin('own-account')
    : undefined
}

/** Performs an action on a user, and records the properties that changed. */
export function performOnUser(
  admin: Admin,
  target: UserTarget,
  verb: UserVerb,
  change: (
    trx: Transaction<Schema>,
    row: UserRow,
    before: UserDescription,
  ) => Promise<UserRow | AdminFailure>,
): Promise<UserDescription | AdminFailure> {
  return perform(admin, async trx => {
    const row = await lockRow(trx, target)
    if (!row) return failUnknown(target)
    const before = await describe(trx, admin.rules, row, admin.clock())
    const changed = await change(trx, row, before)
    if (isFailure(changed)) return changed
    const result = await describe(trx, admin.rules, changed, admin.clock())
    const isNewPassword = changed.password_hash !== row.password_hash
    const { before: old, after } = compare(toProperties(before), toProperties(result))
    return {
      operation: nameOperation(before.kind, verb),
      target: { type: 'account', id: row.id, name: row.username },
      isAboutAdministrator: isAdministrator(before),
      result,
      before: old,
      after: {
        ...after,
        ...(isNewPassword && { password: changed.password_hash === NO_PASSWORD ? 'removed' : 'replaced' }),
      },
    }
  })
}

/** Finds a user and locks it, so that simultaneous changes follow each other. */
export async function lockRow(trx: Transaction<Schema>, target: UserTarget): Promise<UserRow | undefined> {
  const found = await findRow(trx, target)
  return found && lockAccount(trx, found.id)
}

export function failUnknown({ kind = 'clinician', ...target }: UserTarget): AdminFailure {
  const name = 'username' in target ? target.username : target.id
  return failAdmin('user-unknown', { kind, name })
}

export function toProperties(user: UserDescription): Properties {
  const { kind, isForLoopback, adminProviders, links, ...properties } = user
  return { ...properties, links: links.map(({ issuer, subject }) => ({ issuer, subject })) }
}
