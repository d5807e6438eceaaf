import { type Html, html, page } from '../../web/index.ts'
import type { Login } from '../login/login.ts'
import { whatEnds } from '../logout/what-ends.ts'
import { paths } from '../paths.ts'
import { appName } from '../portal/app-identity.ts'
import { signedInBar } from '../portal/bar.ts'
import type { EndRequest } from './end-request.ts'

/** Asks the person in front of the browser, where the client could not show for whom it speaks. */
export function endSessionPage(
  login: Login,
  { client }: EndRequest,
  fields: Readonly<Record<string, string>>,
): Html {
  const hidden = Object.entries(fields).map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
  )
  const who = client ? html`${appName(client)} asks to sign you out.` : html`An app asks to sign you out.`
  return page(
    { title: 'Sign out', bar: signedInBar(login), width: 'flow' },
    html`<div class="pagehead"><div><h1>Sign out?</h1>
<p class="pagehead__lead">${who} ${whatEnds()}</p></div></div>
<form class="actions" method="post" action="${paths.endSessionConfirmed}">${hidden}<button class="btn">Sign out</button><a class="btn btn--quiet" href="${paths.portal}">Stay signed in</a></form>`,
  )
}
