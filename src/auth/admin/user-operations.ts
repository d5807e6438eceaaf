import { type Static, type TObject, type TSchema, Type } from '@sinclair/typebox'
import { sql, type Transaction } from 'kysely'
import { HOUR_MS, isFailure } from '../../core/index.ts'
import { createRandomToken, revokeGrantTokens, type Schema } from '../../store/index.ts'
import { LIMITS } from '../base/limits.ts'
import { lockAccount } from '../users/accounts.ts'
import { type ActivationLink, createActivationLink, keepActivationLink } from '../users/activation.ts'
import { removeFactors } from '../users/factors/factors.ts'
import { forgetWrongCodes } from '../users/factors/wrong-codes.ts'
import { forgetSenders, forgetWrongPasswords } from '../users/guesses.ts'
import { hashPassword, NO_PASSWORD } from '../users/passwords.ts'
import { keepAccess } from '../users/validity/facts.ts'
import { computeAccountMark } from '../users/validity/rule.ts'
import {
  type Admin,
  AdminFailure,
  compare,
  type Operation,
  type Properties,
  perform,
  type SignIn,
} from './action.ts'
import {
  checkLink,
  checkPassword,
  isIssued,
  listUserFaults,
  type NewUser,
  USERNAME_TAKEN,
} from './check-user.ts'
import { CLOSED, Time } from './endpoint.ts'
import type { ActionLink, CommandWords, Question } from './operation.ts'
import {
  describe,
  findRow,
  isAdministrator,
  type UserDescription,
  type UserKind,
  type UserLink,
  type UserRow,
  type UserTarget,
} from './users.ts'

/** A user, and a new password or link if the operation made one. Only its hash is stored, so show it now. */
export interface ChangedUser extends UserDescription {
  readonly password?: string
  readonly activationLink?: ActivationLink
}

/** What pages offer depends on it. */
export interface ShownUser extends UserDescription {
  readonly isSelf: boolean
  /** Whether users of this server sign in with passwords. */
  readonly hasPasswords: boolean
}

/** A user of an identity provider. */
export const Link = Type.Object({ issuer: Type.String(), subject: Type.String() }, CLOSED)

export const Password = Type.Optional(
  Type.String({
    description:
      'From the characters that `SMART_LOGIN_MIN_PASSWORD_LENGTH` requires to 72 bytes. The user replaces it at the first sign-in.',
  }),
)

export const WithLink = Type.Optional(
  Type.Boolean({
    description:
      'Instead of a password the user gets a link, and chooses a password there. Until then no password signs the user in.',
  }),
)

/** A new activation link, in a response. */
export const NewLink = Type.Object({ url: Type.String(), expires_at: Time }, CLOSED)

/** One sign-in of a user. */
export const SignInId = Type.Object({ sign_in: Type.String({ description: 'The id of a sign-in.' }) }, CLOSED)

const KEEP_APPS = {
  keep_apps: Type.Optional(Type.Boolean({ description: 'Keep the access of apps with offline_access.' })),
}

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
} as const satisfies Readonly<Record<string, SignIn>>

type UserVerb = keyof typeof RECENT_SIGN_IN

function nameOperation(kind: UserKind, verb: UserVerb): Operation {
  return { name: `${kind} ${verb}`, signIn: RECENT_SIGN_IN[verb] }
}

/** The members of an operation on one user. */
type UserInput = Partial<Static<typeof Link> & Static<typeof SignInId>> & {
  readonly password?: string
  readonly activation_link?: boolean
  readonly keep_apps?: boolean
}

/** An operation on users. With `perform` the pages offer it, and the API and the command line if they have words for it. */
export interface UserOperation {
  readonly signIn: SignIn
  /** Undefined: the API changes the user by PATCH. */
  readonly api?: {
    readonly method: 'POST' | 'DELETE'
    /** Below the path of the user. */
    readonly path: string
    readonly title: string
    readonly description?: string
    /** The members of the body, or of the query of a DELETE. */
    readonly input: TObject
    /** By default the user. */
    readonly result?: TSchema
  }
  /** The last part of the path of its page; by default the verb. */
  readonly path?: string
  readonly page?: Question
  readonly link?: ActionLink<ShownUser>
  readonly command?: CommandWords
  perform?(admin: Admin, target: UserTarget, input: UserInput): Promise<ChangedUser | AdminFailure>
}

