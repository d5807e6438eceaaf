import { type Html, html, renderAlert } from '../../../web/index.ts'

/** Shows new recovery codes, once: those of the first second step, or others. */
export function renderRecoveryCodes(
  codes: readonly string[],
  next: { readonly href: string; readonly text: string },
  { isFirst }: { readonly isFirst: boolean },
): Html {
  return html`<div class="stack">${isFirst && renderAlert(ON, 'Only the recovery codes are left to do.', 'ok')}${renderAlert('Save these codes now.', 'They are not shown again.', 'warn')}
<p>If you lose your phone or key, each of these codes signs you in once, with your password. Keep them where no one else can find them: in a password manager, or on paper. They have letters and the digits 2 to 7, but no 0 and no 1.</p>
<div class="card card__body"><div class="copy"><pre class="codes">${codes.join('\n')}</pre><button class="btn btn--quiet btn--small" type="button" data-copy hidden>Copy</button></div></div>
<div class="actions"><a class="btn" href="${next.href}">${next.text}</a></div></div>`
}

export const ON = 'Two-step sign-in is on.'

/** How many recovery codes a user has. */
export function describeCodesLeft(left: number): string {
  if (left === 0) return 'You have no recovery codes left'
  return left === 1 ? 'You have 1 recovery code left' : `You have ${left} recovery codes left`
}
