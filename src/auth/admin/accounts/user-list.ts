import { Type } from 'typebox'
import { formatTime, Members, Time } from '../../../endpoint/index.ts'
import { type Html, html, renderBadge, renderDateTime } from '../../../web/ui/index.ts'
import { LIMITS } from '../../base/limits.ts'
import { describeMadeForLoopback } from '../../users/validity/made-for-loopback.ts'
import type { AdminOperation } from '../base/action.ts'
import { type Attention, noteRows } from '../subject/attention.ts'
import { formatMinute, type SubjectColumn, type SubjectColumns } from '../subject/columns.ts'
import { defineList, type List, type States } from '../subject/list.ts'
import { renderLink } from '../subject/page/shell.ts'
import { listOthers, TEXTS, type UserKind } from './user-fields.ts'
import { MANY_WRONG_CODES, UNUSED_DAYS, USER_FILTERS } from './user-filters.ts'
import { countUsers, listUsers, type UserDescription } from './users.ts'

export const SECTION = 'clinicians'

export const KINDS: Readonly<Record<UserKind, string>> = {
  clinician: 'Clinician',
  account: 'Patient or related person',
}

/** What a user is. An account that opens no records has the kind of clinicians, but is none. */
function nameKind({ kind, records, admin, auditor, adminProviders }: UserDescription): string {
  if (records) return KINDS[kind]
  if (admin || adminProviders.length > 0) return 'Administrator'
  return auditor ? 'Auditor' : 'Without records'
}

export function buildUserPath({ id }: Pick<UserDescription, 'id'>): string {
  return `/clinicians/${encodeURIComponent(id)}`
}

/** A word about an account, and whether it is good or bad news. */
interface StateWord {
  readonly text: string
  readonly tone?: 'ok' | 'bad' | 'accent'
}

