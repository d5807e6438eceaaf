import {
  type Html,
  html,
  type PageOptions,
  renderActions,
  renderAlert,
  renderCopyable,
  renderEmptyState,
  renderIcon,
  renderPage,
} from '../../web/index.ts'
import { LIMITS } from '../base/limits.ts'
import { paths } from '../base/paths.ts'
import { ADMIN_SCOPE, type Client, isConfigured } from '../oauth/clients/client.ts'
import { hasOwnScope } from '../oauth/clients/validate.ts'
import type { AuthContext } from '../oauth/context.ts'
import { type AppFormOptions, renderAppForm } from '../pages/apps/form.ts'
import { summarizeScopes } from '../pages/consent/describe-scopes.ts'
import { makeSignedInBar, showsSampleData } from '../pages/page-parts.ts'
import { renderAppIdentity, renderListedApp } from '../pages/portal/apps.ts'
import type { Login } from '../users/find-login.ts'
import { labPaths } from './paths.ts'

export interface AppPageContext {
  readonly settings: AuthContext['settings']
  readonly login: Login
}

function render({ settings, login }: AppPageContext, options: Omit<PageOptions, 'bar'>, body: Html): Html {
  const bar = makeSignedInBar(login, 'developers')
  return renderPage({ bar, sampleData: showsSampleData(settings), ...options }, body)
}

export interface AppListView {
  readonly apps: readonly Client[]
  readonly hasMore: boolean
  readonly page: number
  readonly search: string | undefined
  readonly removed: boolean
}

export function renderAppsPage(context: AppPageContext, view: AppListView): Html {
  const { apps, hasMore, page, search, removed } = view
  const link = (other: number) =>
    `${labPaths.apps}?${new URLSearchParams({ ...(search !== undefined && { search }), page: String(other) })}`
  return render(
    context,
    { title: 'Registered apps' },
    html`<div class="pagehead"><div><h1>Registered apps</h1>
<p class="pagehead__lead">All apps that are registered on this server, except those that the lab created.</p></div>
${renderActions({ href: labPaths.appsNew, text: 'Register an app' })}</div>
<div class="stack">
${removed && html`<div role="status">${renderAlert('App removed.', 'Its access has ended.', 'ok')}</div>`}
<form class="field" role="search" aria-label="Apps" action="${labPaths.apps}"><label class="field__label" for="search">Find an app by name</label>
<div class="search"><div class="search__box">${renderIcon('search')}<input class="input" id="search" name="search" type="search" maxlength="${LIMITS.searchCharacters}" autocomplete="off" spellcheck="false" value="${search}"></div><button class="btn btn--quiet">Search</button></div></form>
${apps.length === 0 ? renderNone() : renderTable(apps, context)}
${(page > 0 || hasMore) && html`<nav class="actions" aria-label="Pages">${page > 0 && html`<a class="btn btn--quiet btn--small" href="${link(page - 1)}">Previous</a>`}${hasMore && html`<a class="btn btn--quiet btn--small" href="${link(page + 1)}">Next</a>`}</nav>`}
</div>`,
  )
}

function renderNone(): Html {
  return html`<div class="card">${renderEmptyState({ title: 'No app found', text: 'Search for another name, or register an app.' })}</div>`
}

const KINDS = { none: 'Public', client_secret: 'With a secret', private_key_jwt: 'With keys' } as const

function renderTable(apps: readonly Client[], context: AppPageContext): Html {
  const heads = ['App', 'Client id', 'Kind', 'Permissions']
  return html`<div class="card card--clip"><table class="table table--top table--stack apps apps--registered" role="table">
<caption class="sr">Registered apps, by name</caption>
<thead role="rowgroup"><tr role="row">${heads.map(head => html`<th role="columnheader" scope="col">${head}</th>`)}<th role="columnheader" scope="col"><span class="sr">Actions</span></th></tr></thead>
<tbody role="rowgroup">${apps.map(app => renderRow(app, context))}</tbody>
</table></div>`
}

function renderRow(client: Client, { settings }: AppPageContext): Html {
  return html`<tr role="row">
<th role="rowheader" scope="row">${renderListedApp(client)}</th>
<td role="cell" data-label="Client id"><code class="url">${client.id}</code></td>
<td role="cell" data-label="Kind" class="nowrap">${KINDS[client.authMethod]}</td>
<td role="cell" data-label="Permissions">${summarizeScopes(client.scope)}<details class="more"><summary>Exact scopes<span class="sr"> of ${client.name}</span></summary><p class="url url--block">${client.scope}</p></details></td>
<td role="cell"><div class="actions">${client.launchUrl !== undefined && renderAction(buildLaunchPage(client), 'Launch', client)}${
    isFixed(settings, client)
      ? html`<span class="small muted">${isConfigured(settings, client) ? 'Set in the settings' : 'Changed by administrators only'}</span>`
      : html`${renderAction(buildUrl(labPaths.appsEdit, client), 'Change', client)}${renderAction(buildUrl(labPaths.appsRemove, client), 'Remove', client)}`
  }</div></td></tr>
`
}

