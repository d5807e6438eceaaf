import {
  type Html,
  html,
  renderActions,
  renderAlert,
  renderCopyable,
  renderDanger,
  renderEmptyState,
  renderHidden,
  renderPageHead,
  renderSearchForm,
  renderTable,
} from '../../web/ui/index.ts'
import { LIMITS } from '../base/limits.ts'
import { paths } from '../base/paths.ts'
import { type Client, isConfigured } from '../oauth/clients/client.ts'
import { hasOwnScope } from '../oauth/clients/validate.ts'
import type { AuthContext } from '../oauth/context.ts'
import { listScopeNotes } from '../oauth/grants/scope-notes.ts'
import { type AppFormOptions, renderAppForm, renderFaultAlert } from '../pages/parts/app-form/form.ts'
import { renderAppIdentity, renderListedApp } from '../pages/parts/apps.ts'
import { renderSignedInPage } from '../pages/parts/page-parts.ts'
import { renderPermissions } from '../pages/parts/permissions.ts'
import type { Login } from '../users/find-login.ts'
import { isProgramScope } from '../words/program-scopes.ts'
import { labPaths } from './paths.ts'
import { highlight } from './snippets/highlight.ts'
import { makeSnippets, type Snippet } from './snippets/make.ts'

export interface AppListView {
  readonly apps: readonly Client[]
  readonly hasMore: boolean
  readonly page: number
  readonly search: string | undefined
  readonly removed: boolean
}

export function renderAppsPage(context: AuthContext, login: Login, view: AppListView): Html {
  const { apps, hasMore, page, search, removed } = view
  const renderPageLink = (text: string, other: number) => {
    const query = new URLSearchParams({ ...(search !== undefined && { search }), page: String(other) })
    return html`<a class="btn btn--quiet btn--small" href="${labPaths.apps}?${query.toString()}">${text}</a>`
  }
  return renderSignedInPage(
    context,
    login,
    { title: 'Registered apps', current: 'apps' },
    html`${renderPageHead(
      'Registered apps',
      'All apps that are registered on this server, except those that the lab created.',
      renderActions({ href: labPaths.appsNew, text: 'Register an app' }),
    )}
<div class="stack">
${removed && html`<div role="status">${renderAlert('App removed.', 'Its access has ended.', 'ok')}</div>`}
${renderSearchForm({ action: labPaths.apps, label: 'Find an app by name', subject: 'Apps', value: search, maxCharacters: LIMITS.searchCharacters })}
<div class="card${apps.length > 0 && ' card--clip'}">${apps.length === 0 ? (search === undefined ? NONE_YET : NONE_FOUND) : renderApps(context, apps)}</div>
${(page > 0 || hasMore) && html`<nav class="actions" aria-label="Pages">${page > 0 && renderPageLink('Previous', page - 1)}${hasMore && renderPageLink('Next', page + 1)}</nav>`}
</div>`,
  )
}

const NONE_YET = renderEmptyState({
  title: 'No apps yet',
  text: 'Register an app: it then appears here, in the portal and in the lab.',
})

const NONE_FOUND = renderEmptyState({
  title: 'No app found',
  text: 'Search for another name, or register an app.',
})

const KINDS = { none: 'Public', client_secret: 'With a secret', private_key_jwt: 'With keys' } as const

function renderApps({ settings }: AuthContext, apps: readonly Client[]): Html {
  return renderTable(
    {
      caption: 'Registered apps, by name',
      kind: 'table--top table--stack apps apps--registered',
      columns: [
        'App',
        'Client id',
        { head: 'Kind', isNowrap: true },
        'Permissions',
        { head: 'Actions', isHidden: true },
      ],
    },
    apps.map(client => [
      renderListedApp(client),
      html`<code class="url">${client.id}</code>`,
      KINDS[client.authMethod],
      renderPermissions(client, client.scope),
      html`<div class="actions">${client.launchUrl !== undefined && renderAction(labPaths.lab, 'Launch', client)}${renderAction(labPaths.appsCode, 'Code', client)}${
        isFixed(settings, client)
          ? html`<span class="small muted">${describeFixed(settings, client)}</span>`
          : html`${renderAction(labPaths.appsEdit, 'Change', client)}${renderDanger(nameAction('Remove', client), { href: buildUrl(labPaths.appsRemove, client), size: 'small' })}`
      }</div>`,
    ]),
  )
}

function describeFixed(settings: AuthContext['settings'], client: Client): string {
  if (isConfigured(settings, client)) return 'Set in the settings'
  return client.expiresAt === undefined
    ? 'Changed by administrators only'
    : 'Registered by a launch, for a day'
}

/** Whether developers may not change this app. */
export function isFixed(settings: AuthContext['settings'], client: Client): boolean {
  const { firstParty, scope, expiresAt } = client
  return (
    isConfigured(settings, client) ||
    expiresAt !== undefined ||
    firstParty ||
    isProgramScope(scope) ||
    hasOwnScope(scope)
  )
}

function renderAction(path: string, text: string, client: Client): Html {
  return html`<a class="btn btn--quiet btn--small" href="${buildUrl(path, client)}">${nameAction(text, client)}</a>`
}

