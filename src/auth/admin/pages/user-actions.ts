import { isFailure } from '../../../fhir/index.ts'
import { type Html, html, renderField } from '../../../web/index.ts'
import type { Parameters } from '../../base/request.ts'
import { type Admin, AdminFailure } from '../action.ts'
import { changeUser, endSessions, linkUser, setPassword, unlinkUser } from '../clinicians.ts'
import type { Operation } from '../operations.ts'
import { findUser, type UserDescription } from '../users.ts'
import type { AdminRequest, AdminRoute } from './route.ts'
import { type Confirmation, defineAction, renderSecret } from './shell.ts'

const SECTION = 'clinicians'

/** Actions on one user, each with a page that asks for confirmation. */
export const userActions: readonly AdminRoute[] = [
  ...defineUserAction('disable', 'clinician disable', {
    ask: ({ displayName }) => ({
      title: `Disable ${displayName}?`,
      text: 'The user cannot sign in. All sign-ins end, and apps lose the access that the user gave them.',
      button: 'Disable user',
    }),
    perform: (admin, user) => changeUser(admin, user, { disabled: true }),
  }),
  ...defineUserAction('enable', 'clinician enable', {
    ask: ({ displayName }) => ({
      title: `Enable ${displayName}?`,
      text: 'The user can sign in again. Apps do not get their access back.',
      button: 'Enable user',
      isDangerous: false,
    }),
    perform: (admin, user) => changeUser(admin, user, { disabled: false }),
  }),
  ...defineUserAction('end-sessions', 'clinician end-sessions', {
    ask: ({ displayName }) => ({
      title: `End the sessions of ${displayName}?`,
      text: 'All sign-ins end, and apps lose the access that the user gave them. The user can sign in again.',
      button: 'End sessions',
    }),
    perform: (admin, user) => endSessions(admin, user),
  }),
  ...defineUserAction('make-administrator', 'clinician set', {
    ask: ({ displayName }) => ({
      title: `Make ${displayName} an administrator?`,
      text: 'Administrators use this area: they change apps, users and keys, and read the audit trail.',
      button: 'Make administrator',
    }),
    perform: (admin, user) => changeUser(admin, user, { admin: true }),
  }),
  ...defineUserAction('remove-administrator', 'clinician set', {
    ask: ({ displayName }) => ({
      title: `Remove ${displayName} from the administrators?`,
      text: 'The user keeps the account. If no administrator is left, the command line can add one.',
      button: 'Remove administrator',
    }),
    perform: (admin, user) => changeUser(admin, user, { admin: false }),
  }),
  ...defineUserAction('link', 'clinician link', {
    ask: ({ displayName }) => ({
      title: `Link ${displayName} to a provider account`,
      text: 'The account of the identity provider then signs in as this user. If it is linked to another user, that link is removed.',
      button: 'Link account',
      isDangerous: false,
    }),
    fields: renderLinkFields,
    perform: (admin, user, form) => linkUser(admin, user, readLink(form)),
  }),
  ...defineUserAction('unlink', 'clinician unlink', {
    ask: ({ displayName }) => ({
      title: `Remove a link of ${displayName}?`,
      text: 'The provider account can no longer sign in as this user, and its current sign-ins end.',
      button: 'Remove link',
    }),
    fields: renderLinkFields,
    perform: (admin, user, form) => unlinkUser(admin, user, readLink(form)),
  }),
  ...defineAction({
    path: '/clinicians/:id/reset-password',
    operation: 'clinician set-password',
    async ask(request) {
      const user = await requireUser(request)
      if (isFailure(user)) return user
      return {
        section: SECTION,
        title: `Reset the password of ${user.displayName}?`,
        text: 'The server generates a new password and shows it once. All sign-ins end, and apps lose the access that the user gave them.',
        button: 'Reset password',
        back: buildUserPath(user),
      }
    },
    async perform(request) {
      const changed = await setPassword(request.admin, { id: request.params.id ?? '' }, {})
      return isFailure(changed) ? changed : renderPassword(request, changed.user, changed.password)
    },
  }),
]

interface UserAction {
  ask(user: UserDescription): Pick<Confirmation, 'title' | 'text' | 'button' | 'isDangerous'>
  readonly fields?: (request: AdminRequest) => Html
  perform(admin: Admin, user: UserDescription, form: Parameters): Promise<UserDescription | AdminFailure>
}

/** An action on the user in the path. An account has the same operations as a clinician. */
function defineUserAction(
  name: string,
  operation: Operation,
  { ask, fields, perform }: UserAction,
): readonly AdminRoute[] {
  return defineAction({
    path: `/clinicians/:id/${name}`,
    operation,
    async ask(request) {
      const user = await requireUser(request)
      if (isFailure(user)) return user
      return {
        section: SECTION,
        back: buildUserPath(user),
        ...ask(user),
        ...(fields && { fields: fields(request) }),
      }
    },
    async perform(request) {
      const user = await requireUser(request)
      const changed = isFailure(user) ? user : await perform(request.admin, user, request.form)
      return isFailure(changed) ? changed : `${buildUserPath(changed)}?done=saved`
    },
  })
}

export async function requireUser({ admin, params }: AdminRequest): Promise<UserDescription | AdminFailure> {
  return (
    (await findUser(admin, { id: params.id ?? '' })) ?? new AdminFailure('not_found', 'there is no such user')
  )
}

export function buildUserPath({ id }: Pick<UserDescription, 'id'>): string {
  return `/clinicians/${encodeURIComponent(id)}`
}

export function renderPassword(request: AdminRequest, user: UserDescription, value: string): Html {
  const title = `Password of ${user.displayName}`
  return renderSecret(request, {
    section: SECTION,
    title,
    label: `New password of ${user.username}`,
    value,
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
