import {
  type Html,
  html,
  renderAlert,
  renderBadge,
  renderDateTime,
  renderField,
  renderPage,
} from '../../../web/index.ts'
import { paths } from '../../base/paths.ts'
import type { Parameters } from '../../base/request.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { keepGoodLogins, type Login, selectLogins } from '../../users/find-login.ts'
import { makeSignedInBar } from '../page-parts.ts'

interface PasswordForm {
  readonly current: string
  readonly next: string
  readonly again: string
}

export interface PasswordFault {
  readonly field: keyof PasswordForm
  readonly text: string
}

const SHORTEST = 8
/** Bcrypt ignores further bytes. */
const MAX_BYTES = 72

export function readPasswordForm(form: Parameters): PasswordForm {
  return {
    current: form.get('current') ?? '',
    next: form.get('next') ?? '',
    again: form.get('again') ?? '',
  }
}

/** The first fault of a new password, before the current one is compared. */
export function findPasswordFault({ current, next, again }: PasswordForm): PasswordFault | undefined {
  if (current === '') return { field: 'current', text: 'Enter your current password.' }
  if ([...next].length < SHORTEST) return { field: 'next', text: `Use at least ${SHORTEST} characters.` }
  if (Buffer.byteLength(next) > MAX_BYTES) return { field: 'next', text: `Use at most ${MAX_BYTES} bytes.` }
  if (next === current) return { field: 'next', text: 'Use another password than the current one.' }
  if (next !== again) return { field: 'again', text: 'The two entries differ.' }
  return undefined
}

/** A login of the user in a browser. */
interface SignIn {
  /** The hash of its cookie, which opens nothing by itself. */
  readonly id: string
  readonly isCurrent: boolean
  readonly createdAt: number
  readonly lastUsedAt: number
  readonly endsAt: number
}

/** The user's logins, the current one first, then the last used. */
export async function findSignIns(
  { store: { db }, rules, clock }: AuthContext,
  login: Login,
): Promise<readonly SignIn[]> {
  const logins = await selectLogins(db).where('login.clinician_id', '=', login.user.id).execute()
  const rows = await keepGoodLogins(db, rules, logins, clock())
  return rows
    .map(row => ({
      id: row.id_hash,
      isCurrent: row.id_hash === login.idHash,
      createdAt: row.created_at,
      lastUsedAt: row.seen_at ?? row.created_at,
      endsAt: row.expires_at,
    }))
    .toSorted((a, b) => Number(b.isCurrent) - Number(a.isCurrent) || b.lastUsedAt - a.lastUsedAt)
}

interface PasswordOptions {
  readonly sampleData: boolean
  readonly fault?: PasswordFault
  readonly isChanged?: boolean
}

export function renderPasswordPage(
  login: Login,
  { sampleData, fault, isChanged = false }: PasswordOptions,
): Html {
  const field = (name: keyof PasswordForm, label: string, autocomplete: string) => {
    const error = fault?.field === name ? fault.text : undefined
    const autofocus = error !== undefined
    return renderField({ name, label, type: 'password', autocomplete, required: true, error, autofocus })
  }
  return renderPage(
    { title: 'Change password', bar: makeSignedInBar(login, 'account'), sampleData, width: 'flow' },
    html`<div class="pagehead"><div><h1>Change password</h1>
<p class="pagehead__lead">Your sign-ins in other browsers end. ${renderOther(paths.accountSignIns, 'Sign-ins')}</p></div></div>
${isChanged && html`<div role="status">${renderAlert('Password changed.', 'Use the new one from now on.', 'ok')}</div>`}
<form class="card card__body stack" method="post" action="${paths.accountPassword}">
<input type="hidden" name="username" value="${login.user.username}" autocomplete="username">
${field('current', 'Current password', 'current-password')}
${field('next', 'New password', 'new-password')}
${field('again', 'New password again', 'new-password')}
<div class="actions"><button class="btn">Change password</button></div>
</form>`,
  )
}

function renderOther(href: string, text: string): Html {
  return html`<a href="${href}">${text}</a>`
}

interface SignInsOptions {
  /** Whether the user has a password here. */
  readonly passwords: boolean
  readonly sampleData: boolean
  readonly hasCommandTokens: boolean
}

export function renderSignInsPage(
  login: Login,
  signIns: readonly SignIn[],
  { passwords, sampleData, hasCommandTokens }: SignInsOptions,
): Html {
  const heads = ['Signed in', 'Last used', 'Ends at the latest']
  return renderPage(
    { title: 'Sign-ins', bar: makeSignedInBar(login, 'account'), sampleData },
    html`<div class="pagehead"><div><h1>Sign-ins</h1>
<p class="pagehead__lead">Browsers in which you are signed in${hasCommandTokens && ', and tokens that the command line issued for you'}. ${passwords && renderOther(paths.accountPassword, 'Change password')}</p></div>
${signIns.length > 1 && html`<form method="post" action="${paths.accountSignIns}"><button class="btn btn--danger">End all others</button></form>`}</div>
<div class="card card--clip"><table class="table table--stack" role="table">
<caption class="sr">Sign-ins, this browser first</caption>
<thead role="rowgroup"><tr role="row">${heads.map(head => html`<th role="columnheader" scope="col">${head}</th>`)}<th role="columnheader" scope="col"><span class="sr">Action</span></th></tr></thead>
<tbody role="rowgroup">${signIns.map(renderSignIn)}</tbody>
</table></div>`,
  )
}

function renderSignIn({ id, isCurrent, createdAt, lastUsedAt, endsAt }: SignIn): Html {
  return html`<tr role="row">
<th role="rowheader" scope="row">${renderDateTime(createdAt)}</th>
<td role="cell" data-label="Last used">${renderDateTime(lastUsedAt)}</td>
<td role="cell" data-label="Ends">${renderDateTime(endsAt)}</td>
<td role="cell">${
    isCurrent
      ? renderBadge('This browser', 'accent')
      : html`<form method="post" action="${paths.accountSignIns}"><input type="hidden" name="signIn" value="${id}"><button class="btn btn--danger btn--small">End</button></form>`
  }</td>
</tr>
`
}
