import { isId } from '../../../fhir/index.ts'
import { type Html, html, renderAlert, renderDateTime, renderEmptyState } from '../../../web/index.ts'
import { createUserLookup } from '../../base/fhir-reader.ts'
import { LIMITS } from '../../base/limits.ts'
import { paths } from '../../base/paths.ts'
import { findAccountIds, findApps } from '../audit-who.ts'
import { ANY_PATIENT, countAccess, type GrantDescription, type GrantFilter, listGrants } from '../grants.ts'
import { findChoices, renderInput } from './filters.ts'
import { renderNextPage } from './list.ts'
import type { AdminRequest, AdminRoute } from './route.ts'
import { LISTED, readDone, renderAdminPage, renderDangerLink, renderLink, renderTable } from './shell.ts'

export const REVOKED = 'The access is revoked.'

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
      const apps = app === '' ? undefined : await findApps(admin.store, app)
      const filter = {
        userIds: user === '' ? undefined : await findAccountIds(admin.store, user),
        clientIds: apps?.filter,
        patientId: patient === '' ? undefined : patient,
      }
      const page = await listGrants(admin, { ...filter, after: form.get('after'), limit: LISTED })
      const isEmpty = page.items.length === 0 && page.next === undefined
      const unknown = isEmpty
        ? [
            ...(filter.userIds?.length === 0 ? [`No user is known as ${user}.`] : []),
            ...(apps?.isUnknown ? [`No app is known as ${app}.`] : []),
            ...(await describeUnknownPatient(request, filter.patientId)),
          ]
        : []
      const list = `?${request.request.url.split('?')[1] ?? ''}`
      const choices = await findChoices(context)
      return renderAdminPage(
        request,
        {
          section: 'access',
          title: 'Access now',
          lead: 'Apps that can use records on behalf of a user, newest first. Users see their own under Apps with access.',
          done: readDone(request, { revoked: REVOKED }),
        },
        html`<form class="narrow narrow__form" method="get" action="${paths.admin}/access" role="search" aria-label="Access">
${renderInput('user', 'User', user, choices.users)}
${renderInput('app', 'App', app, choices.apps)}
${renderInput('patient', 'Patient id', patient)}
<p class="narrow__act"><button class="btn btn--small">Show</button> ${renderLink('/access', 'Show all', 'btn btn--quiet btn--small')}</p>
</form>
${filter.patientId !== undefined && filter.patientId !== ANY_PATIENT && renderNoteOnPatient()}
<div class="after">${page.items.length === 0 ? renderNone(unknown, page.next !== undefined) : renderTable(...tabulate(page.items, list))}</div>
${page.next !== undefined && renderNextPage(request, '/access', page.next)}`,
      )
    },
  },
]

/** Access to all patients of a user includes the one that was asked for. */
function renderNoteOnPatient(): Html {
  return html`<p class="small">Apps may also open this patient through ${renderLink(`/access?patient=${ANY_PATIENT}`, 'access to every patient whom a user may see')}, and backend services by their own scopes, which ${renderLink('/apps', 'Apps')} shows.</p>`
}

/** Why the patient of the filter may not exist, if so. */
async function describeUnknownPatient(
  { context }: AdminRequest,
  id: string | undefined,
): Promise<readonly string[]> {
  if (id === undefined || id === ANY_PATIENT) return []
  const unknown = [`No patient is known as ${id}.`]
  if (!isId(id)) return unknown
  const read = await createUserLookup(context, 'Patient')
  const { kind } = await read.resource('Patient', id)
  if (kind === 'unavailable')
    return [`The FHIR server is unavailable, so it is not known whether there is a patient ${id}.`]
  return kind === 'absent' ? unknown : []
}

function renderNone(unknown: readonly string[], mayFollow: boolean): Html {
  if (unknown.length > 0)
    return renderAlert(
      'Unknown user, app or patient.',
      `${unknown.join(' ')} Check the spelling: this does not say that nobody has access.`,
      'warn',
    )
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

/** `list`: the query of the list to which a revocation returns, with its question mark. */
function tabulate(items: readonly GrantDescription[], list?: string): Parameters<typeof renderTable> {
  const columns = [
    'App',
    'User',
    'Patient',
    'Scopes',
    'Granted',
    'Last used',
    'Ends at the latest',
    { head: 'Action', isHidden: true },
  ]
  return ['Access of apps, newest first', columns, items.map(grant => renderGrant(grant, list))]
}

function renderGrant(grant: GrantDescription, list: string | undefined) {
  const { id, clientId, clientName, userId, username, scope, createdAt, lastUsedAt, endsAt } = grant
  return [
    renderLink(`/apps/${encodeURIComponent(clientId)}`, clientName),
    renderLink(`/clinicians/${encodeURIComponent(userId)}`, username),
    describePatient(grant),
    html`<details class="more"><summary>${countScopes(scope)}</summary><p class="url url--block">${scope}</p></details>`,
    renderDateTime(createdAt),
    renderDateTime(lastUsedAt),
    endsAt === undefined ? 'When it is revoked' : renderDateTime(endsAt),
    renderDangerLink(
      `/grants/${encodeURIComponent(id)}/revoke${list === undefined ? '' : `?${new URLSearchParams({ list })}`}`,
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
