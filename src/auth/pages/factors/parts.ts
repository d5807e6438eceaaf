import { encode } from 'uqr'
import {
  type Html,
  html,
  renderAlert,
  renderCopyable,
  renderField,
  renderHidden,
} from '../../../web/index.ts'
import type { User } from '../../base/user.ts'
import type { Enrolment } from '../../users/factors/enrolment.ts'
import type { PasskeyRequest } from '../../users/factors/passkeys.ts'
import { buildTotpUri } from '../../users/factors/totp.ts'

/** A form that adds a second factor. */
export interface EnrolmentForm {
  readonly enrolment: Enrolment & { readonly sealed: string }
  readonly user: Pick<User, 'username'>
  /** Undefined where browsers have no passkeys. */
  readonly passkey: PasskeyRequest | undefined
  /** The server, as authenticator apps list it. */
  readonly issuer: string
  /** The path that the form is sent to. */
  readonly action: string
  readonly hidden: Readonly<Record<string, string | undefined>>
  readonly fault?: string | undefined
}

/** The scripts of a page with `renderEnrolment`. */
export const ENROLMENT_SCRIPTS = ['copy.js', 'passkey.js'] as const

export function renderEnrolment(form: EnrolmentForm): Html {
  const { enrolment, user, issuer, passkey, action, hidden, fault } = form
  const key = enrolment.secret.replace(/.{4}(?=.)/g, '$& ')
  const fields = { ...hidden, enrolment: enrolment.sealed }
  return html`${
    passkey &&
    html`<section class="enrol stack" aria-labelledby="enrol-passkey">
<h2 id="enrol-passkey">Passkey</h2>
<p>Your fingerprint, face or PIN on this device, or a security key. It also signs you in without a password, and cannot be used on a false page.</p>
<p class="muted" data-without-passkey>This browser cannot add a passkey. Use an authenticator app.</p>
${renderPasskeyForm({ action, hidden: fields, request: passkey, button: 'Add a passkey' })}</section>`
  }
<section class="enrol" aria-labelledby="enrol-app">
<h2 id="enrol-app">Authenticator app</h2>
<ol class="enrol__steps">
<li>Open an authenticator app on your phone, and scan this code with it.
${renderQrCode(buildTotpUri(enrolment.secret, issuer, user.username))}
<details><summary>I cannot scan it</summary>${renderCopyable('Enter this key in the app', key)}</details></li>
<li>Enter the code that the app shows.
<form class="stack" method="post" action="${action}">
${renderHidden(fields)}
${renderField({ name: 'code', label: 'Code of 6 digits', autocomplete: 'one-time-code', required: true, error: fault, autofocus: fault !== undefined })}
<button class="btn">Add this app</button>
</form></li>
</ol></section>`
}

/** A form that the script of the page shows, and sends with the response of a passkey. */
export function renderPasskeyForm(options: {
  readonly action: string
  readonly hidden: Readonly<Record<string, string | undefined>>
  readonly request: PasskeyRequest
  readonly button: string
  /** Whether the browser asks for the passkey at once. */
  readonly starts?: boolean
}): Html {
  const { action, hidden, request, button, starts = false } = options
  return html`<form class="stack" method="post" action="${action}" data-passkey="${JSON.stringify(request)}"${starts && html` data-start`} hidden>
${renderHidden(hidden)}<input type="hidden" name="credential">
<button class="btn">${button}</button>
<p role="status"></p></form>`
}

/** Dark on white in both colour schemes: cameras expect it. The margin is part of the code (ISO/IEC 18004). */
function renderQrCode(text: string): Html {
  const { data, size } = encode(text, { border: 4 })
  const squares = data.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : [])))
  return html`<svg class="qr" viewBox="0 0 ${size} ${size}" role="img" aria-label="QR code with the key below"><path fill="#fff" d="M0 0h${size}v${size}H0z"/><path fill="#000" d="${squares.join('')}"/></svg>`
}

/** Shows new recovery codes, once. */
export function renderRecoveryCodes(
  codes: readonly string[],
  next: { readonly href: string; readonly text: string },
): Html {
  return html`<div class="stack">${renderAlert('Save these codes now.', 'They are not shown again.', 'warn')}
<p>If you lose your phone or key, each of these codes signs you in once, with your password. Keep them where nobody else finds them: in a password manager, or printed.</p>
<div class="card card__body"><div class="copy"><pre class="codes">${codes.join('\n')}</pre><button class="btn btn--quiet btn--small" type="button" data-copy hidden>Copy</button></div></div>
<div class="actions"><a class="btn" href="${next.href}">${next.text}</a></div></div>`
}
