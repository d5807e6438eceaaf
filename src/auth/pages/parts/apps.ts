import { type Html, html, renderAlert, renderBadge } from '../../../web/ui/index.ts'
import type { Client } from '../../oauth/clients/client.ts'
import type { LaunchableApp } from '../../oauth/launch/apps.ts'

/** The URLs that the launch form may redirect to, for the content security policy. */
export function listLaunchTargets({ client, launchUrl }: LaunchableApp): readonly string[] {
  return [launchUrl, ...client.redirectUris]
}

/** The app with its logo or initials, and its host. */
export function renderAppIdentity(client: Client): Html {
  return renderIdentity(renderAppTile(client), renderAppName(client), client)
}

/** For a list of apps, without logos, because the content security policy would have to name all of them. */
export function renderListedApp(client: Client, { isAgent = false } = {}): Html {
  const name = html`${client.name}${renderUnverifiedBadge(client)}${renderAgentBadge(isAgent)}`
  return renderIdentity(renderInitials(client), name, client)
}

/** For patients and relatives, who allowed only apps that are not of the hospital. */
export function renderPatientApp(client: Client, { isAgent = false } = {}): Html {
  const whose = client.firstParty && html`<span class="sub">${HOSPITAL_APP}</span>`
  const name = html`${client.name}${renderUnverifiedBadge(client)}${renderAgentBadge(isAgent)}${whose}`
  return renderIdentity(renderInitials(client), name, client)
}

/** What patients read about a first-party app, for which nobody is asked. */
export const HOSPITAL_APP = 'App of the hospital'

export function renderAppName(client: Client): Html {
  return html`<b>${client.name}</b>${renderUnverifiedBadge(client)}`
}

function renderAgentBadge(isAgent: boolean): Html | undefined {
  return isAgent ? html`&ensp;${renderBadge('Assistant')}` : undefined
}

export function renderUnverifiedBadge({ approved }: Client): Html | undefined {
  return approved ? undefined : html`&ensp;${renderBadge('Unverified', 'warn')}`
}

/** For every page on which a user decides about an app. */
export function renderUnverifiedWarning(client: Client, redirectUri?: string): Html | undefined {
  if (client.approved) return undefined
  const text = client.isDescribed ? describeDocument(client, redirectUri) : 'It registered itself'
  return renderAlert(
    'Unverified app.',
    `${text}, and no administrator has verified it. Its name may be false. Continue only if you expected it.`,
    'warn',
  )
}

/** The host names are what nobody can invent. A program on the user's own device has none. */
function describeDocument({ id }: Client, redirectUri: string | undefined): string {
  const described = `${readHost(id)} describes it`
  if (redirectUri === undefined) return described
  const isWeb = URL.parse(redirectUri)?.protocol === 'https:'
  return `${described}, it returns to ${isWeb ? readHost(redirectUri) : 'a program on this device, which may be any'}`
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
function findAppHost({ redirectUris, launchUrl, id }: Client): string {
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
