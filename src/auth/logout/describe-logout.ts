import { type Html, html } from '../../web/index.ts'
import { paths } from '../paths.ts'

/** Grants with `offline_access` do not end with the login. */
export function describeLogout(): Html {
  return html`After you sign out, apps that you opened can no longer read records, except those with access while you are away. <a href="${paths.manage}">Apps with access</a> lists these and lets you remove them.`
}
