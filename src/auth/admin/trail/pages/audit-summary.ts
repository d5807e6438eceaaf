import type { KeptRecord } from '../../../../audit/index.ts'
import { formatCount } from '../../../../core/index.ts'
import { PORTAL_CLIENT } from '../../../../smart/index.ts'
import { type Html, html, renderBadge, renderMoment } from '../../../../web/ui/index.ts'
import { ACCESS_KINDS } from '../../../pages/parts/access-log/visits.ts'
import { describeApp, type KnownNames } from '../../../pages/parts/explain/describe.ts'
import type { ShownList } from '../../subject/list.ts'
import { type PatientNames, renderPatient } from '../../subject/page/find-patients.ts'
import { type Cells, type Columns, renderLink, renderTable } from '../../subject/page/shell.ts'
import type { AccessRow, AccessSummary, AccessUse } from '../audit-summary.ts'
import { describeUser } from '../describe-record.ts'

/** The list of records that is summarized. */
interface Listed extends Pick<ShownList, 'buildPath'> {
  readonly names: KnownNames
  readonly patients: PatientNames
}

/** People and apps that are shown of each use in a summary. */
const SUMMARIZED = 20

/** Who looked at each patient, and the way to the records and to what can still be used. */
export function renderSummaries(
  summaries: ReadonlyMap<string, AccessSummary>,
  page: Listed,
): Html | undefined {
  const used = [...summaries].filter(([, { accesses }]) => accesses.length > 0)
  if (used.length === 0) return undefined
  return html`<h2 class="section__title subhead">Who got data</h2>
${used.map(
  ([id, summary]) =>
    html`<h3 class="subhead">${renderPatient(id, page.patients)}</h3>${renderSummary(summary, {
      ...page,
      buildPath: filters => page.buildPath({ patient: `Patient/${id}`, ...filters }),
    })}`,
)}
<h2 class="section__title subhead">Records</h2>`
}

function renderSummary(summary: AccessSummary, page: Listed): Html {
  const { accesses, isCut } = summary
  const of = (use: AccessUse) => accesses.filter(access => access.use === use)
  const render = (caption: string, some: readonly AccessRow[]) => {
    const rows = some.slice(0, SUMMARIZED).map(access => renderAccess(access, summary, page))
    const more = some.length - SUMMARIZED
    return html`${renderTable(caption, ACCESS_COLUMNS, rows)}${more > 0 && html`<p class="small muted">${more} more are not shown. Choose days to narrow it.</p>`}`
  }
  const fold = (text: string, some: readonly AccessRow[]) =>
    some.length > 0 &&
    html`<details class="more after"><summary>${text}: ${formatCount(sum(some), 'request')}</summary>${render(`${text}, most recent first`, some)}</details>`
  const opened = of('opened')
  return html`${opened.length === 0 ? html`<p>Nobody opened the record.</p>` : render('Who opened the record, most recent first', opened)}
${fold('Appeared in a list', of('list'))}
${fold('Looked up in the administration', of('lookup'))}
${fold('Read by the server for itself, for example to find out who may open the record', of('server'))}
${isCut && html`<p class="small muted">Only the newest 5,000 records are counted. Choose days to narrow it.</p>`}`
}

const ACCESS_COLUMNS: Columns = [
  ...['Who', 'App', 'From', 'Requests', 'Last'],
  { head: 'Links', isHidden: true },
]

function sum(accesses: readonly AccessRow[]): number {
  return accesses.reduce((total, { requests }) => total + requests, 0)
}

function renderAccess(
  { record, workstation, requests, hasChanged, firstAt }: AccessRow,
  { existing }: AccessSummary,
  { buildPath, names }: Listed,
): Cells {
  const user = record.subject ?? record.fhir_user ?? ''
  const app = record.client_id ?? ''
  const who = describeUser(record, names) ?? 'Unknown'
  const hasUser = user !== '' && user !== app
  return [
    hasUser ? who : 'No user',
    html`${app === '' ? '–' : describeApp(record, names)}${hasChanged && html` ${renderBadge(ACCESS_KINDS.changed, 'warn')}`}`,
    renderOrigin(record, workstation),
    requests.toLocaleString('en'),
    html`${renderMoment(record.at)}${firstAt < record.at && html`<span class="sub">First ${renderMoment(firstAt)}</span>`}`,
    html`<span class="actions">${renderLink(buildPath({ user, app }), html`Records<span class="sr"> of ${who}</span>`)}${renderAccessNow(record, existing, who)}</span>`,
  ]
}

/** An app's server makes the requests of its browsers. */
function renderOrigin({ address }: KeptRecord, workstation: string | undefined): Html | string {
  if (workstation === undefined || workstation === address) return address ?? '–'
  return html`${workstation}<span class="sub">Requests from ${address ?? 'an unknown address'}</span>`
}

/** What can still be used, and ended: the portal has no access of its own, only the sign-ins of its users. */
function renderAccessNow(
  { subject, client_id: app }: KeptRecord,
  existing: AccessSummary['existing'],
  who: string,
): Html | undefined {
  const user = subject !== null && subject !== app ? subject : undefined
  if (user !== undefined && !existing.has(user)) return undefined
  const of = html`<span class="sr"> of ${who}</span>`
  if (app === PORTAL_CLIENT)
    return user === undefined
      ? undefined
      : renderLink(`/clinicians/${encodeURIComponent(user)}#sign-ins`, html`Sign-ins now${of}`)
  if (app === null || !existing.has(app)) return undefined
  const query = new URLSearchParams({ ...(user !== undefined && { user }), app })
  return renderLink(`/access?${query}`, html`Access now${of}`)
}
