import { alert, document, field, gateArt, type Html, html, logo } from '../../web/index.ts'
import type { Client } from '../client/client.ts'
import { renderUnverifiedWarning } from '../portal/app-identity.ts'

export interface LoginPageOptions {
  /** The app that redirected the user here. */
  readonly app?: Client | undefined
  readonly pendingId?: string | undefined
  readonly username?: string | undefined
  readonly problem?: string
  /** Whether the user has just signed out. */
  readonly signedOut?: boolean
  /** Shown on loopback with sample patients. */
  readonly testLogin?: { readonly username: string; readonly password: string } | undefined
}

export function renderLoginPage(options: LoginPageOptions): Html {
  return document(
    { title: 'Sign in' },
    html`<div class="gate">${renderCover()}<main id="main">${renderForm(options)}</main></div>`,
  )
}

function renderCover(): Html {
  return html`<header class="gate__leaf">${logo('/login', 'Sallyport')}${gateArt()}<div class="gate__say">
<p>Two doors stand before every record.</p>
<p>You choose the patient and what an app may see. Then each request the app makes is checked against that choice.</p>
</div></header>`
}

function renderForm({ app, pendingId, username, problem, signedOut, testLogin }: LoginPageOptions): Html {
  return html`<div class="signin">
<h1>Sign in</h1>
<p class="muted">Use your clinician account.</p>
<form method="post" action="/login">
${problem !== undefined && alert(problem, '', 'bad')}
${signedOut && alert('You are signed out.', '', 'ok')}
${app && problem === undefined && html`${alert(`${app.name} sent you here.`, 'After you sign in, it opens.')}${renderUnverifiedWarning(app)}`}
${pendingId !== undefined && html`<input type="hidden" name="interaction" value="${pendingId}">`}
${field({ name: 'username', label: 'Username', autocomplete: 'username', required: true, ...(username === undefined ? {} : { value: username }) })}
${field({ name: 'password', label: 'Password', type: 'password', autocomplete: 'current-password', required: true, autofocus: problem !== undefined })}
<button class="btn btn--wide">Sign in</button>
</form>
${
  testLogin &&
  html`<p class="note">Sallyport runs on this computer with sample patients. Test login: <code>${testLogin.username}</code>, password <code>${testLogin.password}</code>.</p>`
}
</div>`
}
