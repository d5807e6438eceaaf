import { type Static, Type } from 'typebox'
import { CLOSED, Time } from '../../../endpoint/index.ts'
import { LIMITS } from '../../base/limits.ts'
import type { SignIn as FoundSignIn } from '../../users/sign-ins.ts'
import type { RowOperations } from '../subject/operations.ts'
import {
  type ChangedUser,
  endSessions,
  endSignIn,
  linkUser,
  resetSecondFactor,
  setPassword,
  unlinkUser,
  unlockUser,
} from './change-sign-in.ts'
import { changeUser, removeUser } from './change-user.ts'
import { RECENT_SIGN_IN } from './perform-on-user.ts'
import type { UserDescription, UserTarget } from './users.ts'

/** What pages offer depends on it. */
export interface ShownUser extends UserDescription {
  readonly isSelf: boolean
  /** Whether users of this server sign in with passwords. */
  readonly hasPasswords: boolean
  /** The one that an operation ends. */
  readonly signIn?: FoundSignIn | undefined
}

/** A user of an identity provider. */
export const Link = Type.Object({ issuer: Type.String(), subject: Type.String() }, CLOSED)

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
export const NewLink = Type.Object({ url: Type.String(), expires_at: Time }, CLOSED)

/** One sign-in of a user. */
export const SignInId = Type.Object({ sign_in: Type.String({ description: 'The id of a sign-in.' }) }, CLOSED)

const KEEP_APPS = {
  keep_apps: Type.Optional(Type.Boolean({ description: 'Keep the access of apps with offline_access.' })),
}

/** The members of an operation on one user. */
type UserInput = Partial<Static<typeof Link> & Static<typeof SignInId>> & {
  readonly password?: string
  readonly activation_link?: boolean
  readonly keep_apps?: boolean
  readonly records?: false
}

/** The operations on users, by verb. The audit trail and the command line name them `clinician disable`, `account disable`. */
export const USER_OPERATIONS = {
  add: { signIn: RECENT_SIGN_IN.add },
  set: { signIn: RECENT_SIGN_IN.set },
  'set-password': {
    signIn: RECENT_SIGN_IN['set-password'],
    api: {
      path: 'password',
      title: 'Reset the password',
      description:
        'The old password stops working, and all sign-ins and the access of apps end. If the body has neither a password nor a link, the server generates a password.',
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
    perform: (admin, target, { records }) => changeUser(admin, target, { admin: true, records }),
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
      text: 'Auditors see the lists of this area, and search, export and verify the audit trail. They change nothing. This role replaces that of an administrator.',
      button: 'Make auditor',
      isDangerous: false,
    },
    link: {
      text: 'Make auditor',
      isOffered: user => user.kind === 'clinician' && !user.auditor && !user.isSelf,
    },
    perform: (admin, target, { records }) => changeUser(admin, target, { auditor: true, records }),
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
} as const satisfies RowOperations<ShownUser, UserTarget, ChangedUser, UserInput>
