import { html } from '../../../web/ui/index.ts'
import { readCells } from '../subject/columns.ts'
import type { AdminRoute } from '../subject/page/route.ts'
import {
  readDone,
  renderActionTable,
  renderAdminPage,
  renderDangerLink,
  renderLink,
} from '../subject/page/shell.ts'
import { KEYS, type KeyDescription, listKeys } from './keys.ts'

/** `/admin/keys`: the signing keys. */
export const keyRoutes: readonly AdminRoute[] = [
  {
    method: 'GET',
    path: '/keys',
    async handle(request) {
      const keys = await listKeys(request.admin)
      return renderAdminPage(
        request,
        {
          section: 'keys',
          title: 'Signing keys',
          lead: 'They sign access tokens and ID tokens. A key is published before it signs, and stays published until its last token has expired.',
          actions: request.mayChange ? renderLink('/keys/rotate', 'Rotate keys', 'btn') : undefined,
          done: readDone(request, DONE),
        },
        renderActionTable(request, 'Signing keys, newest first', heads, keys.map(renderKey)),
      )
    },
  },
]

const DONE: Readonly<Record<string, string>> = {
  rotated: 'A new key is published. In a few seconds, new tokens are signed with it.',
  withdrawn: 'The key is withdrawn.',
}

const { heads, renderRow } = readCells(KEYS.columns)

function renderKey(key: KeyDescription) {
  const path = `/keys/${encodeURIComponent(key.kid)}/withdraw`
  return [...renderRow(key), renderDangerLink(path, html`Withdraw<span class="sr"> ${key.kid}</span>`)]
}
