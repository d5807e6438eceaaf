import { html, renderBadge, renderDateTime } from '../../../web/ui/index.ts'
import type { AdminRoute } from '../page/route.ts'
import { readDone, renderActionTable, renderAdminPage, renderDangerLink, renderLink } from '../page/shell.ts'
import { type KeyDescription, listKeys } from './keys.ts'

/** `/admin/keys`: the signing keys. */
export const keyRoutes: readonly AdminRoute[] = [
  {
    method: 'GET',
    path: '/keys',
    async handle(request) {
      const keys = await listKeys(request.admin)
      const columns = ['Key', 'State', 'Created', 'Signs from', 'Retired']
      return renderAdminPage(
        request,
        {
          section: 'keys',
          title: 'Signing keys',
          lead: 'They sign access tokens and ID tokens. A key is published before it signs, and stays published until its last token has expired.',
          actions: request.mayChange ? renderLink('/keys/rotate', 'Rotate keys', 'btn') : undefined,
          done: readDone(request, DONE),
        },
        renderActionTable(request, 'Signing keys, newest first', columns, keys.map(renderKey)),
      )
    },
  },
]

const DONE: Readonly<Record<string, string>> = {
  rotated: 'A new key is published. In a few seconds, new tokens are signed with it.',
  withdrawn: 'The key is withdrawn.',
}

const STATES = {
  signs: renderBadge('Signs', 'ok'),
  next: renderBadge('Next', 'accent'),
  retired: renderBadge('Retired'),
} as const

function renderKey({ kid, state, created_at, signs_from, retired_at }: KeyDescription) {
  return [
    html`<code class="url">${kid}</code>`,
    STATES[state],
    renderDateTime(Date.parse(created_at)),
    renderDateTime(Date.parse(signs_from)),
    retired_at === undefined ? 'No' : renderDateTime(Date.parse(retired_at)),
    renderDangerLink(
      `/keys/${encodeURIComponent(kid)}/withdraw`,
      html`Withdraw<span class="sr"> ${kid}</span>`,
    ),
  ]
}