function nameAction(text: string, { name }: Client): Html {
  return html`${text}<span class="sr"> ${name}</span>`
}

/** A page with this app chosen. */
export function buildUrl(path: string, { id }: Client): string {
  return `${path}?${new URLSearchParams({ client: id })}`
}

export function renderAppFormPage(
  context: AuthContext,
  login: Login,
  options: Omit<AppFormOptions, 'action' | 'cancel' | 'check' | 'isAdministrator'>,
): Html {
  const { client, faults } = options
  const title = client ? `Change ${client.name}` : 'Register an app'
  const action = client ? labPaths.appsEdit : labPaths.appsNew
  return renderSignedInPage(
    context,
    login,
    { title, current: 'apps', width: 'mid', scripts: ['appform.js'] },
    html`${renderPageHead(title, client ? 'New scopes end the access that users gave the app: they have to consent again.' : 'It then appears in the portal and in the lab. Users are asked for their consent.')}
<div class="stack">
${faults && renderFaultAlert(options)}
${renderAppForm({ ...options, action, cancel: labPaths.apps, check: labPaths.appsCheck, isAdministrator: false })}
</div>`,
  )
}

/** The values that the app needs, and code with them. A secret is shown here and never again. */
export function renderStoredApp(
  context: AuthContext,
  login: Login,
  stored: {
    readonly client: Client
    readonly secret: string | undefined
    /** What was done to the app just now. */
    readonly event: string | undefined
  },
): Html {
  const { client, secret, event } = stored
  const { fhirBaseUrl } = context.settings
  const values: readonly (readonly [string, string | undefined])[] = [
    ['Client id', client.id],
    ['Client secret', secret],
    ['FHIR base URL (iss)', fhirBaseUrl],
    ['Scopes', client.scope],
  ]
  return renderSignedInPage(
    context,
    login,
    { title: client.name, current: 'apps', width: 'mid', scripts: ['copy.js'] },
    html`${renderPageHead(client.name)}
<div class="stack">
${event !== undefined && html`<div role="status">${renderAlert(event, secret === undefined ? 'Your app needs these values.' : 'Copy the secret now: it is not shown again.', secret === undefined ? 'ok' : 'warn')}</div>`}
${listScopeNotes(client.scope, context.settings.fhir.searchPermission).map(note => renderAlert('Scopes:', `${note}${note.endsWith('?') ? '' : '.'}`, 'warn'))}
<section class="card card__body stack stack--tight" aria-label="Values for the app">
${values.map(([label, value]) => value !== undefined && renderCopyable(label, value))}
</section>
${renderCode(makeSnippets(client, { secret, fhirBaseUrl }))}
${isFixed(context.settings, client) && html`<p class="small muted">This app cannot be changed here. ${describeFixed(context.settings, client)}.</p>`}
${renderActions(
  ...(client.launchUrl === undefined
    ? []
    : [
        { href: buildUrl(labPaths.lab, client), text: 'Launch in the lab' },
        { href: buildUrl(paths.portal, client), text: 'Launch from the portal' },
      ]),
  ...(isFixed(context.settings, client)
    ? []
    : [{ href: buildUrl(labPaths.appsEdit, client), text: 'Change' }]),
  { href: labPaths.apps, text: 'Registered apps' },
)}
</div>`,
  )
}

function renderCode(snippets: readonly Snippet[]): Html {
  return html`<section class="card card__body stack stack--tight" aria-labelledby="code"><h2 id="code">Code</h2>
<p>Complete apps with the values of this app. Each signs in, and reads the patient and the first other data that the scopes permit, such as conditions (patient/Condition.rs).</p>
${snippets.map(
  ({ title, file, how, code }, at) =>
    html`<details class="more"${at === 0 && html` open`}><summary>${title}</summary><div class="stack stack--tight"><p>${how}</p>${
      code !== undefined &&
      html`<div class="copy"><pre class="url url--block code" tabindex="0" role="region" aria-label="${file}">${highlight(code)}</pre><button class="btn btn--quiet btn--small" type="button" data-copy hidden>Copy</button></div>
<p><a class="btn btn--quiet btn--small" download="${file}" href="data:text/plain;charset=utf-8,${encodeURIComponent(code)}">Download ${file}<span class="sr"> (${title})</span></a></p>`
    }</div></details>`,
)}
</section>`
}

export function renderRemoveAppPage(context: AuthContext, login: Login, client: Client): Html {
  return renderSignedInPage(
    context,
    login,
    { title: `Remove ${client.name}`, current: 'apps', width: 'flow' },
    html`${renderPageHead(`Remove ${client.name}?`, 'Its access tokens are refused within seconds, for all users, and it cannot be launched any more.')}
<form class="card card__body stack" method="post" action="${labPaths.appsRemove}">
${renderHidden({ client: client.id })}
<div>${renderAppIdentity(client)}</div>
<div class="actions">${renderDanger('Remove app')}<a class="btn btn--quiet" href="${labPaths.apps}">Keep app</a></div>
</form>`,
  )
}
