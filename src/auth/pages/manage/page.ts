import type { Kysely } from 'kysely'
import { parseScopes } from '../../../smart/index.ts'
import type { Schema } from '../../../store/index.ts'
import {
  type Html,
  html,
  type Person,
  renderAlert,
  renderBadge,
  renderDanger,
  renderDate,
  renderDateTime,
  renderEmptyState,
  renderFacts,
  renderHidden,
  renderName,
  renderPageHead,
  renderTable,
} from '../../../web/index.ts'
import { LIFETIME, LIMITS } from '../../base/limits.ts'
import { paths } from '../../base/paths.ts'
import { isPatientUser } from '../../base/user.ts'
import { type Client, findClient } from '../../oauth/clients/client.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { hasScope, keepUsableGrants, selectGrants, type UsableGrant } from '../../oauth/grants/grant.ts'
import type { Login } from '../../users/find-login.ts'
import { summarizeScopes } from '../consent/texts.ts'
import { renderSignedInPage } from '../page-parts.ts'
import { renderAppIdentity, renderListedApp } from '../portal/apps.ts'

/** The access of an app on behalf of a user, from all its grants. */
export interface AppAccess {
  readonly client: Client
  /** The scopes of all grants. */
  readonly scope: string
  /** The ids of the patients, last used first; `every` with `user/` scopes. */
  readonly patients: readonly string[] | 'every'
  readonly lastUsedAt: number
  /** Undefined: until the user ends it. */
  readonly endsAt: number | undefined
  /** Whether it goes on after the sign-in. */
  readonly isOffline: boolean
}

/** Finds the apps with current access on behalf of this user, last used first. */
export async function findAccess(context: AuthContext, userId: string): Promise<readonly AppAccess[]> {
  const grants = await findGrants(context, userId)
  const all = [...Map.groupBy(grants, grant => grant.client_id)].map(async ([id, ofClient]) => {
    const client = await findClient(context.store.db, context, id)
    return client && summarizeAccess(client, ofClient)
  })
  return (await Promise.all(all))
    .filter(access => access !== undefined)
    .toSorted((a, b) => b.lastUsedAt - a.lastUsedAt)
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
): Promise<readonly UsableGrant[]> {
  const rows = await selectGrants(db)
    .where('grant.clinician_id', '=', userId)
    .where('revoked_at', 'is', null)
    .where(({ eb, or }) =>
      or([eb('login.expires_at', '>', clock()), eb('last_used_at', '>', clock() - LIFETIME.offlineRefresh)]),
    )
    .orderBy('last_used_at', 'desc')
    .execute()
  return keepUsableGrants(db, rules, rows, clock())
}

function summarizeAccess(client: Client, grants: readonly UsableGrant[]): AppAccess {
  const scope = [...new Set(grants.flatMap(grant => grant.scope.split(' ')))].join(' ')
  const ends = grants.flatMap(({ ends_at }) => ends_at ?? [])
  return {
    client,
    scope,
    patients: coversEveryPatient(scope)
      ? 'every'
      : [...new Set(grants.flatMap(grant => grant.patient_id ?? []))],
    lastUsedAt: grants[0]?.last_used_at ?? 0,
    endsAt: ends.length < grants.length ? undefined : ends.reduce((last, end) => Math.max(last, end), 0),
    isOffline: hasScope(scope, 'offline_access'),
  }
}

function coversEveryPatient(scope: string): boolean {
  return parseScopes(scope).some(part => part.kind === 'resource' && part.context === 'user')
}

interface ManageView {
  readonly access: readonly AppAccess[]
  /** The patients whose names could be read, by id. */
  readonly names: ReadonlyMap<string, Person>
  readonly removed: Client | undefined
}

export function renderManagePage(context: AuthContext, login: Login, view: ManageView): Html {
  const { access, names, removed } = view
  const offline = access.filter(({ isOffline }) => isOffline).length
  return renderSignedInPage(
    context,
    login,
    { title: 'Apps with access', current: 'manage', people: [...names.values()] },
    html`${renderPageHead(
      'Apps with access',
      html`${isPatientUser(login.user) ? 'Apps that you allowed to use a health record.' : 'Apps that use patient records on your behalf.'}${offline > 0 && ` ${describeCount(offline)} access while you are away.`}`,
    )}
${removed && html`<div role="status">${renderAlert('Access ended.', `${removed.name} can no longer use any record on your behalf.`, 'ok')}</div>`}
<div class="card${access.length > 0 && ' card--clip'}">${access.length === 0 ? renderEmpty(login) : renderAccess(view)}</div>
${access.length > 0 && html`<p class="small muted after">When you end the access of an app, its requests are refused within seconds. The app keeps the data that it has already read.</p>`}`,
  )
}

