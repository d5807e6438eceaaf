import type { Kysely } from 'kysely'
import { parseScopes } from '../../../smart/index.ts'
import type { Schema } from '../../../store/index.ts'
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
} from '../../../web/index.ts'
import { LIFETIME, LIMITS } from '../../base/limits.ts'
import { paths } from '../../base/paths.ts'
import { isPatientUser } from '../../base/user.ts'
import { type Client, findClient } from '../../oauth/clients/client.ts'
import type { AuthContext } from '../../oauth/context.ts'
import {
  findLatestEnd,
  type GrantRow,
  hasScope,
  keepGoodGrants,
  selectGrants,
} from '../../oauth/grants/grant.ts'
import type { Login } from '../../users/find-login.ts'
import { summarizeScopes } from '../consent/describe-scopes.ts'
import { makeSignedInBar } from '../page-parts.ts'
import { renderAppIdentity, renderListedApp } from '../portal/apps.ts'

/** The access of an app on behalf of a clinician, from all its grants. */
export interface AppAccess {
  readonly client: Client
  /** The scopes of all grants. */
  readonly scope: string
  /** The ids of the patients, last used first; `every` with `user/` scopes. */
  readonly patients: readonly string[] | 'every'
  readonly lastUsedAt: number
  /** Undefined: until the clinician removes it. */
  readonly endsAt: number | undefined
}

/** Finds the apps with current access on behalf of this clinician, last used first. */
export async function findAccess(
  context: Pick<AuthContext, 'store' | 'rules' | 'clock' | 'settings'>,
  userId: string,
): Promise<readonly AppAccess[]> {
  const { store, clock, settings } = context
  const now = clock()
  const grants = (await findGrants(context, userId)).flatMap(grant => {
    const endsAt = findEnd(grant, settings.accessTokenTtlSeconds * 1000)
    return endsAt === undefined || endsAt > now ? [{ ...grant, endsAt }] : []
  })
  const byClient = [...Map.groupBy(grants, grant => grant.client_id)]
  const all = await Promise.all(
    byClient.map(async ([id, some]) => {
      const client = await findClient(store.db, context, id)
      return client && summarizeAccess(client, some)
    }),
  )
  return all.filter(access => access !== undefined).toSorted((a, b) => b.lastUsedAt - a.lastUsedAt)
}

/** Revokes all grants of an app at once. False if there were none. */
export async function removeAccess(
  db: Kysely<Schema>,
  { userId, clientId, now }: { readonly userId: string; readonly clientId: string; readonly now: number },
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('grant')
    .set({ revoked_at: now })
    .where('clinician_id', '=', userId)
    .where('client_id', '=', clientId)
    .where('revoked_at', 'is', null)
    .executeTakeFirst()
  return numUpdatedRows > 0n
}

async function findGrants(
  { store: { db }, rules, clock }: Pick<AuthContext, 'store' | 'rules' | 'clock'>,
  userId: string,
): Promise<readonly GrantRow[]> {
  const rows = await selectGrants(db)
    .where('grant.clinician_id', '=', userId)
    .where('revoked_at', 'is', null)
    .where(({ eb, or }) =>
      or([eb('login.expires_at', '>', clock()), eb('last_used_at', '>', clock() - LIFETIME.offlineRefresh)]),
    )
    .orderBy('last_used_at', 'desc')
    .execute()
  return keepGoodGrants(db, rules, rows, clock())
}

/** When a grant ends: never, with the login, or with its last access token. */
function findEnd(grant: GrantRow, accessTokenTtlMs: number): number | undefined {
  const login = findLatestEnd(grant)
  if (login === undefined) return undefined
  return hasScope(grant.scope, 'online_access')
    ? login
    : Math.min(login, grant.last_used_at + accessTokenTtlMs)
}

function summarizeAccess(
  client: Client,
  grants: readonly (GrantRow & { endsAt: number | undefined })[],
): AppAccess {
  const scope = [...new Set(grants.flatMap(grant => grant.scope.split(' ')))].join(' ')
  const ends = grants.flatMap(({ endsAt }) => endsAt ?? [])
  return {
    client,
    scope,
    patients: coversEveryPatient(scope)
      ? 'every'
      : [...new Set(grants.flatMap(grant => grant.patient_id ?? []))],
    lastUsedAt: grants[0]?.last_used_at ?? 0,
    endsAt: ends.length < grants.length ? undefined : ends.reduce((last, end) => Math.max(last, end), 0),
  }
}

function coversEveryPatient(scope: string): boolean {
  return parseScopes(scope).some(one => one.kind === 'resource' && one.context === 'user')
}

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
<p class="pagehead__lead">${isPatientUser(login.user) ? 'Apps that you allowed to use a health record.' : 'Apps that use patient records on your behalf.'}${offline > 0 && ` ${describeCount(offline)} access while you are away.`}</p></div></div>
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
<p>You can open the app again later${!isPatientUser(login.user) && ', from the patient list or from the app itself'}.</p>
<div class="actions"><button class="btn btn--danger">Remove access</button><a class="btn btn--quiet" href="${paths.manage}">Keep access</a></div>
</form>`,
  )
}

function describeCount(offline: number): string {
  return offline === 1 ? 'One of them keeps' : `${offline} of them keep`
}

function renderEmpty({ user }: Login): Html {
  return html`<div class="card">${renderEmptyState({
    title: 'No app has access',
    text: 'An app appears here after you launch it or allow it to use a record.',
    ...(!isPatientUser(user) && { action: { href: paths.portal, text: 'Go to patients' } }),
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
  const listed = patients.slice(0, LIMITS.patientsListed)
  const others = patients.length - listed.length
  return html`<details class="more"><summary>${count}<span class="sr"> of ${client.name}</span></summary><ul>${listed.map(
    id => html`<li>${renderPatient(id, names.get(id))}</li>`,
  )}${others > 0 && html`<li>${others === 1 ? '1 other' : `${others} others`}, used earlier</li>`}</ul></details>`
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
