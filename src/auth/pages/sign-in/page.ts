import {
  type Brand,
  type Html,
  html,
  renderAlert,
  renderContact,
  renderDocument,
  renderField,
  renderLoginArt,
  renderLogo,
} from '../../../web/ui/index.ts'
import { RECENT_SECONDS } from '../../base/limits.ts'
import { paths } from '../../base/paths.ts'
import type { Client } from '../../oauth/clients/client.ts'
import { renderUnverifiedWarning } from '../parts/apps.ts'

export interface LoginPageOptions {
  readonly brand: Brand
  /** The app that redirected the user here. */
  readonly app?: Client | undefined
  /** Whether the user is then asked what the app may use. */
  readonly asksConsent?: boolean | undefined
  readonly pendingId?: string | undefined
  readonly username?: string | undefined
  /** The passwords of this server or of a directory; undefined without a password form. */
  readonly form: 'own' | { readonly id: string; readonly name: string } | undefined
  /** Links to ways that the settings put above the form. */
  readonly above: readonly OtherWay[]
  readonly others: readonly OtherWay[]
  /** Whether users may sign in with a passkey instead of a password of this server. */
  readonly offersPasskeys: boolean
  readonly problem?: string | undefined
  /** What else the user can do about the problem. */
  readonly advice?: string | undefined
  /** Whether the user has just signed out. */
  readonly signedOut?: boolean
  /** Why the login of this browser has ended by itself; undefined if it has not. */
  readonly expired?: { readonly what: string; readonly advice: string } | undefined
  /** The user opened another page without a login: again, after a sign-out in another tab, or for the first time. */
  readonly wanted?: 'again' | 'page' | undefined
  /** Whether the user is signed in, and must authenticate again. */
  readonly again?: boolean
  /** Shown on loopback with the embedded FHIR server. */
  readonly testLogin?: TestLogin | undefined
}

/** The accounts of the sample data, which have the same password. */
export interface TestLogin {
  readonly username: string
  readonly password: string
  readonly others: readonly { readonly username: string; readonly kind: keyof typeof KINDS }[]
}

/** Another way to sign in. */
export interface OtherWay {
  readonly name: string
  readonly path: string
}

export function renderLoginPage(options: LoginPageOptions): Html {
  const { brand, signedOut } = options
  const scripts = signedOut ? ['signed-out.js'] : []
  return renderGate({ title: 'Sign in', brand, scripts }, renderSignIn(options))
}

/** A page of the sign-in. */
export function renderGate(
  page: Parameters<typeof renderDocument>[0] & { readonly brand: Brand },
  body: Html,
): Html {
  const cover = renderCover(page.brand)
  return renderDocument(page, html`<div class="gate">${cover}<main id="main">${body}</main></div>`)
}

function renderCover(brand: Brand): Html {
  return html`<header class="gate__leaf">${renderLogo('/login', brand)}${renderLoginArt()}<div class="gate__say">
<p>You decide which records an app can use.</p>
<p>You choose the patient and the data. Every request of the app is then checked against your choice.</p>
</div></header>`
}

function renderSignIn(options: LoginPageOptions): Html {
  const { form, above, others, app, problem, signedOut, expired, again, wanted, testLogin } = options
  return html`<div class="signin">
<h1>Sign in</h1>
<p class="muted">${describeAccount(options)}</p>
${problem !== undefined && renderAlert(problem, options.advice ?? (form === undefined ? '' : FORGOTTEN), 'bad')}
${signedOut && renderAlert('You are signed out.', '', 'ok')}
${expired && problem === undefined && renderAlert(expired.what, expired.advice)}
${wanted && problem === undefined && renderAlert(wanted === 'again' ? 'You were signed out.' : 'You are not signed in.', 'Sign in to continue to the page you wanted.')}
${again && problem === undefined && renderAlert('Sign in again to continue.', `This page needs a sign-in within the last ${RECENT_SECONDS / 60} minutes.`)}
${app && problem === undefined && html`${renderAlert(`${app.name} sent you here.`, options.asksConsent ? 'After you sign in, we ask you what it may use.' : 'After you sign in, it opens.')}${renderUnverifiedWarning(app)}`}
${above.length > 0 && renderWays(options, above, 'main')}
${above.length > 0 && form !== undefined && html`<p class="muted signin__or">${describeOtherForm(form)}</p>`}
${form !== undefined && renderForm(options, form)}
${form === 'own' && options.offersPasskeys && renderPasskeyLink(options)}
${others.length > 0 && renderWays(options, others, form === undefined ? 'main' : 'other')}
${renderHelp(options)}
${testLogin && form === 'own' && renderTestLogin(testLogin)}
</div>`
}

