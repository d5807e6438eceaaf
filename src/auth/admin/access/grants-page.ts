import type { FastifyReply } from 'fastify'
import { isFailure } from '../../../core/index.ts'
import {
  CSV_TYPE,
  formatCsvRow,
  type Html,
  html,
  renderAlert,
  renderDateTime,
  renderEmptyState,
} from '../../../web/ui/index.ts'
import { LIMITS } from '../../base/limits.ts'
import { paths } from '../../base/paths.ts'
import { opensRecords } from '../../base/user.ts'
import { summarizeScopes } from '../../words/scopes.ts'
import { type AdminFailure, failAdmin, recordAction } from '../base/action.ts'
import { findAccountIds, findApps } from '../base/find-named.ts'
import { defineArea } from '../subject/area.ts'
import { readCells, readCsv } from '../subject/columns.ts'
import { readUrlFilters, sendWrongFilters } from '../subject/list-page.ts'
import { findChoices, renderInput } from '../subject/page/filters.ts'
import {
  findMeantPatients,
  findPatientNames,
  isMistyped,
  type MeantPatients,
  namePatientField,
  type PatientNames,
  renderMeantPatients,
} from '../subject/page/find-patients.ts'
import { count, renderNextPage } from '../subject/page/list.ts'
import type { AdminRequest } from '../subject/page/route.ts'
import {
  type Cells,
  type Columns,
  LISTED,
  readDone,
  renderActionTable,
  renderAdminPage,
  renderDangerLink,
  renderLink,
} from '../subject/page/shell.ts'
import { ACCESS_COLUMNS, ANY_PATIENT, EXPORT_ACCESS, GRANT, GRANTS, renderScopes } from './access-list.ts'
import {
  countAccess,
  type GrantDescription,
  type GrantFilter,
  listGrants,
  listServices,
  type ServiceDescription,
} from './grants.ts'
import { findLastUse } from './last-use.ts'

export const REVOKED = 'The access is revoked.'

const PAGE = { section: 'access', title: 'Access now' } as const

/** `/admin/access`: who has access now. */
export const ACCESS_AREA = defineArea(GRANT, {
  routes: [
    { method: 'GET', path: '/access', handle: renderAccess },
    { method: 'GET', path: '/access/export.csv', handle: sendExport },
  ],
  operations: [EXPORT_ACCESS],
})

interface AccessView {
  readonly fields: Readonly<Record<'user' | 'app' | 'patient', string>>
  readonly filter: Omit<GrantFilter, 'after' | 'limit'>
  readonly meant: MeantPatients | undefined
  /** Backend services act for no user. */
  readonly services: readonly ServiceDescription[]
  /** Who of the filter is not known. */
  readonly unknown: readonly string[]
  /** Whether another spelling may be known: what was not looked up has none. */
  readonly isMistyped: boolean
}

async function readAccessView(request: AdminRequest): Promise<AccessView | AdminFailure> {
  const { admin, form } = request
  const wanted = readUrlFilters(request, GRANTS.filters)
  if (isFailure(wanted)) return wanted
  const read = (name: string) => form.get(name)?.trim().slice(0, LIMITS.searchCharacters) ?? ''
  const user = read('user')
  const app = read('app')
  const patient = read('patient')
  const apps = app === '' ? undefined : await findApps(admin.store, app)
  const opensEvery = patient === ANY_PATIENT || undefined
  const meant =
    patient === '' || opensEvery ? undefined : await findMeantPatients(request, 'patient-search', patient)
  const userIds = user === '' ? undefined : await findAccountIds(admin.store, user)
  const clientIds = apps?.filter
  return {
    fields: { user, app, patient },
    filter: { userIds, clientIds, opensEvery, patientIds: meant?.ids },
    meant,
    services: userIds === undefined ? await listServices(admin, { clientIds, usesFhir: patient !== '' }) : [],
    unknown: [
      ...(userIds?.length === 0 ? [`No user is known as ${user}.`] : []),
      ...(apps?.isUnknown ? [`No app is known as ${app}.`] : []),
      ...(meant?.found.length === 0 && meant.fault !== undefined ? [meant.fault] : []),
    ],
    isMistyped: meant === undefined || isMistyped(meant),
  }
}

function buildQuery({ fields }: AccessView, more: Readonly<Record<string, string>> = {}): string {
  const set = Object.entries({ ...fields, ...more }).filter(([, value]) => value !== '')
  return set.length === 0 ? '' : `?${new URLSearchParams(set)}`
}

async function renderAccess(request: AdminRequest): Promise<Html | FastifyReply> {
  const { admin, form, context } = request
  const view = await readAccessView(request)
  if (isFailure(view)) return sendWrongFilters(request, PAGE, view)
  const { fields, filter, meant, services } = view
  const page = await listGrants(admin, { ...filter, after: form.get('after'), limit: LISTED })
  const isEmpty = page.items.length === 0 && page.next === undefined
  const list = `?${request.request.url.split('?')[1] ?? ''}`
  const [choices, names] = await Promise.all([
    findChoices(context),
    findPatientNames(request, 'administration-names', listPatients(page.items), meant),
  ])
  return renderAdminPage(
    request,
    {
      ...PAGE,
      lead: 'Apps that can use records now, on behalf of a user or by themselves. Users see their own under Apps with access.',
      actions: renderLink(`/access/export.csv${buildQuery(view)}`, 'Export CSV', 'btn btn--quiet btn--small'),
      done: readDone(request, { revoked: REVOKED }),
    },
    html`<form class="narrow narrow__form" method="get" action="${paths.admin}/access" role="search" aria-label="Access">
${renderInput('user', 'User', fields.user, choices.users)}
${renderInput('app', 'App', fields.app, choices.apps)}
${renderInput('patient', namePatientField(request), fields.patient)}
<p class="narrow__act"><button class="btn btn--small">Show</button> ${renderLink('/access', 'Show all', 'btn btn--quiet btn--small')}</p>
</form>
${meant && renderMeantPatients(meant, patient => `/access${buildQuery(view, { patient })}`)}
${meant && isMistyped(meant) && renderNoteOnPatient(view)}
<h2 class="section__title subhead">On behalf of users</h2>
${page.items.length === 0 ? renderNone(isEmpty ? view : undefined, page.next !== undefined) : renderActionTable(request, ...tabulate(page.items, names, list))}
${page.next !== undefined && renderNextPage(request, '/access', page.next)}
${form.get('after') === undefined && (await renderServices(request, services))}`,
  )
}

