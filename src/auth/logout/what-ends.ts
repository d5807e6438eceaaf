import { type Html, html } from '../../web/index.ts'
import { paths } from '../paths.ts'

/** What signing out ends, and what it does not: `offline_access` outlives it. */
export function whatEnds(): Html {
  return html`Once you are signed out, apps that you opened can no longer read records, except those with access while you are away. <a href="${paths.manage}">Apps with access</a> shows these, and removes them.`
}
