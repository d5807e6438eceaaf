import { type Html, html, renderAlert, renderBadge } from '../../../web/index.ts'
import type { AuthContext } from '../../base/context.ts'
import { LIMITS } from '../../base/limits.ts'
import { type Client, findClient, findLaunchableClients } from '../../oauth/clients/client.ts'
import { findRecent } from './recent-use.ts'

/** An app that the portal can launch. */
export interface App {
  readonly client: Client
  readonly launchUrl: string
  /** Whether a launch without `clientId` launches this app. */
  readonly isDefault: boolean
}

/** The apps that the portal lists. */
export interface AppList {
  readonly apps: readonly App[]
  /** Whether there are more, which a search finds. */
  readonly hasMore: boolean
}

/** The apps whose names contain a text; without one the default app, those that the clinician used last, and the first ones. */
export async function findApps(
  context: AuthContext,
  clinicianId: string,
  text: string | undefined,
): Promise<AppList> {
  const { store } = context
  const limit = LIMITS.appsListed + 1
  if (text !== undefined) return toAppList(context, await findLaunchableClients(context, { text, limit }))
  const recent = await findRecent(store.db, clinicianId, 'app')
  const [first, used, listed] = await Promise.all([
    findApp(context),
    recent.length === 0 ? [] : findLaunchableClients(context, { ids: recent, limit }),
    findLaunchableClients(context, { limit }),
  ])
  const clients = [...(first ? [first.client] : []), ...used.filter(({ approved }) => approved), ...listed]
  return toAppList(context, clients)
}

function toAppList(context: AuthContext, clients: readonly Client[]): AppList {
  const apps = [...new Map(clients.map(client => [client.id, client])).values()].flatMap(
    client => toApp(context, client) ?? [],
  )
  return { apps: apps.slice(0, LIMITS.appsListed), hasMore: apps.length > LIMITS.appsListed }
}

/** The app with this client id, or the default one, if it can be launched. */
export async function findApp(context: AuthContext, clientId?: string): Promise<App | undefined> {
  const client = await findClient(context.store.db, context, clientId ?? context.settings.defaultClientId)
  return client && toApp(context, client)
}

// The setting is the launch URL of a default client that has none.
function toApp({ settings }: AuthContext, client: Client): App | undefined {
  const isDefault = client.id === settings.defaultClientId
  const launchUrl = client.launchUrl ?? (isDefault ? settings.smartClientLaunchUrl : undefined)
  return launchUrl === undefined ? undefined : { client, launchUrl, isDefault }
}

/** The URLs that the launch form may redirect to, for the content security policy. */
export function listLaunchTargets({ client, launchUrl }: App): readonly string[] {
  return [launchUrl, ...client.redirectUris]
}

/** The app with its logo or initials, and its host. */
export function renderAppIdentity(client: Client): Html {
  return renderIdentity(renderAppTile(client), renderAppName(client), client)
}

/** For a list of apps, without logos, because the content security policy would have to name all of them. */
export function renderListedApp(client: Client): Html {
  return renderIdentity(renderInitials(client), html`${client.name}${renderUnverifiedBadge(client)}`, client)
}

export function renderAppName(client: Client): Html {
  return html`<b>${client.name}</b>${renderUnverifiedBadge(client)}`
}

export function renderUnverifiedBadge({ approved }: Client): Html | undefined {
  return approved ? undefined : html`&ensp;${renderBadge('Unverified', 'warn')}`
}

/** For every page where a clinician decides about an app. */
export function renderUnverifiedWarning({ approved }: Client): Html | undefined {
  return approved
    ? undefined
    : renderAlert(
        'Unverified app.',
        'It registered itself, and no administrator has verified it. Its name may be false. Continue only if you expected it.',
        'warn',
      )
}

function renderIdentity(tile: Html, name: Html, client: Client): Html {
  return html`<span class="appid">${tile}<span>${name}<span class="sub">${findAppHost(client)}</span></span></span>`
}

// The alt text is empty, because the name is next to the logo.
export function renderAppTile(client: Client): Html {
  const [logo] = listLogos(client)
  return logo === undefined
    ? renderInitials(client)
    : html`<img class="tile" src="${logo}" alt="" width="44" height="44" referrerpolicy="no-referrer" loading="lazy">`
}

function renderInitials({ name }: Client): Html {
  return html`<span class="tile" aria-hidden="true">${computeInitials(name)}</span>`
}

/** The host of the app's URL, or the scheme of a native app. */
export function findAppHost({ redirectUris, launchUrl, id }: Client): string {
  const text = redirectUris[0] ?? launchUrl
  return text === undefined ? id : readHost(text)
}

export function readHost(text: string): string {
  const url = URL.parse(text)
  return url === null ? text : url.host || url.protocol.slice(0, -1)
}

/** The logo of the app. An unverified app has none, because it could imitate another app. */
export function listLogos({ logoUrl, approved }: Client): readonly string[] {
  return logoUrl === undefined || !approved ? [] : [logoUrl]
}

function computeInitials(name: string): string {
  const words = name.split(/[^\p{L}\p{N}]+/u).filter(word => word !== '')
  return words
    .slice(0, 2)
    .map(word => [...word][0])
    .join('')
    .toUpperCase()
}
