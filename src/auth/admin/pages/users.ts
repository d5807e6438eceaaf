import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { findOwn, isFailure } from '../../../core/index.ts'
import {
  type Field,
  formatDate,
  formatName,
  type Html,
  html,
  type Person,
  readPerson,
  renderAlert,
  renderBadge,
  renderChoice,
  renderDateTime,
  renderField,
  renderHidden,
} from '../../../web/index.ts'
import { LIMITS } from '../../base/limits.ts'
import { paths } from '../../base/paths.ts'
import type { Parameters } from '../../base/request.ts'
import { countWrongCodes } from '../../users/factors/wrong-codes.ts'
import { findGuesses, type Guesses } from '../../users/guesses.ts'
import { findOwnRecords } from '../../users/own-records.ts'
import { findSignIns, type SignIn } from '../../users/sign-ins.ts'
import { AdminFailure } from '../action.ts'
import { listNewUserFaults, listUserFaults, UserFault } from '../check-user.ts'
import { exportUsers } from '../export-users.ts'
import { type FhirUserRead, findUnknown, listFhirUsers, listUnknown, readFhirUsers } from '../fhir-users.ts'
import { describeSharing } from '../shared-fhir-users.ts'
import { type ListFilter, listStateWords, USER_LISTS } from '../user-lists.ts'
import {
  addUser,
  type ChangedUser,
  changeUser,
  createPassword,
  Link,
  refuseOwnAccount,
  SignInId,
  USER_OPERATIONS,
  type UserOperation,
} from '../user-operations.ts'
import { findUser, listUsers, UNUSED_DAYS, type UserDescription, type UserKind } from '../users.ts'
import {
  askWhoIsBound,
  type Entries,
  readSearch,
  renderPatientChoice,
  renderPatientSearch,
  renderUnknown,
} from './bind-user.ts'
import { findPatientNames } from './find-patients.ts'
import { describeEnding, REVOKED, renderGrants } from './grants.ts'
import { readListing, renderList, type States } from './list.ts'
import type { AdminRequest, AdminRoute } from './route.ts'
import {
  defineAction,
  readDone,
  renderActionLinks,
  renderActionTable,
  renderAdminPage,
  renderAuditLinks,
  renderDangerLink,
  renderFacts,
  renderLink,
  renderSecret,
} from './shell.ts'

const SECTION = 'clinicians'