const FORGOTTEN = html`<a href="#help">Forgot your password?</a>`

/** Passwords are reset by those who manage the accounts. The page cannot know whether there is such an account. */
function renderHelp({ brand, form }: LoginPageOptions): Html {
  const what = form === undefined ? 'Can’t sign in?' : 'Forgot your password, or can’t sign in?'
  const own = form === 'own' ? 'a link to choose a new password' : 'a new password'
  const wanted = form === undefined ? undefined : own
  return html`<p class="muted small signin__help" id="help">${what} ${
    brand.support === undefined
      ? `Ask the people who gave you your account${wanted === undefined ? '' : `: they can give you ${wanted}`}.`
      : html`Ask for help${wanted !== undefined && `, or for ${wanted}`}: ${renderContact(brand.support)}`
  }</p>`
}

const KINDS = { Admin: 'administrator', Patient: 'patient', Mother: 'mother of a patient' } as const

function renderTestLogin({ username, password, others }: TestLogin): Html {
  const list = others.map(
    (other, at) => html`${at > 0 && ', '}<code>${other.username}</code> (${KINDS[other.kind]})`,
  )
  return html`<p class="note">Test login on this computer: <code>${username}</code>, password <code>${password}</code>.${others.length > 0 && html` With the same password: ${list}.`}</p>`
}

function describeAccount({ brand, form, above }: LoginPageOptions): string {
  if (form !== undefined && above.length > 0) return 'Choose how to sign in.'
  if (form === undefined) return 'Use the account of your organization.'
  return form === 'own' ? `Use your ${brand.name} account.` : `Use your ${form.name}.`
}

/** The form below another way to sign in. */
function describeOtherForm(form: NonNullable<LoginPageOptions['form']>): string {
  return form === 'own' ? 'Or with a username and password' : `Or with your ${form.name}`
}

function renderForm(
  { pendingId, username, problem, above }: LoginPageOptions,
  form: NonNullable<LoginPageOptions['form']>,
): Html {
  const knowsUser = problem !== undefined || username !== undefined
  return html`<form method="post" action="/login">
${pendingId !== undefined && html`<input type="hidden" name="interaction" value="${pendingId}">`}
${form !== 'own' && html`<input type="hidden" name="provider" value="${form.id}">`}
${renderField({ name: 'username', label: 'Username', autocomplete: 'username', required: true, value: username, autofocus: above.length === 0 && !knowsUser })}
${renderField({ name: 'password', label: 'Password', type: 'password', autocomplete: 'current-password', required: true, autofocus: knowsUser })}
<button class="btn btn--wide${above.length > 0 && ' btn--quiet'}">Sign in</button>
</form>`
}

function renderPasskeyLink({ pendingId }: LoginPageOptions): Html {
  const query = pendingId === undefined ? '' : `?interaction=${pendingId}`
  return html`<p class="signin__passkey"><a href="${paths.loginPasskey}${query}">Sign in with a passkey</a></p>`
}

/** Links, because a redirect after a form would need the provider in the content security policy. */
function renderWays(
  { pendingId }: LoginPageOptions,
  ways: readonly OtherWay[],
  place: 'main' | 'other',
): Html {
  const makeUrl = (path: string) =>
    pendingId === undefined ? path : `${path}${path.includes('?') ? '&' : '?'}interaction=${pendingId}`
  const isMain = place === 'main'
  return html`<div class="signin__others">${!isMain && html`<p class="muted">Or sign in with</p>`}
${ways.map(
  ({ name, path }) =>
    html`<a class="btn btn--wide${!isMain && ' btn--quiet'}" href="${makeUrl(path)}">${isMain && 'Sign in with '}${name}</a>`,
)}</div>`
}