/** Access to all patients of a user includes the one that was asked for. */
function renderNoteOnPatient(view: AccessView): Html {
  return html`<p class="small">Apps may also open this patient through ${renderLink(`/access${buildQuery(view, { patient: 'any' })}`, 'access to every patient whom a user may see')}.</p>`
}

async function renderServices(
  request: AdminRequest,
  services: readonly ServiceDescription[],
): Promise<Html | undefined> {
  if (services.length === 0) return undefined
  const rows = await Promise.all(
    services.map(async ({ clientId, clientName, scope }) => {
      const path = `/apps/${encodeURIComponent(clientId)}`
      const lastUse = await findLastUse(request.admin, clientId)
      return [
        renderLink(path, clientName),
        summarizeScopes(scope),
        renderScopes(scope),
        lastUse === undefined ? 'Never' : renderDateTime(lastUse),
        renderDangerLink(`${path}/disable`, html`Disable<span class="sr"> ${clientName}</span>`),
      ]
    }),
  )
  const columns = ['App', 'What it may do', 'Scopes', 'Last used']
  return html`<h2 class="section__title subhead">Without a user</h2>
<p class="small">Backend services and programs of this server. They have access until they are disabled.</p>
<div class="after">${renderActionTable(request, 'Apps that need no user', columns, rows)}</div>`
}

/** Downloads the filtered access, and records the export. */
async function sendExport(request: AdminRequest): Promise<FastifyReply | AdminFailure> {
  const { admin, reply } = request
  const view = await readAccessView(request)
  if (isFailure(view)) return view
  const { filter, services, unknown } = view
  if (unknown.length > 0) return failAdmin('filter-unknown', { faults: unknown.join(' ').replace(/\.$/, '') })
  const refused = await recordAction(admin, { operation: EXPORT_ACCESS, target: 'csv', after: filter })
  if (refused) return refused
  return reply.sendDownload('access.csv', CSV_TYPE, writeCsv(request, filter, services))
}

async function* writeCsv(
  { admin }: AdminRequest,
  filter: AccessView['filter'],
  services: AccessView['services'],
): AsyncGenerator<string> {
  const { heads, readRow } = readCsv(ACCESS_COLUMNS)
  yield formatCsvRow(heads)
  let after: string | undefined
  do {
    const page = await listGrants(admin, { ...filter, after, limit: LIMITS.adminPage })
    yield page.items.map(grant => formatCsvRow(readRow(grant))).join('')
    after = page.next
  } while (after !== undefined)
  yield services.map(service => formatCsvRow(readRow(service))).join('')
}

function renderNone(view: AccessView | undefined, mayFollow: boolean): Html {
  if (view && view.unknown.length > 0)
    return view.isMistyped
      ? renderAlert(
          'Unknown user, app or patient.',
          `${view.unknown.join(' ')} Check the spelling. Somebody may still have access.`,
          'warn',
        )
      : renderAlert('Not looked up.', `${view.unknown.join(' ')} Somebody may still have access.`, 'warn')
  return html`<div class="card">${renderEmptyState(
    mayFollow
      ? { title: 'None among the newest', text: 'Older access may match. See the next page.' }
      : { title: 'No app has access', text: 'No access that can be used now matches these filters.' },
  )}</div>`
}

/** Nobody asked for the patients of a user or an app: they have no names. */
const NO_NAMES: PatientNames = new Map()

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
  const hasNames = listPatients(page.items).length > 0 && opensRecords(request.login.user)
  return html`${renderActionTable(request, ...tabulate(page.items, NO_NAMES))}
${hasNames && html`<p class="small after">${renderLink(`/access?${new URLSearchParams({ user, app })}`, 'Show with the names of the patients')}</p>`}
${page.next !== undefined && html`<p class="actions after">${renderLink(`${path}?${new URLSearchParams({ grants: page.next })}`, 'Older access', 'btn btn--quiet btn--small')}</p>`}`
}

const { heads, renderRow } = readCells(ACCESS_COLUMNS)

/** `list`: the query of the list to which a revocation returns, with its question mark. */
function tabulate(
  items: readonly GrantDescription[],
  names: PatientNames,
  list?: string,
): readonly [caption: string, columns: Columns, rows: readonly Cells[]] {
  const rows = items.map(grant => [
    ...renderRow({ ...grant, names }),
    renderDangerLink(
      `/grants/${encodeURIComponent(grant.id)}/revoke${list === undefined ? '' : `?${new URLSearchParams({ list })}`}`,
      html`Revoke<span class="sr"> access of ${grant.clientName} for ${grant.username}</span>`,
    ),
  ])
  return ['Access of apps, newest first', heads, rows]
}

function listPatients(grants: readonly GrantDescription[]): readonly string[] {
  return grants.flatMap(({ patientId }) => patientId ?? [])
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
