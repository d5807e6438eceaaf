import { type Client, findClient, findLaunchableClients } from '../client/client.ts'
import type { AuthContext } from '../context.ts'

/** An app that the portal can launch. */
export interface App {
  readonly client: Client
  readonly launchUrl: string
  /** Whether a launch without `clientId` launches this app. */
  readonly isDefault: boolean
}

/** The apps that the portal lists, the default one first. */
export async function findApps(context: AuthContext): Promise<readonly App[]> {
  const [first, listed] = await Promise.all([findApp(context), findLaunchableClients(context.store)])
  const others = listed.filter(client => client.id !== context.settings.defaultClientId)
  return [...(first ? [first] : []), ...others.flatMap(client => toApp(context, client) ?? [])]
}

/** The app with this client id, or the default one, if it can be launched. */
export async function findApp(context: AuthContext, clientId?: string): Promise<App | undefined> {
  const client = await findClient(context.store, clientId ?? context.settings.defaultClientId)
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
