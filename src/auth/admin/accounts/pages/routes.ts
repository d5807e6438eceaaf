import type { FastifyReply } from 'fastify'
import { findOwn, isFailure } from '../../../../core/index.ts'
import { CSV_TYPE, html } from '../../../../web/ui/index.ts'
import { LIMITS } from '../../../base/limits.ts'
import type { AdminFailure } from '../../base/action.ts'
import { readListing, renderList, type States } from '../../page/list.ts'
import type { AdminRequest, AdminRoute } from '../../page/route.ts'
import { readDone, renderLink } from '../../page/shell.ts'
import { createPassword } from '../change-sign-in.ts'
import { addUser, changeUser } from '../change-user.ts'
import { listNewUserFaults, listUserFaults, UserFault } from '../check-user.ts'
import { exportUsers } from '../export-users.ts'
import { findUnknown, listFhirUsers } from '../fhir-users.ts'
import { nameOperation } from '../perform-on-user.ts'
import { type ListFilter, USER_LISTS } from '../user-lists.ts'
import { USER_OPERATIONS, type UserOperation } from '../user-operations.ts'
import { listUsers, UNUSED_DAYS, type UserDescription } from '../users.ts'
import { askWhoIsBound, readSearch, renderPatientChoice } from './bind-user.ts'
import { defineUserAction, requireUser, showChanged } from './user-actions.ts'
import { KINDS, readEntries, readUser, renderNewUser, SECTION } from './user-form.ts'
import {
  buildUserPath,
  DONE,
  renderCreated,
  renderLastSignIn,
  renderState,
  renderUserPage,
  renderWarnings,
} from './user-page.ts'

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
    operation: nameOperation('clinician', 'add'),
    handle: async request => renderNewUser(request),
  },
  {
    method: 'POST',
    path: '/clinicians/new',
    operation: nameOperation('clinician', 'add'),
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
      const unknown = await findUnknown(request.context, admin, listFhirUsers(user))
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
    operation: nameOperation('clinician', 'set'),
    async handle(request) {
      const user = await requireUser(request)
      if (isFailure(user)) return user
      const entries = readEntries(request.form)
      const { kind, displayName, fhirUser, records, relatedPersons } = readUser(entries, user.fhirUser)
      const changes = { displayName, fhirUser, records, ...(kind === 'account' && { relatedPersons }) }
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
async function sendExport(request: AdminRequest): Promise<FastifyReply | AdminFailure> {
  const { admin, form, reply } = request
  const { state, text } = readListing(form, STATES)
  const parts = await exportUsers(admin, { ...state.filter, text })
  return isFailure(parts) ? parts : reply.sendDownload('users.csv', CSV_TYPE, parts)
}

function renderRow(user: UserDescription) {
  return [
    html`${renderLink(buildUserPath(user), user.displayName)}<span class="sub"><code>${user.username}</code></span>`,
    KINDS[user.kind],
    user.records ? html`<code>${user.fhirUser}</code>` : 'None',
    renderState(user),
    user.secondFactors === 0 ? 'None' : user.secondFactors,
    html`${renderLastSignIn(user)}${user.signIns > 0 && html`<span class="sub">${user.signIns === 1 ? '1 sign-in' : `${user.signIns} sign-ins`} now</span>`}`,
    renderCreated(user),
  ]
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
