import { formatDate, type Html, html, renderAlert } from '../../../../web/ui/index.ts'
import type { AuthContext } from '../../../oauth/context.ts'
import { FACTOR_KINDS, type Factor } from '../../../users/factors/factors.ts'

interface NewCodes {
  readonly codes: readonly string[]
  readonly username: string
  /** Where the user goes on. */
  readonly next: { readonly href: string; readonly text: string }
  /** The first second step, with which they came. */
  readonly added?: Factor['kind'] | undefined
}

/** The scripts of a page with `renderRecoveryCodes`. */
export const CODE_SCRIPTS = ['copy.js', 'print.js'] as const

/** Shows new recovery codes, once. */
export function renderRecoveryCodes(context: AuthContext, { codes, username, next, added }: NewCodes): Html {
  const file = describeCodes(context, codes, username)
  return html`<div class="stack">${added && renderAdded(added, 'One thing is left: save your recovery codes.')}${renderAlert('Save these codes now.', 'They are not shown again.', 'warn')}
<p>If you lose your phone or passkey, you can still sign in with your password and one of these codes. Each code works once.</p>
<div class="card card__body stack"><div class="copy"><pre class="codes">${codes.join('\n')}</pre><button class="btn btn--quiet btn--small" type="button" data-copy hidden>Copy</button></div>
<div class="actions"><a class="btn btn--quiet btn--small" href="data:text/plain;charset=utf-8,${encodeURIComponent(file)}" download="recovery-codes.txt">Download as a text file</a><button class="btn btn--quiet btn--small" type="button" data-print hidden>Print</button></div></div>
<p>Keep them where only you can find them: on paper, or in a password manager.</p>
<p class="small muted">The codes have no digits 0 and 1: what looks like them is a letter.</p>
<div class="actions"><a class="btn" href="${next.href}">${next.text}</a></div></div>`
}

/** The file says what it is for, but not the password. */
function describeCodes(
  { brand, settings, clock }: AuthContext,
  codes: readonly string[],
  username: string,
): string {
  return [
    `Recovery codes for ${brand.name} (${new URL(settings.issuerUrl).host})`,
    `Username: ${username}`,
    `Made on ${formatDate(clock())}. Codes that you saved before no longer work.`,
    '',
    'Sign in with your password and one of these codes. Each code works once.',
    '',
    ...codes,
    '',
  ].join('\r\n')
}

export const ON = 'Two-step sign-in is on.'

const USES: Readonly<Record<Factor['kind'], string>> = {
  passkey:
    'Use the passkey to sign in without a password, or as the second step after it: your device asks for your fingerprint, face or PIN.',
  totp: 'When you sign in, enter the code that the app shows after your password.',
}

/** Says that a second step was added, and what it is for. */
export function renderAdded(kind: Factor['kind'], next = ''): Html {
  return html`<div role="status">${renderAlert(`${FACTOR_KINDS[kind]} added.`, `${ON} ${USES[kind]} ${next}`, 'ok')}</div>`
}

/** How many recovery codes a user has. */
export function describeCodesLeft(left: number): string {
  if (left === 0) return 'You have no recovery codes left'
  return left === 1 ? 'You have 1 recovery code left' : `You have ${left} recovery codes left`
}
