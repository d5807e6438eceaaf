import { type Html, html } from '../../web/index.ts'
import type { Client } from '../client/client.ts'

/** The app with its logo, or with its initials, and its host (design: Who, what, until when). */
export function appIdentity(client: Client, name: 'b' | 'span' = 'b'): Html {
  const text = name === 'b' ? html`<b>${client.name}</b>` : html`${client.name}`
  return html`<span class="appid">${appTile(client)}<span>${text}<span class="sub">${hostOf(client)}</span></span></span>`
}

// The name stands beside it, so the logo says nothing more.
export function appTile({ name, logoUrl }: Client): Html {
  return logoUrl === undefined
    ? html`<span class="tile" aria-hidden="true">${initialsOf(name)}</span>`
    : html`<img class="tile" src="${logoUrl}" alt="" width="44" height="44" referrerpolicy="no-referrer" loading="lazy">`
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

/** The logos that a page with these apps shows, for its policy. */
export function logosOf(clients: readonly Client[]): readonly string[] {
  return clients.flatMap(({ logoUrl }) => logoUrl ?? [])
}

function initialsOf(name: string): string {
  const words = name.split(/[^\p{L}\p{N}]+/u).filter(word => word !== '')
  return words
    .slice(0, 2)
    .map(word => [...word][0])
    .join('')
    .toUpperCase()
}
