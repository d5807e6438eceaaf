import { getProviderIssuer } from '../../../../config/index.ts'
import { isFailure } from '../../../../core/index.ts'
import { type Html, html, renderDateTime, renderField, renderHidden } from '../../../../web/ui/index.ts'
import type { Parameters } from '../../../base/request.ts'
import { findSignIns, type SignIn } from '../../../users/sign-ins.ts'
import { REVOKED } from '../../access/access-list.ts'
import { describeEnding } from '../../access/given.ts'
import { type AdminFailure, failAdmin } from '../../base/action.ts'
import type { AdminRequest } from '../../subject/page/route.ts'
import { renderSecret } from '../../subject/page/shell.ts'
import type { Form, Subject } from '../../subject/subject.ts'
import { type ChangedUser, findShown, refuseOwnAccount, type ShownUser } from '../perform-on-user.ts'
import { ALL_USERS, buildUserPath, DONE, renderFhirUser, SECTION, USER_COLUMNS } from '../user-list.ts'
import { USER_OPERATIONS } from '../user-operations.ts'
import type { UserDescription, UserTarget } from '../users.ts'
import { renderNoRecords, renderPasswordChoice } from './user-form.ts'
import { describeUser } from './user-page.ts'

const ROLE: Form<ShownUser> = {
  render: (_, user) =>
    user.records
      ? html`<p>The user can still open patient records, unless you select this:</p>${renderNoRecords({}, { lost: user.fhirUser })}`
      : undefined,
  read: form => (form.get('noRecords') === undefined ? {} : { records: false }),
}

/** What operations on users have in common. The paths of clinicians show all of them. */
export const USERS: Subject<ShownUser, UserTarget, ChangedUser, UserDescription> = {
  name: 'clinician',
  lists: [ALL_USERS],
  operations: USER_OPERATIONS,
  toTarget: id => ({ id }),
  find: ({ admin }, id) => findShown(admin, { id }),
  pages: {
    section: SECTION,
    path: '/clinicians/:id',
    unknown: failAdmin('user-not-shown'),
    details: {
      columns: USER_COLUMNS,
      title: user => user.displayName,
      done: { ...DONE, revoked: REVOKED },
      listRecords: ({ id, username }) => [
        ['Records of this user', { user: username }],
        ['Changes to this account', { target: `account/${id}` }],
      ],
      more: describeUser,
    },
    async prepare({ admin, form }, user, verb = '') {
      const fault = refuseOwnAccount(admin, user.id, verb)
      if (fault || verb !== 'end-sign-in') return fault ?? user
      const signIn = (await findSignIns(admin, user.id)).find(({ id }) => id === form.get('signIn'))
      return signIn ? { ...user, signIn } : failAdmin('sign-in-unknown')
    },
    getName: user => user.displayName,
    listFacts: async (request, user, { endsAccess }) => [
      ['Username', html`<code>${user.username}</code>`],
      ['FHIR user', renderFhirUser(user)],
      ...(user.signIn ? describeSignIn(user.signIn) : []),
      ...(endsAccess
        ? [
            ['Sign-ins that end', String(user.signIns)] as const,
            await describeEnding(request, { userIds: [user.id] }),
          ]
        : []),
    ],
    show: (request, changed, { verb }) =>
      verb === 'remove' ? '/clinicians?done=removed' : showChanged(request, changed, 'saved'),
    forms: {
      'end-sign-in': {
        render: (_, { signIn }) => html`${renderHidden({ signIn: signIn?.id })}`,
        read: form => ({ sign_in: form.get('signIn') ?? '' }),
      },
      'set-password': {
        render: () => renderPasswordChoice('link', ['link', '1']),
        read: form => ({ activation_link: form.get('password') === 'link' }),
      },
      link: { render: renderLinkFields, read: readLink },
      unlink: { render: renderLinkFields, read: readLink },
      'make-administrator': ROLE,
      'make-auditor': ROLE,
    },
  },
}

function describeSignIn({ browser, address, createdAt, lastUsedAt }: SignIn) {
  return [
    ['Browser', browser ?? 'Unknown'],
    ['Address', address ?? 'Unknown'],
    ['Signed in', renderDateTime(createdAt)],
    ['Last used', renderDateTime(lastUsedAt)],
  ] as const
}

/** Shows a new password or link; otherwise the page of the user. */
export function showChanged(
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
      note: html`Give it only to the user: the first person who opens it chooses the password. It works once, until ${renderDateTime(link.expiresAt)}.`,
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
  const [only, ...others] = context.providers.all.map(getProviderIssuer)
  return html`${renderField({ name: 'issuer', label: 'Issuer', value: issuer || (others.length === 0 ? (only ?? '') : ''), required: true })}
${renderField({ name: 'subject', label: 'Subject (sub, or the id of a directory entry)', value: subject, required: true })}`
}
