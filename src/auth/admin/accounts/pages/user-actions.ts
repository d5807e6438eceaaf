import { isFailure } from '../../../../core/index.ts'
import { type Html, html, renderDateTime, renderField, renderHidden } from '../../../../web/ui/index.ts'
import type { Parameters } from '../../../base/request.ts'
import { findSignIns, type SignIn } from '../../../users/sign-ins.ts'
import { describeEnding } from '../../access/grants-page.ts'
import { type AdminFailure, failAdmin } from '../../base/action.ts'
import type { AdminRequest, AdminRoute } from '../../page/route.ts'
import { defineAction, renderSecret } from '../../page/shell.ts'
import type { ChangedUser } from '../change-sign-in.ts'
import { refuseOwnAccount } from '../perform-on-user.ts'
import { buildUserPath, SECTION } from '../user-list.ts'
import { Link, SignInId, type UserOperation } from '../user-operations.ts'
import { findUser, type UserDescription } from '../users.ts'
import { renderNoRecords, renderPasswordChoice } from './user-form.ts'
import { renderFhirUser } from './user-page.ts'

/** An operation on the user in the path, with a page that asks for confirmation. */
export function defineUserAction(
  verb: string,
  { signIn, api, path = verb, page, perform }: UserOperation,
): readonly AdminRoute[] {
  if (!page || !perform) return []
  const isAboutLink = api?.input === Link
  const isAboutSignIn = api?.input === SignInId
  const isAboutPassword = verb === 'set-password'
  const isAboutRole = verb === 'make-administrator' || verb === 'make-auditor'
  return defineAction({
    path: `/clinicians/:id/${path}`,
    operation: { name: `clinician ${verb}`, signIn },
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
          ['FHIR user', renderFhirUser(user)],
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
              : isAboutRole && user.records
                ? html`<p>The user can still open patient records, unless you select this:</p>${renderNoRecords({}, { lost: user.fhirUser })}`
                : undefined,
      }
    },
    async perform(request) {
      const user = await requireUser(request)
      if (isFailure(user)) return user
      const input = {
        ...(isAboutLink && readLink(request.form)),
        ...(isAboutSignIn && { sign_in: request.form.get('signIn') ?? '' }),
        ...(isAboutRole && request.form.get('noRecords') !== undefined && { records: false as const }),
        ...(isAboutPassword && { activation_link: request.form.get('password') === 'link' }),
      }
      const changed = await perform(request.admin, user, input)
      return verb === 'remove' && !isFailure(changed)
        ? '/clinicians?done=removed'
        : showChanged(request, changed, 'saved')
    },
  })
}

export async function requireUser({ admin, params }: AdminRequest): Promise<UserDescription | AdminFailure> {
  return (await findUser(admin, { id: params.id ?? '' })) ?? failAdmin('user-not-shown')
}

async function requireSignIn(
  { admin, form }: AdminRequest,
  { id }: UserDescription,
): Promise<SignIn | AdminFailure> {
  const signIns = await findSignIns(admin, id)
  const found = signIns.find(one => one.id === form.get('signIn'))
  return found ?? failAdmin('sign-in-unknown')
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
  const [only, ...others] = context.providers.all.map(provider =>
    provider.kind === 'oidc' ? provider.issuer : `ldap:${provider.id}`,
  )
  return html`${renderField({ name: 'issuer', label: 'Issuer', value: issuer || (others.length === 0 ? (only ?? '') : ''), required: true })}
${renderField({ name: 'subject', label: 'Subject (sub, or the id of a directory entry)', value: subject, required: true })}`
}
