import type { Transaction } from 'kysely'
import { Type } from 'typebox'
import { HOUR_MS, isFailure } from '../../../core/index.ts'
import { Members, Time } from '../../../endpoint/index.ts'
import { createRandomToken, type Schema } from '../../../store/index.ts'
import { LIMITS } from '../../base/limits.ts'
import { type ActivationLink, createActivationLink, keepActivationLink } from '../../users/activation.ts'
import { removeFactors } from '../../users/factors/factors.ts'
import { forgetWrongProofs } from '../../users/factors/wrong-proofs.ts'
import { forgetWrongPasswords } from '../../users/guesses.ts'
import { hashPassword, NO_PASSWORD } from '../../users/passwords.ts'
import { forgetSenders } from '../../users/senders.ts'
import { keepAccess } from '../../users/validity/facts.ts'
import { computeAccountMark } from '../../users/validity/rule.ts'
import { type Admin, type AdminFailure, failAdmin } from '../base/action.ts'
import { checkLink, checkPassword, isIssued, type NewUser } from './check-user.ts'
import {
  type ChangedUser,
  performOnUser,
  type UserOperation,
  type UserOperations,
} from './perform-on-user.ts'
import type { UserDescription, UserRow, UserTarget } from './users.ts'

export const Password = Type.Optional(
  Type.String({
    description:
      'At least as many characters as `SMART_LOGIN_MIN_PASSWORD_LENGTH` requires, and at most 72 bytes. The user replaces it at the first sign-in.',
  }),
)

export const WithLink = Type.Optional(
  Type.Boolean({
    description:
      'Instead of a password the user gets a link, and chooses a password there. Until then no password signs the user in.',
  }),
)

/** A new activation link, in a response. */
export const NewLink = Members({ url: Type.String(), expires_at: Time })

const KEEP_APPS = {
  keep_apps: Type.Optional(Type.Boolean({ description: 'Keep the access of apps with offline_access.' })),
}

const SignInId = Members({ sign_in: Type.String({ description: 'The id of a sign-in.' }) })

interface Input {
  readonly password?: string
  readonly activation_link?: boolean
  readonly keep_apps?: boolean
  readonly sign_in?: string
}

export const SIGN_IN_OPERATIONS = {
  'set-password': {
    signIn: 'asks',
    api: {
      path: 'password',
      title: 'Reset the password',
      description:
        'The old password stops working, and all sign-ins and the access of apps end. If the body has neither a password nor a link, the server generates a password.',
      input: Members({ password: Password, activation_link: WithLink, ...KEEP_APPS }),
      result: Members({
        password: Type.Optional(Type.String({ description: 'The new password. It is not shown again.' })),
        activation_link: Type.Optional(NewLink),
      }),
    },
    path: 'reset-password',
    page: {
      title: name => `Reset the password of ${name}?`,
      text: 'The current password stops working at once. All sign-ins end, and apps lose the access that the user gave them. Make sure that the request comes from the user.',
      button: 'Reset password',
      endsAccess: true,
    },
    link: { text: 'Reset password', isOffered: user => user.hasPasswords },
    perform: (admin, target, { password, activation_link, keep_apps }) =>
      setPassword(admin, target, { password, withLink: activation_link, keepApps: keep_apps }),
  },
  'end-sessions': {
    signIn: 'never asks',
    api: {
      path: 'end-sessions',
      title: 'End all sign-ins and the access of apps',
      input: Members(KEEP_APPS),
    },
    page: {
      title: name => `End the sign-ins of ${name}?`,
      text: 'All sign-ins end, and apps lose the access that the user gave them. The user can sign in again.',
      button: 'End sign-ins',
      endsAccess: true,
    },
    link: { text: 'End sign-ins', isOffered: () => true },
    perform: (admin, target, { keep_apps }) => endSessions(admin, target, { keepApps: keep_apps }),
  },
  'end-sign-in': {
    signIn: 'never asks',
    api: {
      method: 'DELETE',
      path: 'sign-ins',
      title: 'End one sign-in',
      description: 'Apps that were launched in it lose their access, except with `offline_access`.',
      input: SignInId,
    },
    page: {
      title: name => `End a sign-in of ${name}?`,
      text: 'The user is signed out in this browser. Apps that were launched there lose their access, except those that work while the user is away.',
      button: 'End sign-in',
    },
    perform: (admin, target, { sign_in = '' }) => endSignIn(admin, target, sign_in),
  },
  'reset-second-factor': {
    signIn: 'asks',
    api: {
      path: 'reset-second-factor',
      title: 'Remove all second factors and recovery codes',
      description: 'Ends all sign-ins and the access of apps.',
      input: Members(KEEP_APPS),
    },
    page: {
      title: name => `Reset the second factor of ${name}?`,
      text: 'All second factors and recovery codes are removed. All sign-ins end, and apps lose the access that the user gave them. Anyone who knows the password can then sign in and add a second factor, so make sure that the request comes from the user.',
      button: 'Reset second factor',
      endsAccess: true,
    },
    link: { text: 'Reset second factor', isOffered: user => user.secondFactors > 0 },
    command: {
      done: 'Reset the second factor of',
      help: `
Removes all second factors and recovery codes of a user who lost them. All sign-ins end, and apps lose their access. Set a new
password too if someone else may know the old one.`,
    },
    perform: (admin, target, { keep_apps }) => resetSecondFactor(admin, target, { keepApps: keep_apps }),
  },
  unlock: {
    signIn: 'asks',
    api: {
      path: 'unlock',
      title: 'Accept passwords again after too many wrong ones',
      input: Members({}),
    },
    page: {
      title: name => `Unlock ${name}?`,
      text: 'The wrong passwords are forgotten, and passwords are accepted from everywhere again. If someone may be guessing the password, set a new one instead, or ask the user to add a second factor.',
      button: 'Unlock',
      isDangerous: false,
    },
    link: { text: 'Unlock', isOffered: user => user.lockedAt !== undefined, isMain: true },
    command: {
      done: 'Unlocked',
      help: `
After ${LIMITS.wrongPasswords} wrong passwords in a row, from all addresses together, a password is accepted only from browsers and networks
where the user has signed in before. This accepts it from everywhere again.`,
    },
    perform: unlockUser,
  },
} as const satisfies UserOperations<Input>

