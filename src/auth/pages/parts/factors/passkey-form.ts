import { type Html, html, renderHidden } from '../../../../web/ui/index.ts'
import type { PasskeyRequest } from '../../../users/factors/passkeys.ts'

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
