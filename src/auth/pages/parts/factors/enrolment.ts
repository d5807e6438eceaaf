import { encode } from 'uqr'
import { type Failed, fail, isFailure } from '../../../../core/index.ts'
import { type Html, html, renderCopyable, renderField, renderHidden } from '../../../../web/ui/index.ts'
import type { Parameters } from '../../../base/request.ts'
import type { AuthUser } from '../../../base/user.ts'
import type { AuthContext } from '../../../oauth/context.ts'
import {
  openEnrolment,
  type ProvedFactor,
  proveFactor,
  startEnrolment,
} from '../../../users/factors/enrolment.ts'
import { listFactors } from '../../../users/factors/factors.ts'
import { findRelyingParty, type PasskeyRequest, requestNewPasskey } from '../../../users/factors/passkeys.ts'
import { buildTotpUri } from '../../../users/factors/totp.ts'
import { renderPasskeyForm } from './passkey-form.ts'

/** A form that adds a second factor. */
interface EnrolmentForm {
  readonly user: Pick<AuthUser, 'id' | 'username' | 'displayName'>
  /** The path that the form is sent to. */
  readonly action: string
  readonly hidden?: Readonly<Record<string, string | undefined>>
  readonly fault?: EnrolmentFault | undefined
}

/** Why a form was not accepted. It is shown again, with the same key. */
export interface EnrolmentFault extends Failed {
  /** Undefined if the form has expired. */
  readonly text: string | undefined
  readonly sealed: string
}

/** Reads a form of `renderEnrolment`. */
export async function readEnrolment(
  context: AuthContext,
  userId: string,
  parameters: Parameters,
): Promise<ProvedFactor | EnrolmentFault> {
  const sealed = parameters.get('enrolment') ?? ''
  const enrolment = openEnrolment(context, userId, sealed)
  if (!enrolment) return fail({ text: undefined, sealed })
  const code = parameters.get('code')
  const credential = parameters.get('credential')
  const factor = await proveFactor(context, enrolment, { userId, code, credential })
  return isFailure(factor) ? fail({ text: factor.text, sealed }) : factor
}

/** The status of a page with the form. */
export function findStatus(fault: EnrolmentFault | undefined): 200 | 400 {
  return fault?.text === undefined ? 200 : 400
}

/** The scripts of a page with `renderEnrolment`. */
export const ENROLMENT_SCRIPTS = ['copy.js', 'passkey.js'] as const

export async function renderEnrolment(
  context: AuthContext,
  { user, action, hidden = {}, fault }: EnrolmentForm,
): Promise<Html> {
  const known = fault && openEnrolment(context, user.id, fault.sealed)
  const enrolment = known ? { ...known, sealed: fault.sealed } : startEnrolment(context, user.id)
  const passkey = await makePasskeyRequest(context, user, enrolment.challenge)
  const key = enrolment.secret.replace(/.{4}(?=.)/g, '$& ')
  const fields = { ...hidden, enrolment: enrolment.sealed }
  const uri = buildTotpUri(enrolment.secret, nameServer(context), user.username)
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
<li>Use an authenticator app, such as Google Authenticator or Microsoft Authenticator. Scan this code with it, or open it on this device.
<div class="enrol__ways">${renderQrCode(uri)}
<a class="btn btn--quiet" href="${uri}">Open in an authenticator app on this device</a></div>
<details><summary>I cannot scan it</summary>${renderCopyable('Enter this key in the app', key)}</details></li>
<li>Enter the code that the app shows.
<form class="stack" method="post" action="${action}">
${renderHidden(fields)}
${renderField({ name: 'code', label: 'Code of 6 digits', autocomplete: 'one-time-code', required: true, error: fault?.text, autofocus: fault?.text !== undefined })}
<button class="btn">Add this app</button>
</form></li>
</ol></section>`
}

/** A request for a new passkey. Undefined where browsers have none. */
async function makePasskeyRequest(
  { settings, store, brand }: AuthContext,
  user: EnrolmentForm['user'],
  challenge: string,
): Promise<PasskeyRequest | undefined> {
  const party = findRelyingParty(settings)
  if (!party) return undefined
  const factors = await listFactors(store.db, user.id)
  return requestNewPasskey(party, { challenge, user, siteName: brand.name, factors })
}

/** The name of this server in an authenticator app. */
function nameServer({ settings, brand }: AuthContext): string {
  return `${brand.name} (${new URL(settings.issuerUrl).host})`
}

/** Dark on white in both colour schemes: cameras expect it. The margin is part of the code (ISO/IEC 18004). */
function renderQrCode(text: string): Html {
  const { data, size } = encode(text, { border: 4 })
  const squares = data.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : [])))
  return html`<svg class="qr" viewBox="0 0 ${size} ${size}" role="img" aria-label="QR code with the key below"><path fill="#fff" d="M0 0h${size}v${size}H0z"/><path fill="#000" d="${squares.join('')}"/></svg>`
}