/** `/admin/clinicians`: clinicians, and the accounts of patients and related persons. */
export const userRoutes: readonly AdminRoute[] = [
  {
    method: 'GET',
    path: '/clinicians',
    handle: request =>
      renderList(request, {
        section: SECTION,
        title: 'Users',
        lead: 'Clinicians, patients and related persons who can sign in.',
        actions: html`${request.mayChange && renderLink('/clinicians/new', 'Add a user', 'btn')}${renderLink(buildExportPath(request), 'Export CSV', 'btn btn--quiet')}`,
        done: readDone(request, DONE),
        search: 'Find a user by name or username',
        states: STATES,
        notFound: { title: 'No user found', text: 'No name or username contains this text.' },
        caption: 'Users, by username',
        columns: ['User', 'Kind', 'FHIR user', 'State', 'Second factors', 'Last sign-in', 'Created'],
        async find(filter) {
          const { items, next } = await listUsers(request.admin, filter)
          return { rows: items.map(renderRow), next }
        },
      }),
  },
  {
    method: 'GET',
    path: '/clinicians/new',
    operation: USER_OPERATIONS.add,
    handle: async request => renderNewUser(request),
  },
  {
    method: 'POST',
    path: '/clinicians/new',
    operation: USER_OPERATIONS.add,
    async handle(request) {
      const { admin, form, reply } = request
      const entries = readEntries(form)
      const wanted = readUser(entries)
      const refuse = (faults: readonly UserFault[]) =>
        reply.sendPage(renderNewUser(request, entries, faults), { status: 400 })
      const step = { section: SECTION, entries, action: '/clinicians/new' } as const
      if (readSearch(form) !== undefined) return renderPatientChoice(request, step)
      if (form.get('edit') !== undefined) return renderNewUser(request, entries)
      const faults = await listNewUserFaults(admin, wanted)
      // A patient may be chosen first: a field that is still empty is no fault then.
      const isChosen = form.get('choose') !== undefined
      if (faults.length > 0)
        return refuse(faults.filter(({ property }) => !isChosen || findOwn(entries, property) !== ''))
      const question = await askWhoIsBound(request, { ...step, user: wanted, added: listFhirUsers(wanted) })
      if (question) return question
      const password = entries.password === '1' ? createPassword() : undefined
      const user = await addUser(admin, { ...wanted, password, withLink: entries.password === 'link' })
      if (isFailure(user)) return user instanceof UserFault ? refuse([user]) : user
      const unknown = await findUnknown(request.context, listFhirUsers(user))
      const warnings = await renderWarnings(request, user, unknown)
      return showChanged(request, { ...user, ...(password !== undefined && { password }) }, 'added', warnings)
    },
  },
  { method: 'GET', path: '/users.csv', handle: sendExport },
  {
    method: 'GET',
    path: '/clinicians/:id',
    async handle(request) {
      const user = await requireUser(request)
      return isFailure(user) ? user : renderUserPage(request, user)
    },
  },
  {
    method: 'POST',
    path: '/clinicians/:id',
    operation: USER_OPERATIONS.set,
    async handle(request) {
      const user = await requireUser(request)
      if (isFailure(user)) return user
      const entries = readEntries(request.form)
      const { kind, displayName, fhirUser, relatedPersons } = readUser(entries)
      const changes = { displayName, fhirUser, ...(kind === 'account' && { relatedPersons }) }
      const wanted = { ...user, ...changes }
      const step = {
        section: SECTION,
        entries,
        action: buildUserPath(user),
        back: buildUserPath(user),
      } as const
      if (readSearch(request.form) !== undefined) return renderPatientChoice(request, step)
      const faults = listUserFaults(wanted)
      if (faults.length > 0)
        return request.reply.sendPage(await renderUserPage(request, user, { entries, faults }), {
          status: 400,
        })
      const former = new Set(listFhirUsers(user))
      const added = listFhirUsers(wanted).filter(reference => !former.has(reference))
      const question = await askWhoIsBound(request, { ...step, user: wanted, added })
      return question ?? showChanged(request, await changeUser(request.admin, user, changes), 'saved')
    },
  },
  ...Object.entries<UserOperation>(USER_OPERATIONS).flatMap(([verb, operation]) =>
    defineUserAction(verb, operation),
  ),
]

/** Downloads the users of a list, and records the export. */
async function sendExport(request: AdminRequest): Promise<FastifyReply> {
  const { admin, form, reply } = request
  const { state, text } = readListing(form, STATES)
  const parts = await exportUsers(admin, { ...state.filter, text })
  return reply
    .type('text/csv; charset=utf-8')
    .header('content-disposition', 'attachment; filename="users.csv"')
    .send(Readable.from(parts))
}

/** An operation on the user in the path, with a page that asks for confirmation. */
function defineUserAction(
  verb: string,
  { signIn, api, path = verb, page, perform }: UserOperation,
): readonly AdminRoute[] {
  if (!page || !perform) return []
  const isAboutLink = api?.input === Link
  const isAboutSignIn = api?.input === SignInId
  const isAboutPassword = verb === 'set-password'
  return defineAction({
    path: `/clinicians/:id/${path}`,
    operation: { signIn },
    async ask(request) {
      const user = await requireUser(request)
      if (isFailure(user)) return user
      const own = refuseOwnAccount(request.admin, user.id, verb)
      if (own) return own
      const signIn = isAboutSignIn ? await requireSignIn(request, user) : undefined
      if (isFailure(signIn)) return signIn
      return {
        ...page,
        section: SECTION,
        back: buildUserPath(user),
        title: page.title(user.displayName),
        facts: [
          ['Username', html`<code>${user.username}</code>`],
          ['FHIR user', html`<code>${user.fhirUser}</code>`],
          ...(signIn ? describeSignIn(signIn) : []),
          ...(page.endsAccess
            ? [
                ['Sign-ins that end', String(user.signIns)] as const,
                await describeEnding(request, { userIds: [user.id] }),
              ]
            : []),
        ],
        fields: signIn
          ? html`${renderHidden({ signIn: signIn.id })}`
          : isAboutLink
            ? renderLinkFields(request)
            : isAboutPassword
              ? renderPasswordChoice('link', ['link', '1'])
              : undefined,
      }
    },
    async perform(request) {
      const user = await requireUser(request)
      if (isFailure(user)) return user
      const input = {
        ...(isAboutLink && readLink(request.form)),
        ...(isAboutSignIn && { sign_in: request.form.get('signIn') ?? '' }),
        ...(isAboutPassword && { activation_link: request.form.get('password') === 'link' }),
      }
      const changed = await perform(request.admin, user, input)
      return verb === 'remove' && !isFailure(changed)
        ? '/clinicians?done=removed'
        : showChanged(request, changed, 'saved')
    },
  })
}

