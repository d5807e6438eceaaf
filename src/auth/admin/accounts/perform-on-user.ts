import type { Transaction } from 'kysely'
import { isFailure } from '../../../core/index.ts'
import type { Schema } from '../../../store/index.ts'
import { lockAccount } from '../../users/accounts.ts'
import type { ActivationLink } from '../../users/activation.ts'
import { NO_PASSWORD } from '../../users/passwords.ts'
import type { SignIn } from '../../users/sign-ins.ts'
import {
  type Admin,
  type AdminFailure,
  type AdminOperation,
  compare,
  failAdmin,
  type Properties,
  perform,
} from '../base/action.ts'
import type { RowOperations } from '../subject/subject.ts'
import type { UserKind } from './user-fields.ts'
import {
  describe,
  findRow,
  findUser,
  isAdministrator,
  type UserDescription,
  type UserRow,
  type UserTarget,
} from './users.ts'

/** What pages offer depends on it. */
export interface ShownUser extends UserDescription {
  readonly isSelf: boolean
  /** Whether users of this server sign in with passwords. */
  readonly hasPasswords: boolean
  /** The one that an operation ends. */
  readonly signIn?: SignIn | undefined
}

/** A user, for whoever asks. */
export async function findShown(admin: Admin, target: UserTarget): Promise<ShownUser | AdminFailure> {
  const user = await findUser(admin, target)
  if (!user) return failUnknown(target)
  const { actor, rules } = admin
  const isSelf = actor.kind === 'clinician' && actor.id === user.id
  return { ...user, isSelf, hasPasswords: rules.passwords }
}

/** A user, and a new password or link if the operation made one. Only its hash is stored, so show it now. */
export interface ChangedUser extends UserDescription {
  readonly password?: string
  readonly activationLink?: ActivationLink
}

export type UserOperations<Input = object> = RowOperations<ShownUser, UserTarget, ChangedUser, Input>

/** An operation on users, by its verb in the audit trail and on the command line. */
export interface UserOperation extends Pick<AdminOperation, 'signIn'> {
  readonly verb: string
}

/** `clinician disable`, `account disable`. */
export function nameOperation(kind: UserKind, { verb, signIn }: UserOperation): AdminOperation {
  return { name: `${kind} ${verb}`, signIn }
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
  operation: UserOperation,
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
      operation: nameOperation(before.kind, operation),
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