export function renderRemovePage(
  context: AuthContext,
  login: Login,
  { client, scope, patients }: AppAccess,
  names: ManageView['names'],
): Html {
  return renderSignedInPage(
    context,
    login,
    { title: `End access of ${client.name}`, current: 'manage', width: 'flow' },
    html`${renderPageHead(`End ${client.name}’s access?`, 'Its requests will be refused. The app keeps the data that it has already read.')}
<form class="card card__body stack" method="post" action="${paths.manageRemove}">
${renderHidden({ client: client.id })}
<div>${renderAppIdentity(client)}</div>
${renderFacts([
  ['Permissions', summarizeScopes(scope)],
  ['Records', renderPatients(client, patients, names, true)],
])}
<p>You can open the app again later${!isPatientUser(login.user) && ', from the patient list or from the app itself'}.</p>
<div class="actions">${renderDanger('End access')}<a class="btn btn--quiet" href="${paths.manage}">Keep access</a></div>
</form>`,
  )
}

function describeCount(offline: number): string {
  return offline === 1 ? 'One of them keeps' : `${offline} of them keep`
}

function renderEmpty({ user }: Login): Html {
  return renderEmptyState({
    title: 'No app has access',
    text: 'An app appears here after you launch it or allow it to use a record.',
    ...(!isPatientUser(user) && { action: { href: paths.portal, text: 'Go to patients' } }),
  })
}

function renderAccess({ access, names }: ManageView): Html {
  return renderTable(
    {
      caption: 'Apps with access, last used first',
      kind: 'table--top table--stack apps',
      columns: [
        'App',
        'Permissions',
        'Records',
        { head: 'Last used', isNowrap: true },
        'Access ends',
        { head: 'Action', isHidden: true },
      ],
    },
    access.map(({ client, scope, patients, lastUsedAt, endsAt, isOffline }) => [
      renderListedApp(client),
      renderPermissions(client, scope),
      renderPatients(client, patients, names),
      renderDateTime(lastUsedAt),
      html`<span class="nowrap">${endsAt === undefined ? 'When you end it' : renderDateTime(endsAt)}</span>${isOffline && html` ${renderBadge('Works while you are away', 'warn')}`}`,
      renderRemoval(client),
    ]),
  )
}

/** The link to the page that ends the access of an app. */
export function renderRemoval({ id, name }: Client): Html {
  const text = html`End access<span class="sr"> of ${name}</span>`
  return renderDanger(text, { href: `${paths.manageRemove}?client=${encodeURIComponent(id)}`, size: 'small' })
}

/** The permissions in words, and the exact scopes on demand. */
export function renderPermissions({ name }: Client, scope: string): Html {
  return html`${summarizeScopes(scope)}<details class="more"><summary>Exact scopes<span class="sr"> of ${name}</span></summary><p class="url url--block">${scope}</p></details>`
}

function renderPatients(
  client: Client,
  patients: AppAccess['patients'],
  names: ManageView['names'],
  isOpen = false,
): Html {
  if (patients === 'every') return html`All you may see`
  if (patients.length === 0) return html`None`
  const count = `${patients.length} records`
  const [only] = patients
  if (only !== undefined && patients.length === 1) return renderPatient(only, names.get(only))
  const listed = patients.slice(0, LIMITS.patientsListed)
  const others = patients.length - listed.length
  return html`<details class="more"${isOpen && html` open`}><summary>${count}<span class="sr"> of ${client.name}</span></summary><ul>${listed.map(
    id => html`<li>${renderPatient(id, names.get(id))}</li>`,
  )}${others > 0 && html`<li>${others === 1 ? '1 other' : `${others} others`}, used earlier</li>`}</ul></details>`
}

function renderPatient(id: string, person: Person | undefined): Html {
  return person
    ? html`${renderName(person.name)}<span class="sub">Born ${renderDate(person.born)}</span>`
    : html`FHIR id ${id}`
}