async function requireUser({ admin, params }: AdminRequest): Promise<UserDescription | AdminFailure> {
  return (
    (await findUser(admin, { id: params.id ?? '' })) ?? new AdminFailure('not_found', 'there is no such user')
  )
}

async function requireSignIn(
  { admin, form }: AdminRequest,
  { id }: UserDescription,
): Promise<SignIn | AdminFailure> {
  const signIns = await findSignIns(admin, id)
  const found = signIns.find(one => one.id === form.get('signIn'))
  return found ?? new AdminFailure('not_found', 'the sign-in has ended')
}

function describeSignIn({ browser, address, createdAt, lastUsedAt }: SignIn) {
  return [
    ['Browser', browser ?? 'Unknown'],
    ['Address', address ?? 'Unknown'],
    ['Signed in', renderDateTime(createdAt)],
    ['Last used', renderDateTime(lastUsedAt)],
  ] as const
}

function buildUserPath({ id }: Pick<UserDescription, 'id'>): string {
  return `/clinicians/${encodeURIComponent(id)}`
}

/** Shows a new password or link; otherwise the page of the user. */
function showChanged(
  request: AdminRequest,
  user: ChangedUser | AdminFailure,
  done: string,
  warning?: Html,
): Html | string | AdminFailure {
  if (isFailure(user)) return user
  const { activationLink: link } = user
  if (link)
    return renderSecret(request, {
      section: SECTION,
      title: `Activation link of ${user.displayName}`,
      label: `Activation link of ${user.username}`,
      value: link.url,
      note: html`Give it only to the user: whoever opens it first chooses the password. It works once, until ${renderDateTime(link.expiresAt)}.`,
      warning,
      back: buildUserPath(user),
    })
  if (user.password === undefined) return `${buildUserPath(user)}?done=${done}`
  return renderSecret(request, {
    section: SECTION,
    title: `Password of ${user.displayName}`,
    label: `New password of ${user.username}`,
    value: user.password,
    note: 'The user replaces it at the first sign-in.',
    warning,
    back: buildUserPath(user),
  })
}

function readLink(form: Parameters) {
  return { issuer: form.get('issuer')?.trim() ?? '', subject: form.get('subject')?.trim() ?? '' }
}

/** The issuers of the settings are offered; others can be typed. */
function renderLinkFields({ form, context }: AdminRequest): Html {
  const { issuer, subject } = readLink(form)
  const [only, ...others] = context.providers.all.map(provider =>
    provider.kind === 'oidc' ? provider.issuer : `ldap:${provider.id}`,
  )
  return html`${renderField({ name: 'issuer', label: 'Issuer', value: issuer || (others.length === 0 ? (only ?? '') : ''), required: true })}
${renderField({ name: 'subject', label: 'Subject (sub, or the id of a directory entry)', value: subject, required: true })}`
}

const KINDS: Readonly<Record<UserKind, string>> = {
  clinician: 'Clinician',
  account: 'Patient or related person',
}

/** What the form has: a chosen patient replaces the FHIR user. */
function readEntries(form: Parameters): Entries {
  const read = (name: string) => form.get(name)?.trim() ?? ''
  const chosen = read('choose')
  return {
    kind: chosen === '' ? read('kind') : 'account',
    username: read('username'),
    displayName: read('displayName'),
    fhirUser: chosen || read('fhirUser'),
    relatedPersons: read('relatedPersons'),
    password: read('password'),
  }
}

