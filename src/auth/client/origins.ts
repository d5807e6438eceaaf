import type { Store } from '../../store/index.ts'
import { parseRedirectUris } from './client.ts'

/** The web origins of a client: of its redirect and launch addresses. Native schemes have none. */
export function originsOf(client: {
  readonly redirectUris: readonly string[]
  readonly launchUrl: string | undefined
}): ReadonlySet<string> {
  const addresses = [...client.redirectUris, ...(client.launchUrl === undefined ? [] : [client.launchUrl])]
  const origins = addresses.filter(address => URL.canParse(address)).map(address => new URL(address).origin)
  return new Set(origins.filter(origin => origin !== 'null'))
}

/** Whether any client has this origin: a preflight names the origin, but not the client. */
export async function isRegisteredOrigin({ db }: Store, origin: string): Promise<boolean> {
  const rows = await db.selectFrom('client').select(['redirect_uris', 'launch_url']).execute()
  return rows.some(row =>
    originsOf({
      redirectUris: parseRedirectUris(row.redirect_uris),
      launchUrl: row.launch_url ?? undefined,
    }).has(origin),
  )
}
