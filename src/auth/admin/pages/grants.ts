import { isFailure } from '../../../core/index.ts'
import { type Html, html, renderDateTime } from '../../../web/index.ts'
import { type GrantDescription, type GrantFilter, listGrants } from '../grants.ts'
import type { AdminRequest } from './route.ts'
import { LISTED, renderDangerLink, renderLink, renderTable } from './shell.ts'

/** The access of apps on behalf of a user, or of users to an app, on the page at this path. */
export async function renderGrants(
  { admin, form }: AdminRequest,
  filter: Pick<GrantFilter, 'clientId' | 'userId'>,
  path: string,
): Promise<Html> {
  const page = await listGrants(admin, { ...filter, after: form.get('grants'), limit: LISTED })
  if (isFailure(page)) return html`<p>${page.sentence}</p>`
  if (page.items.length === 0 && page.next === undefined)
    return html`<p>${filter.userId === undefined ? 'No user gives this app access at present.' : 'No app has access now.'} Access appears here after a user launches an app or allows it to use a record.</p>`
  const columns = [
    'App',
    'User',
    'Patient',
    'Scopes',
    'Last used',
    'Ends at the latest',
    { head: 'Action', isHidden: true },
  ]
  return html`${renderTable('Access of apps, newest first', columns, page.items.map(renderGrant))}
${page.next !== undefined && html`<p class="actions after">${renderLink(`${path}?${new URLSearchParams({ grants: page.next })}`, 'Older access', 'btn btn--quiet btn--small')}</p>`}`
}

function renderGrant({
  id,
  clientId,
  clientName,
  userId,
  username,
  patientId,
  scope,
  lastUsedAt,
  endsAt,
}: GrantDescription) {
  return [
    renderLink(`/apps/${encodeURIComponent(clientId)}`, clientName),
    renderLink(`/clinicians/${encodeURIComponent(userId)}`, username),
    patientId ?? 'Any',
    html`<details class="more"><summary>${countScopes(scope)}</summary><p class="url url--block">${scope}</p></details>`,
    renderDateTime(lastUsedAt),
    endsAt === undefined ? 'When it is revoked' : renderDateTime(endsAt),
    renderDangerLink(
      `/grants/${encodeURIComponent(id)}/revoke`,
      html`Revoke<span class="sr"> access of ${clientName} for ${username}</span>`,
    ),
  ]
}

function countScopes(scope: string): string {
  const count = scope.split(' ').length
  return count === 1 ? '1 scope' : `${count} scopes`
}