function readUser({ fhirUser, ...entries }: Entries) {
  const kind: UserKind = entries.kind === 'account' ? 'account' : 'clinician'
  const related = entries.relatedPersons.split(/\s+/)
  const own = fhirUser.startsWith('RelatedPerson/') ? [fhirUser] : []
  return {
    kind,
    username: entries.username,
    displayName: entries.displayName,
    fhirUser: fhirUser.includes('/') || kind === 'account' ? fhirUser : `Practitioner/${fhirUser}`,
    relatedPersons: [
      ...new Set([...own, ...related].map(text => text.replace(/^RelatedPerson\//, ''))),
    ].filter(id => id !== ''),
  }
}

const NO_ENTRIES: Entries = {
  kind: 'clinician',
  username: '',
  displayName: '',
  fhirUser: '',
  relatedPersons: '',
  password: 'link',
}

function renderNewUser(request: AdminRequest, entries = NO_ENTRIES, faults: readonly UserFault[] = []): Html {
  const { kind, password } = entries
  const renderOwn = defineFields(entries, faults)
  return renderAdminPage(
    request,
    { section: SECTION, title: 'Add a user' },
    html`${renderFaultAlert('The user was not added.', faults)}
<form class="card card__body stack after" method="post" action="${paths.admin}/clinicians/new">
<div class="field"><label class="field__label" for="kind">Kind</label><select class="input select" id="kind" name="kind">${Object.entries(
      KINDS,
    ).map(
      ([name, text]) => html`<option value="${name}"${name === kind && html` selected`}>${text}</option>`,
    )}</select></div>
${renderOwn({ name: 'username', label: 'Username', required: true })}
${renderOwn({ name: 'displayName', label: 'Name', required: true })}
${renderOwn({ name: 'fhirUser', label: 'FHIR user', hint: 'Practitioner/<id>, Patient/<id> or RelatedPerson/<id>', required: true })}
${renderPatientSearch('Find a patient (name, MRN or birth date)')}
${renderOwn(RELATED_PERSONS)}
${request.context.providers.passwords && renderPasswordChoice(password, ['link', '1', ''])}
<div class="actions"><button class="btn">Add user</button>${renderLink('/clinicians', 'Cancel', 'btn btn--quiet')}</div>
</form>`,
  )
}

/** How a user gets a password, by the value of the form. */
const PASSWORDS = {
  link: [
    'Activation link',
    'You give the user a link, and the user chooses a password that nobody else knows.',
  ],
  '1': ['Temporary password', 'It is shown once. The user replaces it at the next sign-in.'],
  '': ['No password', 'For a user who signs in only with an identity provider.'],
} as const

function renderPasswordChoice(chosen: string, offered: readonly (keyof typeof PASSWORDS)[]): Html {
  return html`<fieldset><legend class="legend">Password</legend><div class="choices">${offered.map(value => {
    const [text, meta] = PASSWORDS[value]
    return renderChoice({ type: 'radio', name: 'password', value, text, meta, isChecked: value === chosen })
  })}</div></fieldset>`
}

const RELATED_PERSONS = {
  name: 'relatedPersons',
  label: 'Related persons',
  rows: 2,
  hint: 'For a person who acts for patients: RelatedPerson/<id>, one per line. Each names one patient.',
} as const

/** The fields of a user with their entries and faults. The first fault has the focus. */
function defineFields(entries: Partial<Entries>, faults: readonly UserFault[]) {
  return (field: Field & { readonly name: keyof Entries }): Html => {
    const fault = faults.find(({ property }) => property === field.name)
    return renderField({
      ...field,
      value: entries[field.name],
      error: fault?.sentence,
      autofocus: fault !== undefined && fault === faults[0],
    })
  }
}

function renderFaultAlert(title: string, { length }: readonly UserFault[]): Html | false {
  return length > 0 && renderAlert(title, `Correct the marked ${length === 1 ? 'field' : 'fields'}.`, 'bad')
}

function renderRow(user: UserDescription) {
  return [
    html`${renderLink(buildUserPath(user), user.displayName)}<span class="sub"><code>${user.username}</code></span>`,
    KINDS[user.kind],
    html`<code>${user.fhirUser}</code>`,
    renderState(user),
    user.secondFactors === 0 ? 'None' : user.secondFactors,
    html`${renderLastSignIn(user)}${user.signIns > 0 && html`<span class="sub">${user.signIns === 1 ? '1 sign-in' : `${user.signIns} sign-ins`} now</span>`}`,
    renderCreated(user),
  ]
}

/** Accounts that are older than the record of sign-ins may have been used before. */
function renderLastSignIn({ signedInAt, createdAt }: UserDescription): Html | string {
  if (signedInAt !== undefined) return renderDateTime(signedInAt)
  return createdAt === undefined ? 'Not known' : 'Never'
}

function renderCreated({ createdAt }: UserDescription): Html | string {
  return createdAt === undefined ? 'Not known' : renderDateTime(createdAt)
}

function renderState(user: UserDescription): Html {
  return html`${listStateWords(user).map(({ text, tone }, at) => html`${at > 0 && ' '}${renderBadge(text, tone)}`)}${user.isForLoopback && html`<span class="sub">Ends at a public URL. A new password there keeps it.</span>`}`
}

const DONE: Readonly<Record<string, string>> = {
  added: 'The user is added.',
  saved: 'The change is saved.',
  removed: 'The user is removed.',
  revoked: REVOKED,
}

function buildExportPath({ form }: AdminRequest): string {
  const kept = (['state', 'search'] as const).map(name => [name, form.get(name) ?? ''])
  return `/users.csv?${new URLSearchParams(kept.filter(([, value]) => value !== ''))}`
}

/** The lists of users, by `state` of the URL. */
const STATES: States<ListFilter> = {
  all: {
    text: 'All',
    filter: USER_LISTS.all,
    none: {
      title: 'No users yet',
      text: 'Users appear here when an administrator adds them, or at their first sign-in with an identity provider.',
    },
  },
  administrators: {
    text: 'Administrators',
    filter: USER_LISTS.administrators,
    none: {
      title: 'No administrators',
      text: 'Clinicians appear here when you or an identity provider make them administrators.',
    },
  },
  auditors: {
    text: 'Auditors',
    filter: USER_LISTS.auditors,
    none: {
      title: 'No auditors',
      text: 'Clinicians appear here when an administrator makes them auditors: they see this area, and change nothing.',
    },
  },
  'without-second-factor': {
    text: 'Without second factor',
    filter: USER_LISTS['without-second-factor'],
    none: {
      title: 'Every user has a second factor',
      text: 'Users without a passkey or an authenticator app on this server appear here, even if their identity provider asks for a second factor.',
    },
  },
  locked: {
    text: 'Locked',
    filter: USER_LISTS.locked,
    none: {
      title: 'No locked users',
      text: `Users appear here after ${LIMITS.wrongPasswords} wrong passwords in a row, from all addresses together.`,
    },
  },
  unused: {
    text: `Unused for ${UNUSED_DAYS} days`,
    filter: USER_LISTS.unused,
    none: {
      title: 'Every account is in use',
      text: `Accounts that nobody has signed in to for ${UNUSED_DAYS} days appear here. Disable those that nobody needs.`,
    },
  },
  never: {
    text: 'Never signed in',
    filter: USER_LISTS.never,
    none: {
      title: 'Every user has signed in',
      text: 'Accounts that nobody has signed in to appear here until the first sign-in.',
    },
  },
  disabled: {
    text: 'Disabled',
    filter: USER_LISTS.disabled,
    none: {
      title: 'No disabled users',
      text: 'A user whom an administrator disables appears here, and can be enabled again.',
    },
  },
} satisfies Readonly<Record<keyof typeof USER_LISTS, unknown>>

/** `refused`: changes that cannot be saved. */
async function renderUserPage(
  request: AdminRequest,
  user: UserDescription,
  refused?: { readonly entries: Entries; readonly faults: readonly UserFault[] },
): Promise<Html> {
  const { entries, faults } = refused ?? {
    entries: { ...user, relatedPersons: user.relatedPersons.map(id => `RelatedPerson/${id}`).join('\n') },
    faults: [],
  }
  const renderOwn = defineFields(entries, faults)
  const grants = await renderGrants(request, { userIds: [user.id] }, buildUserPath(user))
  const isSelf = user.id === request.login.user.id
  const hasPasswords = request.context.providers.passwords
  const reads = await readFhirUsers(request.context, listFhirUsers(user))
  const warnings = await renderWarnings(request, user, listUnknown(reads))
  const signIns = await findSignIns(request.admin, user.id)
  const { store, clock } = request.admin
  const wrongCodes = await countWrongCodes(store.db, user.id, clock())
  const guesses = await findGuesses(store.db, user.id)
  const records = user.kind === 'account' ? await renderRecords(request, user) : undefined
  const form = html`<h2 class="section__title subhead">${user.kind === 'account' ? 'Name, FHIR user and related persons' : 'Name and FHIR user'}</h2>
<form class="card card__body stack" method="post" action="${paths.admin}${buildUserPath(user)}">
<input type="hidden" name="kind" value="${user.kind}">
${renderOwn({ name: 'displayName', label: 'Name', required: true })}
${renderOwn({ name: 'fhirUser', label: 'FHIR user', required: true, hint: user.kind === 'clinician' ? describeClinician(reads) : undefined })}
${user.kind === 'account' && renderPatientSearch('Find another patient (name, MRN or birth date)')}
${user.kind === 'account' && renderOwn(RELATED_PERSONS)}
${records}
<div class="actions"><button class="btn btn--quiet">Save</button></div></form>`
  return renderAdminPage(
    request,
    {
      section: SECTION,
      title: user.displayName,
      actions: renderActionLinks(
        request,
        buildUserPath(user),
        { ...user, isSelf, hasPasswords },
        USER_OPERATIONS,
      ),
      done: readDone(request, DONE),
    },
    html`${renderFaultAlert('Not saved.', faults)}${warnings}
${renderFacts([
  ['State', renderState(user)],
  ['Username', html`<code>${user.username}</code>`],
  ['Kind', KINDS[user.kind]],
  ...(request.mayChange ? [] : [['FHIR user', html`<code>${user.fhirUser}</code>`] as const]),
  ['Password', describePassword(user)],
  ['Second factors', user.secondFactors],
  ['Created', renderCreated(user)],
  ['Last sign-in', renderLastSignIn(user)],
  ...(guesses ? [['Wrong passwords', renderGuesses(user, guesses)] as const] : []),
  ...(wrongCodes === 0 ? [] : [['Wrong codes in the last 24 hours', renderWrongCodes(wrongCodes)] as const]),
  [
    'Audit',
    renderAuditLinks(
      ['Records of this user', { user: user.username }],
      ['Changes to this account', { target: `account/${user.id}` }],
    ),
  ],
])}
${request.mayChange ? form : records}
<h2 class="section__title subhead" id="sign-ins">Sign-ins now</h2>
${signIns.length === 0 ? html`<p>The user is not signed in now. A sign-in appears here until it ends.</p>` : renderSignIns(request, user, signIns)}
<h2 class="section__title subhead">Provider accounts</h2>
${renderLinks(request, user)}
<h2 class="section__title subhead">Apps with access</h2>
${grants}`,
  )
}

function describePassword({ hasPassword, activationEndsAt }: UserDescription): Html | string {
  if (hasPassword) return 'Yes'
  return activationEndsAt === undefined
    ? 'None. The user signs in with an identity provider, or needs an activation link: reset the password.'
    : html`Not chosen yet. The activation link works until ${renderDateTime(activationEndsAt)}.`
}

/** The audit trail has each of them. */
function renderGuesses({ lockedAt, username }: UserDescription, guesses: Guesses): Html {
  const { count, since, last, addresses } = guesses
  const records = `/audit?${new URLSearchParams({ user: username, kind: 'login', result: 'refused' })}`
  return html`${count} since the last sign-in ${lockedAt !== undefined && renderBadge('Locked', 'bad')}
<span class="sub">From ${renderDateTime(since)} to ${renderDateTime(last)}, mostly from ${addresses.join(', ')}. ${renderLink(records, 'Refused sign-ins')}</span>
${lockedAt !== undefined && html`<span class="sub">Locked since ${renderDateTime(lockedAt)}: a password is accepted only in browsers and networks where the user has signed in before. A passkey still works. A new password or <b>Unlock</b> ends this.</span>`}`
}

/** Only somebody who knows the password can cause them. */
function renderWrongCodes(count: number): Html {
  const isFull = count >= LIMITS.wrongCodesPerDay
  return html`${count} ${isFull && renderBadge('Codes refused', 'bad')}<span class="sub">${isFull && 'The server accepts no code from an authenticator app until there are fewer. '}Someone who knows the password may be guessing codes. A new password restarts the count.</span>`
}

/** The name of the Practitioner, by which a wrong id is noticed. */
function describeClinician([read]: readonly FhirUserRead[]): Html | undefined {
  return read?.result.kind === 'found'
    ? html`On the FHIR server: <bdi>${formatName(readPerson(read.result.resource).name)}</bdi>`
    : undefined
}

/** About the FHIR users of an account. */
async function renderWarnings(
  { context }: AdminRequest,
  user: UserDescription,
  unknown: readonly string[] = [],
): Promise<Html> {
  const sharing = await describeSharing(context, user)
  return html`${unknown.length > 0 && renderUnknown(user, unknown)}
${sharing.length > 0 && renderAlert('Several accounts have the same FHIR user.', sharing.join(' '), 'warn')}`
}

/** The patients that the RelatedPersons name now. */
async function renderRecords(request: AdminRequest, user: UserDescription): Promise<Html> {
  const records = await findOwnRecords(request.context, { id: user.id, fhirUserId: user.fhirUser })
  if (isFailure(records))
    return html`<p class="small muted">The FHIR server does not say for whom: ${records.reason}.</p>`
  if (records.length === 0) return html`<p class="small muted">Opens the records of: nobody.</p>`
  const ids = records.map(({ patientId }) => patientId)
  const names = await findPatientNames(request, ids)
  return html`<p class="small muted">Opens the records of:</p>
<ul class="list small">${ids.map(id => renderRecord(id, names.get(id)))}</ul>`
}

/** With name and birth date, if the administrator may read them: an id alone does not show that it is the wrong patient. */
function renderRecord(id: string, person: Person | undefined): Html {
  const born = person?.born === undefined ? '' : `, born ${formatDate(person.born)}`
  return html`<li>${person && html`<bdi>${formatName(person.name)}</bdi>${born} `}<code>Patient/${id}</code></li>`
}

function renderSignIns(request: AdminRequest, user: UserDescription, signIns: readonly SignIn[]): Html {
  return renderActionTable(
    request,
    'Sign-ins, the last used first',
    ['Browser', 'Address', 'Signed in', 'Last used', 'Ends at the latest'],
    signIns.map(({ id, browser, address, createdAt, lastUsedAt, endsAt }) => [
      browser ?? 'Unknown',
      address ?? 'Unknown',
      renderDateTime(createdAt),
      renderDateTime(lastUsedAt),
      renderDateTime(endsAt),
      id === request.login.idHash
        ? renderBadge('This browser', 'accent')
        : renderDangerLink(
            `${buildUserPath(user)}/end-sign-in?${new URLSearchParams({ signIn: id })}`,
            html`End<span class="sr"> the sign-in in ${browser ?? 'an unknown browser'}</span>`,
          ),
    ]),
  )
}

function renderLinks(request: AdminRequest, user: UserDescription): Html {
  const link =
    request.mayChange &&
    renderLink(`${buildUserPath(user)}/link`, 'Link an account', 'btn btn--quiet btn--small')
  if (user.links.length === 0)
    return html`<p>No account of an identity provider is linked to this user. ${link}</p>`
  const rows = user.links.map(({ issuer, subject, provisioned, createdAt }) => [
    html`<code class="url">${issuer}</code>`,
    html`<code class="url">${subject}</code>`,
    provisioned ? 'Created at the first sign-in' : 'Linked',
    renderDateTime(createdAt),
    renderDangerLink(
      `${buildUserPath(user)}/unlink?${new URLSearchParams({ issuer, subject })}`,
      'Remove link',
    ),
  ])
  const columns = ['Issuer', 'Subject', 'Kind', 'Since']
  return html`${renderActionTable(request, 'Provider accounts', columns, rows)}${link && html`<p class="actions after">${link}</p>`}`
}
