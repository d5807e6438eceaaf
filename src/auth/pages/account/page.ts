import {
  type Html,
  html,
  renderAlert,
  renderBadge,
  renderDanger,
  renderDateTime,
  renderHidden,
  renderPageHead,
  renderTable,
} from '../../../web/ui/index.ts'
import { paths } from '../../base/paths.ts'
import type { AuthContext } from '../../oauth/context.ts'
import type { Login } from '../../users/find-login.ts'
import type { SignIn } from '../../users/sign-ins.ts'
import { type PasswordFault, renderNewPasswordFields, renderPasswordField } from '../parts/new-password.ts'
import { renderBack, renderSignedInPage } from '../parts/page-parts.ts'

export function renderPasswordPage(
  context: AuthContext,
  login: Login,
  { fault, isChanged = false }: { readonly fault?: PasswordFault; readonly isChanged?: boolean },
): Html {
  return renderSignedInPage(
    context,
    login,
    { title: 'Change password', current: 'account', width: 'flow' },
    html`${renderBack(paths.account, 'Account')}${renderPageHead('Change password', 'When you change it, you are signed out in all other browsers, and apps lose the access that you gave them. Only apps that are open in this browser keep it, until you sign out.')}
${isChanged && html`<div role="status">${renderAlert('Password changed.', 'Use the new one from now on. You are signed out in all other browsers, and apps have lost the access that you gave them. Only apps that are open in this browser keep it, until you sign out.', 'ok')}</div>`}
<form class="card card__body stack" method="post" action="${paths.accountPassword}">
<input type="hidden" name="username" value="${login.user.username}" autocomplete="username">
${renderPasswordField('current', 'Current password', fault)}
${renderNewPasswordFields(context, fault)}
<div class="actions"><button class="btn">Change password</button></div>
</form>`,
  )
}

export function renderSignInsPage(context: AuthContext, login: Login, signIns: readonly SignIn[]): Html {
  return renderSignedInPage(
    context,
    login,
    { title: 'Where you are signed in', current: 'account' },
    html`${renderBack(paths.account, 'Account')}${renderPageHead(
      'Where you are signed in',
      html`The browsers in which you are signed in${login.developerPages && ', and tokens that the command line issued for you'}. End each sign-in that you do not recognize.`,
      signIns.length > 1 &&
        html`<form method="post" action="${paths.accountSignIns}">${renderDanger('End all other sign-ins')}</form>`,
    )}
<div class="card card--clip">${renderTable(
      {
        caption: 'Sign-ins, this browser first',
        kind: 'table--stack',
        columns: [
          'Browser',
          'Address',
          'Signed in',
          'Last used',
          { head: 'Ends by', label: 'Ends' },
          { head: 'Action', isHidden: true },
        ],
      },
      signIns.map(({ id, browser, address, createdAt, lastUsedAt, endsAt }) => [
        browser ?? 'Unknown',
        address ?? 'Unknown',
        renderDateTime(createdAt),
        renderDateTime(lastUsedAt),
        renderDateTime(endsAt),
        id === login.idHash
          ? renderBadge('This browser', 'accent')
          : html`<form method="post" action="${paths.accountSignIns}">${renderHidden({ signIn: id })}${renderDanger('End', { size: 'small' })}</form>`,
      ]),
    )}</div>`,
  )
}
