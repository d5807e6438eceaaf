import { LIMITS } from '../../base/limits.ts'
import { findRecent } from '../../patients/recent-use.ts'
import { type Client, findClient, findLaunchableClients } from '../clients/client.ts'
import type { AuthContext } from '../context.ts'

/** An app that the portal can launch. */
export interface LaunchableApp {
  readonly client: Client
  readonly launchUrl: string
  /** Whether a launch without `clientId` launches this app. */
  readonly isDefault: boolean
}

/** The apps that the portal lists. */
export interface AppList {
  readonly apps: readonly LaunchableApp[]
  /** Whether there are more, which a search finds. */
  readonly hasMore: boolean
}

/** The apps whose names contain a text; without one the default app, those that the user used last, and the first ones. */
export async function findApps(
  context: AuthContext,
  userId: string,
  text: string | undefined,
): Promise<AppList> {
  const { store } = context
  const limit = LIMITS.appsListed + 1
  if (text !== undefined) return toAppList(context, await findLaunchableClients(context, { text, limit }))
  const recent = await findRecent(store.db, userId, 'app')
  const [first, used, listed] = await Promise.all([
    findApp(context),
    recent.length === 0 ? [] : findLaunchableClients(context, { ids: recent, limit }),
    findLaunchableClients(context, { limit }),
  ])
  const clients = [...(first ? [first.client] : []), ...used.filter(({ approved }) => approved), ...listed]
  return toAppList(context, clients)
}

/** The apps that patients and relatives can open from their start page. */
export async function findPatientApps(context: AuthContext): Promise<readonly LaunchableApp[]> {
  const ids = context.settings.patientApps.slice(0, LIMITS.appsListed)
  const apps = await Promise.all(ids.map(id => findApp(context, id)))
  return apps.flatMap(app => (app?.client.approved ? app : []))
}

function toAppList(context: AuthContext, clients: readonly Client[]): AppList {
  const apps = [...new Map(clients.map(client => [client.id, client])).values()].flatMap(
    client => toApp(context, client) ?? [],
  )
  return { apps: apps.slice(0, LIMITS.appsListed), hasMore: apps.length > LIMITS.appsListed }
}

/** The app with this client id, or the default one, if it can be launched. */
export async function findApp(context: AuthContext, clientId?: string): Promise<LaunchableApp | undefined> {
  const client = await findClient(context.store.db, context, clientId ?? context.settings.defaultClientId)
  return client && toApp(context, client)
}

// The setting is the launch URL of a default client that has none.
function toApp({ settings }: AuthContext, client: Client): LaunchableApp | undefined {
  const isDefault = client.id === settings.defaultClientId
  const launchUrl = client.launchUrl ?? (isDefault ? settings.smartClientLaunchUrl : undefined)
  return launchUrl === undefined ? undefined : { client, launchUrl, isDefault }
}
