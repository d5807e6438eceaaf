import { type Html, html, renderDateTime, renderEmptyState } from '../../../web/index.ts'
import { LIMITS } from '../../base/limits.ts'
import { paths } from '../../base/paths.ts'
import { findAccountIds, findApps } from '../audit-who.ts'
import { ANY_PATIENT, countAccess, type GrantDescription, type GrantFilter, listGrants } from '../grants.ts'
import { findChoices, renderInput } from './filters.ts'
import { renderNextPage } from './list.ts'
import type { AdminRequest, AdminRoute } from './route.ts'
import { LISTED, renderAdminPage, renderDangerLink, renderLink, renderTable } from './shell.ts'

/** `/admin/access`: who has access now. */
export const grantRoutes: readonly AdminRoute[] = [
  {
    method: 'GET',
    path: '/access',
    async handle(request) {
      const { admin, form, context } = request
      const read = (name: string) => form.get(name)?.trim().slice(0, LIMITS.searchCharacters) ?? ''
      const user = read('user')
      const app = read('app')
      const patient = read('patient').replace(/^Patient\//, '')
      const filter = {
        userIds: user === '' ? undefined : await findAccountIds(admin.store, user),
        clientIds: app === '' ? undefined : (await findApps(admin.store, app)).filter,
        patientId: patient === '' ? undefined : patient,
      }
      const page = await listGrants(admin, { ...filter, after: form.get('after'), limit: LISTED })
      const choices = await findChoices(context)
      return renderAdminPage(
        request,
        {
          section: 'access',
          title: 'Access now',
          lead: 'Apps that can use records on behalf of a user, newest first. Users see their own under Apps with access.',
        },
        html`<form class="narrow narrow__form" method="get" action="${paths.admin}/access" role="search" aria-label="Access">
${renderInput('user', 'User', user, choices.users)}
${renderInput('app', 'App', app, choices.apps)}
${renderInput('patient', 'Patient id', patient)}
<p class="narrow__act"><button class="btn btn--small">Show</button> ${renderLink('/access', 'Show all', 'btn btn--quiet btn--small')}</p>
</form>
${filter.patientId !== undefined && filter.patientId !== ANY_PATIENT && renderNoteOnPatient()}
<div class="after">${page.items.length === 0 ? renderNone(page.next !== undefined) : renderTable(...tabulate(page.items))}</div>
${page.next !== undefined && renderNextPage(request, '/access', page.next)}`,
      )
    },
  },
]

/** Access to all patients of a user includes the one that was asked for. */
function renderNoteOnPatient(): Html {
  return html`<p class="small">Apps may also open this patient through ${renderLink(`/access?patient=${ANY_PATIENT}`, 'access to every patient whom a user may see')}, and backend services by their own scopes, which ${renderLink('/apps', 'Apps')} shows.</p>`
}

function renderNone(mayFollow: boolean): Html {
  return html`<div class="card">${renderEmptyState(
    mayFollow
      ? { title: 'None among the newest', text: 'Older access may match. See the next page.' }
      : { title: 'No app has access', text: 'No access that can be used now matches these filters.' },
  )}</div>`
}

/** The access of apps on behalf of a user, or of users to an app, on the page at this path. */
export async function renderGrants(
  { admin, form }: AdminRequest,
  filter: Pick<GrantFilter, 'clientIds' | 'userIds'>,
  path: string,
): Promise<Html> {
  const page = await listGrants(admin, { ...filter, after: form.get('grants'), limit: LISTED })
  if (page.items.length === 0 && page.next === undefined)
    return html`<p>${filter.userIds === undefined ? 'No user gives this app access at present.' : 'No app has access now.'} Access appears here after a user launches an app or allows it to use a record.</p>`
  return html`${renderTable(...tabulate(page.items))}
${page.next !== undefined && html`<p class="actions after">${renderLink(`${path}?${new URLSearchParams({ grants: page.next })}`, 'Older access', 'btn btn--quiet btn--small')}</p>`}`
}

function tabulate(items: readonly GrantDescription[]): Parameters<typeof renderTable> {
  const columns = [
    'App',
    'User',
    'Patient',
    'Scopes',
    'Last used',
    'Ends at the latest',
    { head: 'Action', isHidden: true },
  ]
  return ['Access of apps, newest first', columns, items.map(renderGrant)]
}

function renderGrant(grant: GrantDescription) {
  const { id, clientId, clientName, userId, username, scope, lastUsedAt, endsAt } = grant
  return [
    renderLink(`/apps/${encodeURIComponent(clientId)}`, clientName),
    renderLink(`/clinicians/${encodeURIComponent(userId)}`, username),
    describePatient(grant),
    html`<details class="more"><summary>${countScopes(scope)}</summary><p class="url url--block">${scope}</p></details>`,
    renderDateTime(lastUsedAt),
    endsAt === undefined ? 'When it is revoked' : renderDateTime(endsAt),
    renderDangerLink(
      `/grants/${encodeURIComponent(id)}/revoke`,
      html`Revoke<span class="sr"> access of ${clientName} for ${username}</span>`,
    ),
  ]
}

function describePatient({ patientId, opensEvery }: GrantDescription): string {
  if (patientId === undefined) return opensEvery ? 'Any' : 'None'
  return opensEvery ? `${patientId}, and any other` : patientId
}

/** What a change of an app or a user ends, for its confirmation. */
export async function describeEnding(
  { admin }: AdminRequest,
  filter: Pick<GrantFilter, 'clientIds' | 'userIds'>,
): Promise<readonly [string, string]> {
  const { grants, apps, users, isCut } = await countAccess(admin, filter)
  const [others, noun] = filter.userIds === undefined ? [users, 'user'] : [apps, 'app']
  if (grants === 0) return ['Access that ends', isCut ? 'Unknown' : 'None: no app has access now']
  const counted = `${count(grants, 'grant')} of ${count(others, noun)}`
  return ['Access that ends', isCut ? `More than ${counted}` : counted]
}

function count(number: number, noun: string): string {
  return `${number.toLocaleString('en')} ${noun}${number === 1 ? '' : 's'}`
}

function countScopes(scope: string): string {
  const count = scope.split(' ').length
  return count === 1 ? '1 scope' : `${count} scopes`
}