function operation(verb: keyof typeof SIGN_IN_OPERATIONS): UserOperation {
  return { verb, signIn: SIGN_IN_OPERATIONS[verb].signIn }
}

export function makeLink(admin: Admin, trx: Transaction<Schema>, row: UserRow): Promise<ActivationLink> {
  const { clock, settings } = admin
  if (!settings) throw new Error('Settings are missing')
  const expiresAt = clock() + settings.activationLinkHours * HOUR_MS
  return createActivationLink(trx, row, { issuerUrl: settings.issuerUrl, expiresAt })
}

/** Sets a new password, or a random one, or makes a link, and returns it. Ends all sign-ins, and the access of apps. */
export async function setPassword(
  admin: Admin,
  target: UserTarget,
  {
    withLink = false,
    password: chosen,
    keepApps = false,
  }: Pick<NewUser, 'withLink' | 'password'> & { readonly keepApps?: boolean | undefined },
): Promise<ChangedUser | AdminFailure> {
  const fault = checkLink(admin, { withLink, password: chosen })
  if (fault) return fault
  const password = withLink ? undefined : (chosen ?? createPassword())
  const password_hash = password === undefined ? NO_PASSWORD : await hashPassword(password)
  let activationLink: ActivationLink | undefined
  const user = await performOnUser(admin, target, operation('set-password'), async (trx, row) => {
    const fault = checkPassword(admin, { username: row.username, displayName: row.display_name }, password)
    if (fault) return fault
    // With a password that only its owner knows, a sample account is one like others.
    const for_loopback = row.for_loopback && (admin.isForLoopback ?? false)
    await forgetWrongProofs(trx, row.id)
    await forgetWrongPasswords(trx, row.id)
    await forgetSenders(trx, row.id)
    const columns = {
      password_hash,
      must_change_password: !withLink && isIssued(admin),
      for_loopback,
      password_changed_at: admin.clock(),
      // The sign-ins end even if there was no password.
      access_version: row.access_version + 1,
    }
    const changed = await storeAndEnd(trx, row, columns, keepApps)
    if (withLink) activationLink = await makeLink(admin, trx, changed)
    return changed
  })
  if (isFailure(user)) return user
  return { ...user, ...(password !== undefined && { password }), ...(activationLink && { activationLink }) }
}

export function createPassword(): string {
  return createRandomToken().slice(0, 20)
}

/** Ends all sign-ins of a user, and the access of apps; `keepApps` keeps apps with `offline_access`. */
export function endSessions(
  admin: Admin,
  target: UserTarget,
  { keepApps = false }: { readonly keepApps?: boolean | undefined } = {},
): Promise<UserDescription | AdminFailure> {
  return performOnUser(admin, target, operation('end-sessions'), (trx, row) =>
    storeAndEnd(trx, row, { access_version: row.access_version + 1 }, keepApps),
  )
}

/** Ends one sign-in of a user. */
export function endSignIn(
  admin: Admin,
  target: UserTarget,
  id: string,
): Promise<UserDescription | AdminFailure> {
  return performOnUser(admin, target, operation('end-sign-in'), async (trx, row) => {
    const { numDeletedRows } = await trx
      .deleteFrom('login')
      .where('clinician_id', '=', row.id)
      .where('id_hash', '=', id)
      .executeTakeFirst()
    return numDeletedRows === 0n ? failAdmin('sign-in-unknown') : row
  })
}

/** Removes all second factors of a user. Ends all sign-ins, and the access of apps. */
export function resetSecondFactor(
  admin: Admin,
  target: UserTarget,
  { keepApps = false }: { readonly keepApps?: boolean | undefined },
): Promise<UserDescription | AdminFailure> {
  return performOnUser(admin, target, operation('reset-second-factor'), async (trx, row, before) => {
    if (before.secondFactors === 0) return failAdmin('no-second-factor')
    await removeFactors(trx, row.id)
    await forgetWrongProofs(trx, row.id)
    return storeAndEnd(trx, row, { access_version: row.access_version + 1 }, keepApps)
  })
}

/** Forgets the wrong passwords of a user, so that a password is accepted from everywhere again. */
export function unlockUser(admin: Admin, target: UserTarget): Promise<UserDescription | AdminFailure> {
  return performOnUser(admin, target, operation('unlock'), async (trx, row, { lockedAt }) => {
    if (lockedAt === undefined) return failAdmin('account-not-locked')
    await forgetWrongPasswords(trx, row.id)
    return row
  })
}

/** Stores columns whose change ends all logins and grants of the user. */
async function storeAndEnd(
  trx: Transaction<Schema>,
  row: UserRow,
  columns: Partial<
    Pick<
      UserRow,
      'password_hash' | 'must_change_password' | 'access_version' | 'for_loopback' | 'password_changed_at'
    >
  >,
  keepApps: boolean,
): Promise<UserRow> {
  await trx.updateTable('clinician').set(columns).where('id', '=', row.id).execute()
  const kept = { accountId: row.id, mark: computeAccountMark(row), what: 'offline' } as const
  if (keepApps) await keepAccess(trx, kept)
  const changed = { ...row, ...columns }
  if (columns.password_hash === undefined) await keepActivationLink(trx, row, changed)
  return changed
}
