import { formatCount } from '../../../core/index.ts'
import { type Html, html } from '../../../web/ui/index.ts'
import { opensRecords } from '../../base/user.ts'
import { renderRows } from '../subject/list-page.ts'
import type { AdminRequest } from '../subject/page/route.ts'
import { LISTED, renderButton, renderLink } from '../subject/page/shell.ts'
import { ACCESS_COLUMNS, CAPTION, renderRevoke } from './access-list.ts'
import { countAccess, type GrantDescription, type GrantFilter, listGrants } from './grants.ts'

/** The access of apps on behalf of a user, or of users to an app, on the page at this path. */
export async function renderGrants(
  request: AdminRequest,
  filter: Pick<GrantFilter, 'clientIds' | 'userIds'>,
  path: string,
): Promise<Html> {
  const { admin, form } = request
  const page = await listGrants(admin, { ...filter, after: form.get('grants'), limit: LISTED })
  if (page.items.length === 0 && page.next === undefined)
    return html`<p>${filter.userIds === undefined ? 'No user gives this app access at present.' : 'No app has access now.'} Access appears here after a user launches an app or allows it to use a record.</p>`
  const { userIds: [user = ''] = [], clientIds: [app = ''] = [] } = filter
  const hasPatients = page.items.some(({ patientId }) => patientId !== undefined)
  const table = {
    columns: ACCESS_COLUMNS,
    caption: CAPTION,
    renderAction: (access: GrantDescription) => renderRevoke(access),
  }
  return html`${renderRows(request, table, page.items)}
${hasPatients && opensRecords(request.login.user) && html`<p class="small after">${renderLink(`/access?${new URLSearchParams({ user, app })}`, 'Show with the names of the patients')}</p>`}
${page.next !== undefined && html`<p class="actions after">${renderButton(`${path}?${new URLSearchParams({ grants: page.next })}`, 'Older access')}</p>`}`
}

/** What a change of an app or a user ends, for its confirmation. */
export async function describeEnding(
  { admin }: AdminRequest,
  filter: Pick<GrantFilter, 'clientIds' | 'userIds'>,
): Promise<readonly [string, string]> {
  const { grants, apps, users, isCut } = await countAccess(admin, filter)
  const [others, noun] = filter.userIds === undefined ? [users, 'user'] : [apps, 'app']
  if (grants === 0) return ['Access that ends', isCut ? 'Unknown' : 'None: no app has access now']
  const counted = `${formatCount(grants, 'grant')} of ${formatCount(others, noun)}`
  return ['Access that ends', isCut ? `More than ${counted}` : counted]
}
