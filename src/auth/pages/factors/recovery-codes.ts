import { type Html, html, renderAlert } from '../../../web/index.ts'

/** Shows new recovery codes, once. */
export function renderRecoveryCodes(
  codes: readonly string[],
  next: { readonly href: string; readonly text: string },
): Html {
  return html`<div class="stack">${renderAlert('Save these codes now.', 'They are not shown again.', 'warn')}
<p>If you lose your phone or key, each of these codes signs you in once, with your password. Keep them where no one else can find them: in a password manager, or printed.</p>
<div class="card card__body"><div class="copy"><pre class="codes">${codes.join('\n')}</pre><button class="btn btn--quiet btn--small" type="button" data-copy hidden>Copy</button></div></div>
<div class="actions"><a class="btn" href="${next.href}">${next.text}</a></div></div>`
}

/** How many recovery codes a user has. */
export function describeCodesLeft(left: number): string {
  if (left === 0) return 'You have no recovery codes left'
  return left === 1 ? 'You have 1 recovery code left' : `You have ${left} recovery codes left`
}
