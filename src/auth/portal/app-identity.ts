import { alert, badge, type Html, html } from '../../web/index.ts'
import type { Client } from '../client/client.ts'

/** The app with its logo, or with its initials, and its host (design: Who, what, until when). */
export function appIdentity(client: Client): Html {
  return identity(appTile(client), appName(client), client)
}

/** The same in a list of apps. Its policy would have to name the logo of each, so it shows none. */
export function listedApp(client: Client): Html {
  return identity(initialsTile(client), html`${client.name}${unverifiedBadge(client)}`, client)
}

export function appName(client: Client): Html {
  return html`<b>${client.name}</b>${unverifiedBadge(client)}`
}

export function unverifiedBadge({ approved }: Client): Html | undefined {
  return approved ? undefined : html`&ensp;${badge('Unverified', 'warn')}`
}

/** On every page where a clinician decides about an app that registered itself. */
export function unverifiedWarning({ approved }: Client): Html | undefined {
  return approved
    ? undefined
    : alert(
        'Unverified app.',
        'It registered itself, and no administrator has checked who runs it. Its name may be made up. Continue only if you expected it.',
        'warn',
      )
}

function identity(tile: Html, name: Html, client: Client): Html {
  return html`<span class="appid">${tile}<span>${name}<span class="sub">${hostOf(client)}</span></span></span>`
}

// The name stands beside it, so the logo says nothing more.
export function appTile(client: Client): Html {
  const [logo] = logosOf(client)
  return logo === undefined
    ? initialsTile(client)
    : html`<img class="tile" src="${logo}" alt="" width="44" height="44" referrerpolicy="no-referrer" loading="lazy">`
}

function initialsTile({ name }: Client): Html {
  return html`<span class="tile" aria-hidden="true">${initialsOf(name)}</span>`
}

/** Where the app lives, as far as its addresses tell. A native app has a scheme of its own instead. */
export function hostOf({ redirectUris, launchUrl, id }: Client): string {
  const address = redirectUris[0] ?? launchUrl
  return address === undefined ? id : hostOfAddress(address)
}

export function hostOfAddress(address: string): string {
  const url = URL.parse(address)
  return url === null ? address : url.host || url.protocol.slice(0, -1)
}

/** The logo that a page about one app shows, for its policy. An unverified app could show the logo of another. */
export function logosOf({ logoUrl, approved }: Client): readonly string[] {
  return logoUrl === undefined || !approved ? [] : [logoUrl]
}

function initialsOf(name: string): string {
  const words = name.split(/[^\p{L}\p{N}]+/u).filter(word => word !== '')
  return words
    .slice(0, 2)
    .map(word => [...word][0])
    .join('')
    .toUpperCase()
}