/** Whether developers may not change this app. */
export function isFixed(settings: AuthContext['settings'], client: Client): boolean {
  const { firstParty, scope } = client
  return isConfigured(settings, client) || firstParty || scope === ADMIN_SCOPE || hasOwnScope(scope)
}

function renderAction(href: string, text: string, { name }: Client): Html {
  return html`<a class="btn btn--quiet btn--small" href="${href}">${text}<span class="sr"> ${name}</span></a>`
}

/** The lab, with this app chosen. */
function buildLaunchPage({ id }: Pick<Client, 'id'>): string {
  return `${labPaths.lab}?${new URLSearchParams({ client: id })}`
}

function buildUrl(path: string, { id }: Pick<Client, 'id'>): string {
  return `${path}?${new URLSearchParams({ client: id })}`
}

export function renderAppFormPage(
  context: AppPageContext,
  options: Omit<AppFormOptions, 'action' | 'cancel' | 'isAdministrator'>,
): Html {
  const { client, fault } = options
  const title = client ? `Change ${client.name}` : 'Register an app'
  const action = client ? labPaths.appsEdit : labPaths.appsNew
  return render(
    context,
    { title, width: 'mid' },
    html`<div class="pagehead"><div><h1>${title}</h1>
<p class="pagehead__lead">${client ? 'New scopes end the access that users gave the app: they have to consent again.' : 'It then appears in the portal and in the lab. Users are asked for their consent.'}</p></div></div>
<div class="stack">
${fault && renderAlert(client ? 'Not saved.' : 'Not registered.', 'Correct the marked field.', 'bad')}
${renderAppForm({ ...options, action, cancel: labPaths.apps, isAdministrator: false })}
</div>`,
  )
}

/** The values that the app needs. A secret is shown here and never again. */
export function renderStoredApp(
  context: AppPageContext,
  stored: { readonly client: Client; readonly secret: string | undefined; readonly isNew: boolean },
): Html {
  const { client, secret, isNew } = stored
  const { fhirBaseUrl } = context.settings
  const values: readonly (readonly [string, string | undefined])[] = [
    ['Client id', client.id],
    ['Client secret', secret],
    ['FHIR base URL (iss)', fhirBaseUrl],
    ['Scopes', client.scope],
  ]
  return render(
    context,
    { title: client.name, width: 'mid', scripts: ['copy.js'] },
    html`<div class="pagehead"><div><h1>${client.name}</h1></div></div>
<div class="stack">
<div role="status">${renderAlert(isNew ? 'App registered.' : 'Changes saved.', secret === undefined ? 'Your app needs these values.' : 'Copy the secret now: it is not shown again.', secret === undefined ? 'ok' : 'warn')}</div>
<section class="card card__body stack stack--tight" aria-label="Values for the app">
${values.map(([label, value]) => value !== undefined && renderCopyable(label, value))}
</section>
${renderActions(
  ...(client.launchUrl === undefined
    ? []
    : [
        { href: buildLaunchPage(client), text: 'Launch in the lab' },
        {
          href: `${paths.portal}?${new URLSearchParams({ client: client.id })}`,
          text: 'Launch from the portal',
        },
      ]),
  { href: labPaths.apps, text: 'Registered apps' },
)}
</div>`,
  )
}

export function renderRemoveAppPage(context: AppPageContext, client: Client): Html {
  return render(
    context,
    { title: `Remove ${client.name}`, width: 'flow' },
    html`<div class="pagehead"><div><h1>Remove ${client.name}?</h1>
<p class="pagehead__lead">Its access tokens are refused within seconds, for all users, and it cannot be launched any more.</p></div></div>
<form class="card card__body stack" method="post" action="${labPaths.appsRemove}">
<input type="hidden" name="client" value="${client.id}">
<div>${renderAppIdentity(client)}</div>
<div class="actions"><button class="btn btn--danger">Remove app</button><a class="btn btn--quiet" href="${labPaths.apps}">Keep app</a></div>
</form>`,
  )
}
