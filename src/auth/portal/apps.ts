import { type Client, findClient, findLaunchableClients } from '../client/client.ts'
import type { AuthContext } from '../context.ts'

/** An app that the portal can launch. */
export interface App {
  readonly client: Client
  readonly launchUrl: string
  /** Whether a launch that names no app launches this one. */
  readonly isDefault: boolean
}

/**
 * Every registered app with a launch address, the default one first. Where the default client registered none, the
 * setting is its address (service.md 2.7).
 */
export async function findApps({ store, settings }: AuthContext): Promise<readonly App[]> {
  const launchable = await findLaunchableClients(store)
  const isDefault = (client: Client) => client.id === settings.defaultClientId
  const first = launchable.find(isDefault) ?? (await findClient(store, settings.defaultClientId))
  const clients = [...(first ? [first] : []), ...launchable.filter(client => !isDefault(client))]
  return clients.map(client => ({
    client,
    launchUrl: client.launchUrl ?? settings.smartClientLaunchUrl,
    isDefault: isDefault(client),
  }))
}

/** The URLs that a launch form may lead the browser through, up to the app's own page. */
export function launchTargets({ client, launchUrl }: App): readonly string[] {
  return [launchUrl, ...client.redirectUris]
}
