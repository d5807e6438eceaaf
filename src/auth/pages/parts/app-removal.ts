import { type Html, html, renderDanger } from '../../../web/ui/index.ts'
import { paths } from '../../base/paths.ts'
import type { Client } from '../../oauth/clients/client.ts'

/** The link to the page that ends the access of an app. */
export function renderRemoval(client: Client): Html {
  const text = html`End access<span class="sr"> of ${client.name}</span>`
  return renderDanger(text, { href: buildRemovalUrl(client), size: 'small' })
}

export function buildRemovalUrl({ id }: Client, patient?: string): string {
  return `${paths.manageRemove}?${new URLSearchParams({ client: id, ...(patient !== undefined && { patient }) })}`
}