/** The state of an account in words, on pages and by commands. */
function listStateWords(user: UserDescription): readonly StateWord[] {
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

function describeState(user: UserDescription): string {
  return listStateWords(user)
    .map(({ text }) => text.toLowerCase())
    .join(', ')
}

function renderState(user: UserDescription): Html {
  return html`${listStateWords(user).map(({ text, tone }, at) => html`${at > 0 && ' '}${renderBadge(text, tone)}`)}${user.isForLoopback && html`<span class="sub">On a server with a public URL, the account works only after it gets a new password there.</span>`}`
}

/** Accounts that are older than the record of sign-ins may have been used before. */
function renderLastSignIn({ signedInAt, createdAt }: UserDescription): Html | string {
  if (signedInAt !== undefined) return renderDateTime(signedInAt)
  return createdAt === undefined ? 'Not known' : 'Never'
}

function renderCreated({ createdAt }: UserDescription): Html | string {
  return createdAt === undefined ? 'Not known' : renderDateTime(createdAt)
}

export function renderFhirUser({ fhirUser, records }: UserDescription): Html | string {
  return records ? html`<code>${fhirUser}</code>` : 'None: opens no patient records'
}

function describePassword({ hasPassword, activationEndsAt }: UserDescription): Html | string {
  if (hasPassword) return 'Yes'
  return activationEndsAt === undefined
    ? 'None. The user signs in with an identity provider, or needs an activation link: reset the password.'
    : html`Not chosen yet. The activation link works until ${renderDateTime(activationEndsAt)}.`
}

function renderName(user: UserDescription): Html {
  return html`${renderLink(buildUserPath(user), user.displayName)}<span class="sub"><code>${user.username}</code></span>`
}

function renderSignIns(user: UserDescription): Html {
  const { signIns } = user
  return html`${renderLastSignIn(user)}${signIns > 0 && html`<span class="sub">${signIns === 1 ? '1 sign-in' : `${signIns} sign-ins`} now</span>`}`
}

function describeLastSignIn({ signedInAt, createdAt }: UserDescription): string {
  if (signedInAt !== undefined) return formatMinute(signedInAt)
  return createdAt === undefined ? 'not known' : 'never'
}

const Link = Members({
  issuer: Type.String(),
  subject: Type.String(),
  provisioned: Type.Boolean(),
  created_at: Time,
})

/** The members of users, in the order of the CSV file. */
export const USER_COLUMNS: SubjectColumns<UserDescription> = {
  username: {
    of: 'username',
    schema: Type.String(),
    page: ['User', renderName],
    detail: ['Username', user => html`<code>${user.username}</code>`],
    table: 'USERNAME',
  },
  display_name: { of: 'displayName', schema: Type.String(), table: 'DISPLAY NAME' },
  kind: { csv: user => user.kind, page: ['Kind', nameKind], detail: 'Kind' },
  fhir_user: {
    of: user => (user.records ? user.fhirUser : undefined),
    schema: Type.Optional(Type.String()),
    about: 'For example `Practitioner/1`. Absent for an account that opens no records.',
    page: ['FHIR user', user => (user.records ? html`<code>${user.fhirUser}</code>` : 'None')],
    // An administrator has a field for it on the page.
    detail: ['FHIR user', (user, { mayChange }) => (mayChange ? undefined : renderFhirUser(user))],
    table: ['FHIR USER', user => user.fhirUser],
  },
  records: {
    of: 'records',
    schema: Type.Boolean(),
    about: 'False for an account for administration only: it opens no patient records.',
  },
  related_persons: { of: 'relatedPersons', schema: Type.Array(Type.String()) },
  admin: { of: 'admin', schema: Type.Boolean(), about: 'An administrator, however the user signs in.' },
  auditor: {
    of: 'auditor',
    schema: Type.Boolean(),
    about: 'Sees the administration area, and changes nothing. Never an administrator.',
  },
  admin_providers: {
    of: 'adminProviders',
    schema: Type.Array(Type.String()),
    about: 'The providers that name the user an administrator, in current sign-ins.',
  },
  state: { page: ['State', renderState], detail: 'State', table: ['STATE', describeState] },
  factors: {
    page: ['Second factors', user => user.secondFactors || 'None'],
    detail: 'Second factors',
    table: ['SECOND FACTORS', user => String(user.secondFactors || 'none')],
  },
  signed_in: {
    page: ['Last sign-in', renderSignIns],
    detail: ['Last sign-in', renderLastSignIn],
    table: ['LAST SIGN-IN', describeLastSignIn],
  },
  disabled: { of: 'disabled', schema: Type.Boolean() },
  locked_at: {
    of: 'lockedAt',
    schema: Type.Optional(Time),
    about:
      'Since then a password is accepted only from browsers and networks where the user has signed in before, because too many wrong ones were tried.',
  },
  created_at: {
    of: 'createdAt',
    schema: Type.Optional(Time),
    about: 'Absent if the account is older than this record.',
    page: ['Created', renderCreated],
    detail: 'Created',
  },
  last_sign_in_at: { of: 'signedInAt', schema: Type.Optional(Time), about: 'Absent if no sign-in is known.' },
  has_password: {
    of: 'hasPassword',
    schema: Type.Boolean(),
    detail: ['Password', describePassword],
  },
  activation_ends_at: {
    of: 'activationEndsAt',
    schema: Type.Optional(Time),
    about: 'When the activation link of the user expires. Absent if there is none.',
    csv: false,
  },
  second_factors: { of: 'secondFactors', schema: Type.Integer(), about: 'Authenticator apps and passkeys.' },
  sign_ins: { of: 'signIns', schema: Type.Integer(), about: 'Browsers in which the user is signed in.' },
  links: {
    of: user => user.links.map(({ createdAt, ...link }) => ({ ...link, created_at: formatTime(createdAt) })),
    schema: Type.Array(Link),
    about: 'Users of identity providers who sign in as this user.',
    csv: user => user.links.map(({ issuer, subject }) => `${issuer} ${subject}`).join('; '),
  },
  ...Object.fromEntries(TEXTS.flatMap(field => (field.isRequired ? [] : [defineText(field)]))),
  id: { of: 'id', schema: Type.String(), table: 'ID' },
}

/** A text that not every account has. */
function defineText({ member, property, label, about }: (typeof TEXTS)[number]) {
  const of = (user: UserDescription) => user[property] || undefined
  const schema = Type.Optional(Type.String())
  const column: SubjectColumn<UserDescription> = { of, schema, about, detail: [label, of] }
  return [member, column] as const
}

/** The columns of users of one kind, without the members that only the other kind has. */
export function listColumns(kind: UserKind): SubjectColumns<UserDescription> {
  const others = [...listOthers(kind), ...(kind === 'account' ? ['admin_providers'] : [])]
  return Object.fromEntries(Object.entries(USER_COLUMNS).filter(([name]) => !others.includes(name)))
}

const STATES: States<typeof USER_FILTERS> = {
  all: {
    text: 'All',
    filter: {},
    none: {
      title: 'No users yet',
      text: 'Users appear here when an administrator adds them, or at their first sign-in with an identity provider.',
    },
  },
  administrators: {
    text: 'Administrators',
    filter: { admin: true },
    none: {
      title: 'No administrators',
      text: 'Clinicians appear here when you or an identity provider make them administrators.',
    },
  },
  auditors: {
    text: 'Auditors',
    filter: { auditor: true },
    none: {
      title: 'No auditors',
      text: 'Clinicians appear here when an administrator makes them auditors: they see this area, and change nothing.',
    },
  },
  'without-second-factor': {
    text: 'Without second factor',
    filter: { second_factor: false, disabled: false },
    none: {
      title: 'Every user has a second factor',
      text: 'Users without a passkey or an authenticator app on this server appear here, even if their identity provider asks for a second factor.',
    },
  },
  locked: {
    text: 'Locked',
    filter: { locked: true },
    none: {
      title: 'No locked users',
      text: `Users appear here after ${LIMITS.wrongPasswords} wrong passwords in a row, from all addresses together.`,
    },
  },
  unused: {
    text: `Unused for ${UNUSED_DAYS} days`,
    filter: { unused_days: UNUSED_DAYS, disabled: false },
    none: {
      title: 'Every account is in use',
      text: `Accounts that nobody has signed in to for ${UNUSED_DAYS} days appear here. Disable those that nobody needs.`,
    },
  },
  never: {
    text: 'Never signed in',
    filter: { signed_in: false, disabled: false },
    none: {
      title: 'Every user has signed in',
      text: 'Accounts that nobody has signed in to appear here until the first sign-in.',
    },
  },
  disabled: {
    text: 'Disabled',
    filter: { disabled: true },
    none: {
      title: 'No disabled users',
      text: 'A user whom an administrator disables appears here, and can be enabled again.',
    },
  },
}

/** After an action. */
export const DONE: Readonly<Record<string, string>> = {
  added: 'The user is added.',
  saved: 'The change is saved.',
  removed: 'The user is removed.',
}

const EXPORT: AdminOperation = { name: 'users export', signIn: 'never asks', isForAuditors: true }

const NOUNS = { clinician: 'clinician', account: 'account of a patient or of related persons' } as const

/** `/admin/clinicians`: users of both kinds. */
export const ALL_USERS = defineList({
  columns: USER_COLUMNS,
  filters: USER_FILTERS,
  states: STATES,
  read: listUsers,
  count: countUsers,
  page: {
    section: SECTION,
    title: 'Users',
    lead: 'Clinicians, patients and related persons who can sign in.',
    caption: 'Users, by username',
    done: DONE,
    search: 'Find a user by name or username',
    notFound: { title: 'No user found', text: 'No name or username contains this text.' },
    actions: ({ mayChange }) => (mayChange ? renderLink('/clinicians/new', 'Add a user', 'btn') : undefined),
  },
  csv: { path: '/users.csv', operation: EXPORT },
})

/** The users of one kind, for programs and commands. */
export const USER_LISTS = { clinician: defineUserList('clinician'), account: defineUserList('account') }

function defineUserList(kind: UserKind): List<UserDescription> {
  return defineList({
    columns: listColumns(kind),
    filters: USER_FILTERS,
    states: STATES,
    read: (admin, wanted) => listUsers(admin, { ...wanted, kind }),
    api: { path: `/${kind}s`, title: `Every ${NOUNS[kind]}, by username` },
    command: {
      name: `${kind} list`,
      nouns: `${kind}s`,
      more: 'Loopback only: a sample account, or one that a sample account created. It is disabled when the server gets a public URL, unless you set a new password for it.',
    },
  })
}

function noteUsers(
  matter: Omit<Parameters<typeof noteRows<UserDescription>>[0], 'list' | 'getName' | 'action'>,
) {
  return noteRows({ ...matter, list: ALL_USERS, getName: user => user.username, action: 'See users' })
}

export const USER_ATTENTION: readonly Attention[] = [
  noteUsers({
    code: 'administrators-one-factor',
    isOffLoopback: true,
    wanted: { state: 'without-second-factor', admin: true, has_password: true },
    describe: (count, names) =>
      `${count === 1 ? 'An administrator has' : `${count} administrators have`} no second factor: ${names}.`,
  }),
  noteUsers({
    code: 'auditors-open-records',
    isOffLoopback: true,
    wanted: { state: 'auditors', records: true, disabled: false },
    describe: (count, names) =>
      `${count === 1 ? 'An auditor can' : `${count} auditors can`} open patient records: ${names}.`,
  }),
  noteUsers({
    code: 'users-wrong-codes',
    wanted: { wrong_codes: true },
    describe: (_, names) =>
      `More than ${MANY_WRONG_CODES} wrong codes or passkeys in the last 24 hours: ${names}. Somebody may know the password.`,
  }),
  noteUsers({
    code: 'users-locked',
    wanted: { state: 'locked' },
    describe: (count, names) =>
      `${count === 1 ? 'An account is' : `${count} accounts are`} locked after too many wrong passwords: ${names}.`,
  }),
  noteUsers({
    code: 'users-unused',
    wanted: { state: 'unused' },
    describe: count =>
      `Nobody has signed in to ${count === 1 ? 'an account' : `${count} accounts`} for ${UNUSED_DAYS} days.`,
  }),
  {
    code: 'made-for-loopback',
    path: '/clinicians',
    action: 'See users',
    find: ({ admin }) => describeMadeForLoopback(admin.store, admin.rules),
  },
]
