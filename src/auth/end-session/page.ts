import { type Html, html, page } from '../../web/index.ts'
import type { Login } from '../login/login.ts'
import { describeLogout } from '../logout/describe-logout.ts'
import { paths } from '../paths.ts'
import { renderAppName } from '../portal/app-identity.ts'
import { makeSignedInBar } from '../portal/bar.ts'
import type { LogoutRequest } from './logout-request.ts'

/** Asks the user to confirm a logout without a matching ID token. */
export function renderEndSessionPage(
  login: Login,
  { client }: LogoutRequest,
  fields: Readonly<Record<string, string>>,
): Html {
  const hidden = Object.entries(fields).map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
  )
  const who = client
    ? html`${renderAppName(client)} asks to sign you out.`
    : html`An app asks to sign you out.`
  return page(
    { title: 'Sign out', bar: makeSignedInBar(login), width: 'flow' },
    html`<div class="pagehead"><div><h1>Sign out?</h1>
<p class="pagehead__lead">${who} ${describeLogout()}</p></div></div>
<form class="actions" method="post" action="${paths.endSessionConfirmed}">${hidden}<button class="btn">Sign out</button><a class="btn btn--quiet" href="${paths.portal}">Stay signed in</a></form>`,
  )
}
