import type { Interaction, Misunderstood } from './interaction.ts'
import { parseInteraction } from './parse-interaction.ts'
import { createMisunderstood } from './request-path.ts'

/** `Bundle.entry.request` of a batch or transaction. */
export interface EntryRequest {
  readonly method: string
  readonly url: string
  readonly ifNoneExist?: string | undefined
}

/** What an entry may ask for: anything but another Bundle. */
export type EntryInteraction = Exclude<Interaction, { readonly kind: 'bundle' }>

/**
 * The interaction of one entry, by the same rules as a request of its own. Its address is relative to the base, or
 * absolute under it; a Bundle inside a Bundle and a `_search` by POST (an entry has no form) are refused.
 */
export function parseEntry(request: EntryRequest, baseUrl: string): EntryInteraction | Misunderstood {
  const below = stripBase(request.url, baseUrl)
  const at = below.indexOf('?')
  const interaction = parseInteraction({
    method: request.method,
    baseUrl,
    path: at < 0 ? below : below.slice(0, at),
    query: at < 0 ? '' : below.slice(at + 1),
    headers: request.ifNoneExist === undefined ? {} : { 'if-none-exist': request.ifNoneExist },
  })
  if (interaction.kind === 'bundle') return createMisunderstood(400, 'Cannot accept a Bundle inside a Bundle')
  return interaction
}

function stripBase(url: string, baseUrl: string): string {
  if (url.startsWith(`${baseUrl}/`) || url.startsWith(`${baseUrl}?`)) return url.slice(baseUrl.length)
  // A foreign absolute address has an empty segment or a colon, which no path of ours has.
  return url.startsWith('/') || url.startsWith('?') || url === '' ? url : `/${url}`
}