/** The operations on users, by verb. The audit trail and the command line name them `clinician disable`, `account disable`. */
export const USER_OPERATIONS = {
  add: { signIn: RECENT_SIGN_IN.add },
  set: { signIn: RECENT_SIGN_IN.set },
  'set-password': {
    signIn: RECENT_SIGN_IN['set-password'],
    api: {
      method: 'POST',
      path: 'password',
      title: 'Reset the password',
      description:
        'Ends the password, all sign-ins and the access of apps. Without a password and a link the server generates a password.',
      input: Type.Object({ password: Password, activation_link: WithLink, ...KEEP_APPS }, CLOSED),
      result: Type.Object(
        {
          password: Type.Optional(Type.String({ description: 'The new password. It is not shown again.' })),
          activation_link: Type.Optional(NewLink),
        },
        CLOSED,
      ),
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
    signIn: RECENT_SIGN_IN['end-sessions'],
    api: {
      method: 'POST',
      path: 'end-sessions',
      title: 'End all sign-ins and the access of apps',
      input: Type.Object(KEEP_APPS, CLOSED),
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
    signIn: RECENT_SIGN_IN['end-sign-in'],
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
    signIn: RECENT_SIGN_IN['reset-second-factor'],
    api: {
      method: 'POST',
      path: 'reset-second-factor',
      title: 'Remove all second factors and recovery codes',
      description: 'Ends all sign-ins and the access of apps.',
      input: Type.Object(KEEP_APPS, CLOSED),
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
    signIn: RECENT_SIGN_IN.unlock,
    api: {
      method: 'POST',
      path: 'unlock',
      title: 'Accept passwords again after too many wrong ones',
      input: Type.Object({}, CLOSED),
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
  'make-administrator': {
    signIn: RECENT_SIGN_IN.set,
    page: {
      title: name => `Make ${name} an administrator?`,
      text: 'Administrators use this area: they change apps, users and keys, and read the audit trail.',
      button: 'Make administrator',
      isDangerous: false,
    },
    link: { text: 'Make administrator', isOffered: user => user.kind === 'clinician' && !user.admin },
    perform: (admin, target) => changeUser(admin, target, { admin: true }),
  },
  'remove-administrator': {
    signIn: RECENT_SIGN_IN.set,
    page: {
      title: name => `Remove ${name} from the administrators?`,
      text: 'The user keeps the account. If no administrator is left, the command line can add one.',
      button: 'Remove administrator',
    },
    link: {
      text: 'Remove administrator',
      isOffered: user => user.kind === 'clinician' && user.admin && !user.isSelf,
    },
    perform: (admin, target) => changeUser(admin, target, { admin: false }),
  },
  'make-auditor': {
    signIn: RECENT_SIGN_IN.set,
    page: {
      title: name => `Make ${name} an auditor?`,
      text: 'Auditors see the lists of this area, and search, export and verify the audit trail. They change nothing. An administrator is then no longer one.',
      button: 'Make auditor',
      isDangerous: false,
    },
    link: {
      text: 'Make auditor',
      isOffered: user => user.kind === 'clinician' && !user.auditor && !user.isSelf,
    },
    perform: (admin, target) => changeUser(admin, target, { auditor: true }),
  },
  'remove-auditor': {
    signIn: RECENT_SIGN_IN.set,
    page: {
      title: name => `Remove ${name} from the auditors?`,
      text: 'The user keeps the account, and can no longer see this area.',
      button: 'Remove auditor',
    },
    link: { text: 'Remove auditor', isOffered: user => user.auditor },
    perform: (admin, target) => changeUser(admin, target, { auditor: false }),
  },
  disable: {
    signIn: RECENT_SIGN_IN.disable,
    page: {
      title: name => `Disable ${name}?`,
      text: 'The user cannot sign in. All sign-ins end, and apps lose the access that the user gave them.',
      button: 'Disable user',
      endsAccess: true,
    },
    link: { text: 'Disable', isOffered: user => !user.isSelf && !user.disabled },
    command: {
      done: 'Disabled',
      help: `
FHIR servers refuse the user's access tokens within 5 seconds. Once enabled, the user can sign in again, but apps do not get
their access back.`,
    },
    perform: (admin, target) => changeUser(admin, target, { disabled: true }),
  },
  enable: {
    signIn: RECENT_SIGN_IN.enable,
    page: {
      title: name => `Enable ${name}?`,
      text: 'The user can sign in again. Apps do not get their access back.',
      button: 'Enable user',
      isDangerous: false,
    },
    link: { text: 'Enable', isOffered: user => !user.isSelf && user.disabled },
    command: { done: 'Enabled' },
    perform: (admin, target) => changeUser(admin, target, { disabled: false }),
  },
  remove: {
    signIn: RECENT_SIGN_IN.remove,
    api: {
      method: 'DELETE',
      path: '',
      title: 'Remove a user, all sign-ins and the access of apps',
      description: 'An identity provider that creates accounts creates it again at the next sign-in.',
      input: Type.Object({}, CLOSED),
    },
    page: {
      title: name => `Remove ${name}?`,
      text: 'The account is deleted, all sign-ins end, and apps lose the access that the user gave them. This cannot be undone. Audit records stay. If an identity provider creates accounts, it creates this one again at the next sign-in: to keep the user out, disable the account.',
      button: 'Remove user',
      endsAccess: true,
    },
    link: { text: 'Remove', isOffered: user => !user.isSelf },
    command: {
      done: 'Removed',
      help: `
Deletes the account with its links, sign-ins and the access that the user gave apps. FHIR servers refuse the access tokens
within 5 seconds. Audit records stay. An identity provider that creates accounts creates it again at the next sign-in: to keep
the user out, disable the account.`,
    },
    perform: removeUser,
  },
  link: {
    signIn: RECENT_SIGN_IN.link,
    api: {
      method: 'POST',
      path: 'links',
      title: 'Link a user of an identity provider',
      description: 'Replaces a link of the same issuer and subject to another user.',
      input: Link,
    },
    page: {
      title: name => `Link ${name} to a provider account`,
      text: 'The account of the identity provider then signs in as this user. If it is linked to another user, that link is removed.',
      button: 'Link account',
      isDangerous: false,
    },
    perform: (admin, target, { issuer = '', subject = '' }) => linkUser(admin, target, { issuer, subject }),
  },
  unlink: {
    signIn: RECENT_SIGN_IN.unlink,
    api: { method: 'DELETE', path: 'links', title: 'Remove a link', input: Link },
    page: {
      title: name => `Remove a link of ${name}?`,
      text: 'The provider account can no longer sign in as this user, and its current sign-ins end.',
      button: 'Remove link',
    },
    perform: (admin, target, { issuer = '', subject = '' }) => unlinkUser(admin, target, { issuer, subject }),
  },
} as const satisfies Readonly<Record<string, UserOperation>>

/** Operations after which an administrator who performs them on the own account would no longer be one. */
const ENDS_OWN_RIGHT: readonly string[] = ['remove-administrator', 'make-auditor', 'disable', 'remove']

/** Administrators cannot end their own right: its end would undo the change that they make, and one of them stays. */
export function refuseOwnAccount({ actor }: Admin, userId: string, verb: string): AdminFailure | undefined {
  return actor.kind === 'clinician' && actor.id === userId && ENDS_OWN_RIGHT.includes(verb)
    ? new AdminFailure(
        'conflict',
        'this is your own account. Another administrator can disable or remove it, or end your role',
      )
    : undefined
}

/** Adds a user. */
export async function addUser(admin: Admin, user: NewUser): Promise<ChangedUser | AdminFailure> {
  const fault = listUserFaults(user)[0] ?? checkPassword(admin, user, user.password) ?? checkLink(admin, user)
  if (fault) return fault
  const password_hash = user.password === undefined ? NO_PASSWORD : await hashPassword(user.password)
  return perform(admin, async trx => {
    const row = await trx
      .insertInto('clinician')
      .values({
        username: user.username,
        display_name: user.displayName,
        fhir_user_id: toColumn(user.fhirUser),
        admin: user.admin ?? false,
        auditor: user.auditor ?? false,
        password_hash,
        must_change_password: user.password !== undefined && isIssued(admin),
        for_loopback: admin.isForLoopback ?? false,
        created_at: admin.clock(),
      })
      .onConflict(conflict => conflict.column('username').doNothing())
      .returningAll()
      .executeTakeFirst()
    if (!row) return USERNAME_TAKEN
    await storeRelatedPersons(trx, row.id, user.relatedPersons ?? [])
    const activationLink = user.withLink ? await makeLink(admin, trx, row) : undefined
    const result = await describe(trx, admin.rules, row, admin.clock())
    return {
      operation: nameOperation(user.kind, 'add'),
      target: { type: 'account', id: row.id, name: user.username },
      result: { ...result, ...(activationLink && { activationLink }) },
      after: toProperties(result),
    }
  })
}

function makeLink(admin: Admin, trx: Transaction<Schema>, row: UserRow): Promise<ActivationLink> {
  const { clock, issuerUrl, activationLinkHours } = admin
  if (issuerUrl === undefined || activationLinkHours === undefined) throw new Error('Settings are missing')
  const expiresAt = clock() + activationLinkHours * HOUR_MS
  return createActivationLink(trx, row, { issuerUrl, expiresAt })
}

/** The column has the bare id of a Practitioner (LOGIN-1). */
function toColumn(fhirUser: string): string {
  return fhirUser.replace(/^Practitioner\//, '')
}

async function storeRelatedPersons(
  trx: Transaction<Schema>,
  userId: string,
  ids: readonly string[],
): Promise<void> {
  await trx.deleteFrom('account_related_person').where('clinician_id', '=', userId).execute()
  for (const id of new Set(ids))
    await trx
      .insertInto('account_related_person')
      .values({ clinician_id: userId, related_person_id: id })
      .execute()
}

/** The properties that change. */
export interface UserChanges {
  readonly displayName?: string | undefined
  readonly fhirUser?: string | undefined
  readonly relatedPersons?: readonly string[] | undefined
  readonly admin?: boolean | undefined
  readonly auditor?: boolean | undefined
  readonly disabled?: boolean | undefined
}

/**
 * Changes a user. Disabling a user ends all sign-ins and the access of apps. The last administrator may give up the role:
 * the command line can restore it.
 */
export function changeUser(
  admin: Admin,
  target: UserTarget,
  asked: UserChanges,
): Promise<UserDescription | AdminFailure> {
  const changes = replaceRole(asked)
  const verb = chooseVerb(changes)
  return performOnUser(admin, target, verb, async (trx, row, before) => {
    const own = refuseOwnAccount(admin, row.id, changes.admin === false ? 'remove-administrator' : verb)
    if (own) return own
    const wanted = {
      ...before,
      displayName: changes.displayName ?? before.displayName,
      fhirUser: changes.fhirUser ?? before.fhirUser,
      relatedPersons: changes.relatedPersons ?? before.relatedPersons,
      admin: changes.admin ?? before.admin,
      auditor: changes.auditor ?? before.auditor,
      disabled: changes.disabled ?? before.disabled,
    }
    const [fault] = listUserFaults(wanted)
    if (fault) return fault
    const columns = {
      display_name: wanted.displayName,
      fhir_user_id: toColumn(wanted.fhirUser),
      admin: wanted.admin,
      auditor: wanted.auditor,
      disabled: wanted.disabled,
      // Enabling a user again does not restore what ended.
      access_version: row.access_version + (wanted.disabled && !before.disabled ? 1 : 0),
    }
    await trx.updateTable('clinician').set(columns).where('id', '=', row.id).execute()
    if (changes.relatedPersons) await storeRelatedPersons(trx, row.id, changes.relatedPersons)
    // Also if an identity provider gave it.
    if (changes.admin === false) await takeRightFromLogins(trx, row.id)
    return { ...row, ...columns }
  })
}

/** A user has one role: a new one ends the other. */
function replaceRole(changes: UserChanges): UserChanges {
  const { admin, auditor } = changes
  return {
    ...changes,
    ...(auditor && { admin: admin ?? false }),
    ...(admin && { auditor: auditor ?? false }),
  }
}

async function takeRightFromLogins(trx: Transaction<Schema>, userId: string): Promise<void> {
  await trx.updateTable('login').set({ admin: false }).where('clinician_id', '=', userId).execute()
}

function chooseVerb({ disabled, ...others }: UserChanges): 'set' | 'enable' | 'disable' {
  if (disabled === undefined || Object.values(others).some(value => value !== undefined)) return 'set'
  return disabled ? 'disable' : 'enable'
}

/** Grants of a user that are deleted in one transaction, during which others wait. */
const GRANTS_AT_ONCE = 1_000

/** Deletes a user. Access tokens that may still be valid are revoked. */
export function removeUser(admin: Admin, target: UserTarget): Promise<UserDescription | AdminFailure> {
  return perform(admin, async trx => {
    const row = await lockRow(trx, target)
    if (!row) return failUnknown(target)
    const own = refuseOwnAccount(admin, row.id, 'remove')
    if (own) return own
    const user = await describe(trx, admin.rules, row, admin.clock())
    const grants = trx.selectFrom('grant').select('id').where('clinician_id', '=', row.id)
    if (await grants.limit(1).offset(GRANTS_AT_ONCE).executeTakeFirst())
      return new AdminFailure(
        'conflict',
        `the user has more than ${GRANTS_AT_ONCE} grants. Disable the account, and remove it when they have expired`,
      )
    await revokeGrantTokens(trx, sql`clinician_id = ${row.id}`, admin.clock())
    await trx.deleteFrom('clinician').where('id', '=', row.id).execute()
    return {
      operation: nameOperation(user.kind, 'remove'),
      target: { type: 'account', id: row.id, name: row.username },
      isAboutAdministrator: isAdministrator(user),
      result: user,
      before: toProperties(user),
    }
  })
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
  const user = await performOnUser(admin, target, 'set-password', async (trx, row) => {
    const fault = checkPassword(admin, { username: row.username, displayName: row.display_name }, password)
    if (fault) return fault
    // With a password that only its owner knows, a sample account is one like others.
    const for_loopback = row.for_loopback && (admin.isForLoopback ?? false)
    await forgetWrongCodes(trx, row.id)
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
  return performOnUser(admin, target, 'end-sessions', (trx, row) =>
    storeAndEnd(trx, row, { access_version: row.access_version + 1 }, keepApps),
  )
}

/** Ends one sign-in of a user. */
export function endSignIn(
  admin: Admin,
  target: UserTarget,
  id: string,
): Promise<UserDescription | AdminFailure> {
  return performOnUser(admin, target, 'end-sign-in', async (trx, row) => {
    const { numDeletedRows } = await trx
      .deleteFrom('login')
      .where('clinician_id', '=', row.id)
      .where('id_hash', '=', id)
      .executeTakeFirst()
    return numDeletedRows === 0n ? new AdminFailure('not_found', 'the sign-in has ended') : row
  })
}

/** Removes all second factors of a user. Ends all sign-ins, and the access of apps. */
function resetSecondFactor(
  admin: Admin,
  target: UserTarget,
  { keepApps = false }: { readonly keepApps?: boolean | undefined },
): Promise<UserDescription | AdminFailure> {
  return performOnUser(admin, target, 'reset-second-factor', async (trx, row, before) => {
    if (before.secondFactors === 0) return new AdminFailure('conflict', 'the user has no second factor')
    await removeFactors(trx, row.id)
    await forgetWrongCodes(trx, row.id)
    return storeAndEnd(trx, row, { access_version: row.access_version + 1 }, keepApps)
  })
}

/** Forgets the wrong passwords of a user, so that a password is accepted from everywhere again. */
function unlockUser(admin: Admin, target: UserTarget): Promise<UserDescription | AdminFailure> {
  return performOnUser(admin, target, 'unlock', async (trx, row, { lockedAt }) => {
    if (lockedAt === undefined) return new AdminFailure('conflict', 'the account is not locked')
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

/** Links a user of an identity provider, who then signs in as this user. Replaces a link to another user (SIGNIN-6). */
export async function linkUser(
  admin: Admin,
  target: UserTarget,
  { issuer, subject }: Pick<UserLink, 'issuer' | 'subject'>,
): Promise<UserDescription | AdminFailure> {
  if (![issuer, subject].every(text => text !== '' && text.length <= LIMITS.urlCharacters))
    return new AdminFailure('invalid', `issuer and subject have 1 to ${LIMITS.urlCharacters} characters`)
  return performOnUser(admin, target, 'link', async (trx, row) => {
    const link = { clinician_id: row.id, provisioned: false, created_at: admin.clock() }
    await trx
      .insertInto('clinician_link')
      .values({ issuer, subject, ...link })
      .onConflict(conflict => conflict.columns(['issuer', 'subject']).doUpdateSet(link))
      .execute()
    return row
  })
}

/** Removes a link. The logins that it allowed end. */
export async function unlinkUser(
  admin: Admin,
  target: UserTarget,
  { issuer, subject }: Pick<UserLink, 'issuer' | 'subject'>,
): Promise<UserDescription | AdminFailure> {
  return performOnUser(admin, target, 'unlink', async (trx, row) => {
    const { numDeletedRows } = await trx
      .deleteFrom('clinician_link')
      .where('clinician_id', '=', row.id)
      .where('issuer', '=', issuer)
      .where('subject', '=', subject)
      .executeTakeFirst()
    if (numDeletedRows === 0n) return new AdminFailure('not_found', 'there is no such link')
    return row
  })
}

/** Performs an action on a user, and records the properties that changed. */
function performOnUser(
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
async function lockRow(trx: Transaction<Schema>, target: UserTarget): Promise<UserRow | undefined> {
  const found = await findRow(trx, target)
  return found && lockAccount(trx, found.id)
}

function failUnknown({ kind = 'clinician', ...target }: UserTarget): AdminFailure {
  const name = 'username' in target ? target.username : target.id
  return new AdminFailure('not_found', `there is no ${kind} ${name}`)
}

function toProperties(user: UserDescription): Properties {
  const { kind, isForLoopback, adminProviders, links, ...properties } = user
  return { ...properties, links: links.map(({ issuer, subject }) => ({ issuer, subject })) }
}
