import {
  formatDate,
  formatTime,
  type Html,
  html,
  type Person,
  renderAlert,
  renderBadge,
  renderDate,
  renderEmptyState,
  renderName,
  renderPage,
} from '../../web/index.ts'
import type { Client } from '../client/client.ts'
import { isPatientUser } from '../clinician/clinician.ts'
import { summarizeScopes } from '../consent/describe-scopes.ts'
import type { Login } from '../login/login.ts'
import { paths } from '../paths.ts'
import { renderAppIdentity, renderListedApp } from '../portal/apps.ts'
import { makeSignedInBar } from '../portal/page-parts.ts'
import type { AppAccess } from './access.ts'

export interface ManageOptions {
  readonly login: Login
  readonly sampleData: boolean
  readonly now: number
}

interface ManageView {
  readonly access: readonly AppAccess[]
  /** The patients whose names could be read, by id. */
  readonly names: ReadonlyMap<string, Person>
  readonly removed: Client | undefined
}

export function renderManagePage(
  { login, sampleData, now }: ManageOptions,
  { access, names, removed }: ManageView,
): Html {
  const offline = access.filter(({ endsAt }) => endsAt === undefined).length
  return renderPage(
    { title: 'Apps with access', bar: makeSignedInBar(login, 'manage'), sampleData },
    html`<div class="pagehead"><div><h1>Apps with access</h1>
<p class="pagehead__lead">${isPatientUser(login.clinician) ? 'Apps that you allowed to use a health record.' : 'Apps that use patient records on your behalf.'}${offline > 0 && ` ${describeCount(offline)} access while you are away.`}</p></div></div>
${removed && html`<div role="status">${renderAlert('Access removed.', `${removed.name} can no longer access any record.`, 'ok')}</div>`}
${access.length === 0 ? renderEmpty(login) : renderTable(access, names, now)}
${access.length > 0 && html`<p class="small muted after">Removal takes effect within seconds: the app’s requests are then refused. The app keeps the data that it has already read.</p>`}`,
  )
}

export function renderRemovePage({ login, sampleData }: ManageOptions, { client, scope }: AppAccess): Html {
  return renderPage(
    { title: `Remove ${client.name}`, bar: makeSignedInBar(login, 'manage'), sampleData, width: 'flow' },
    html`<div class="pagehead"><div><h1>Remove ${client.name}’s access?</h1>
<p class="pagehead__lead">Its requests will be refused. The app keeps the data that it has already read.</p></div></div>
<form class="card card__body stack" method="post" action="${paths.manageRemove}">
<input type="hidden" name="client" value="${client.id}">
<div>${renderAppIdentity(client)}</div>
<dl class="kv"><div><dt>Permissions</dt><dd>${summarizeScopes(scope)}</dd></div></dl>
<p>You can open the app again later${!isPatientUser(login.clinician) && ', from the patient list or from the app itself'}.</p>
<div class="actions"><button class="btn btn--danger">Remove access</button><a class="btn btn--quiet" href="${paths.manage}">Keep access</a></div>
</form>`,
  )
}

function describeCount(offline: number): string {
  return offline === 1 ? 'One of them keeps' : `${offline} of them keep`
}

function renderEmpty({ clinician }: Login): Html {
  return html`<div class="card">${renderEmptyState({
    title: 'No app has access',
    text: 'An app appears here after you launch it or allow it to use a record.',
    ...(!isPatientUser(clinician) && { action: { href: paths.portal, text: 'Go to patients' } }),
  })}</div>`
}

function renderTable(access: readonly AppAccess[], names: ManageView['names'], now: number): Html {
  const heads = ['App', 'Permissions', 'Records', 'Last used', 'Access ends']
  return html`<div class="card card--clip"><table class="table table--top table--stack apps" role="table">
<caption class="sr">Apps with access, last used first</caption>
<thead role="rowgroup"><tr role="row">${heads.map(head => html`<th role="columnheader" scope="col">${head}</th>`)}<th role="columnheader" scope="col"><span class="sr">Action</span></th></tr></thead>
<tbody role="rowgroup">${access.map(one => renderRow(one, names, now))}</tbody>
</table></div>`
}

function renderRow(
  { client, scope, patients, lastUsedAt, endsAt }: AppAccess,
  names: ManageView['names'],
  now: number,
): Html {
  return html`<tr role="row">
<th role="rowheader" scope="row">${renderListedApp(client)}</th>
<td role="cell" data-label="Permissions">${summarizeScopes(scope)}<details class="more"><summary>Exact scopes<span class="sr"> of ${client.name}</span></summary><p class="url url--block">${scope}</p></details></td>
<td role="cell" data-label="Records">${renderPatients(client, patients, names)}</td>
<td role="cell" data-label="Last used" class="nowrap">${renderTime(lastUsedAt, now)}</td>
<td role="cell" data-label="Access ends">${
    endsAt === undefined
      ? html`<span class="nowrap">Until you remove it</span> ${renderBadge('Works while you are away', 'warn')}`
      : html`<span class="nowrap">${renderTime(endsAt, now)}</span>`
  }</td>
<td role="cell"><a class="btn btn--danger btn--small" href="${paths.manageRemove}?client=${encodeURIComponent(client.id)}">Remove<span class="sr"> ${client.name}</span></a></td>
</tr>`
}

function renderPatients(client: Client, patients: AppAccess['patients'], names: ManageView['names']): Html {
  if (patients === 'every') return html`All you may see`
  if (patients.length === 0) return html`None`
  const count = patients.length === 1 ? '1 patient' : `${patients.length} patients`
  return html`<details class="more"><summary>${count}<span class="sr"> of ${client.name}</span></summary><ul>${patients.map(
    id => html`<li>${renderPatient(id, names.get(id))}</li>`,
  )}</ul></details>`
}

function renderPatient(id: string, person: Person | undefined): Html {
  return person
    ? html`${renderName(person.name)}<span class="sub">Born ${renderDate(person.born)}</span>`
    : html`FHIR id ${id}`
}

function renderTime(when: number, now: number): Html {
  return formatDate(when) === formatDate(now)
    ? html`Today ${formatTime(when, { withZone: true })}`
    : renderDate(when)
}
