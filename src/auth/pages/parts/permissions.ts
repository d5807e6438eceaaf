import { type Html, html } from '../../../web/ui/index.ts'
import type { Client } from '../../oauth/clients/client.ts'
import { summarizeScopes } from '../../words/scopes.ts'

/** The permissions in words, and the exact scopes on demand. */
export function renderPermissions(
  { name }: Client,
  scope: string,
  {
    summary = summarizeScopes(scope),
    details = 'Exact scopes',
  }: { readonly summary?: string | undefined; readonly details?: string | undefined } = {},
): Html {
  return html`${summary}<details class="more"><summary>${details}<span class="sr"> of ${name}</span></summary><p class="url url--block">${scope}</p></details>`
}
