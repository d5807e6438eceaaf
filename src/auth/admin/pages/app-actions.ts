import { isFailure } from '../../../fhir/index.ts'
import type { Html } from '../../../web/index.ts'
import { type Client, findRegisteredClient } from '../../oauth/clients/client.ts'
import { AdminFailure } from '../action.ts'
import {
  approveClient,
  type ChangedClient,
  type ClientRow,
  removeClient,
  rotateClientSecret,
  setClientDisabled,
} from '../clients.ts'
import type { AdminRequest, AdminRoute } from './route.ts'
import { type Confirmation, defineAction, renderSecret } from './shell.ts'

/** Actions on one app, each with a page that asks for confirmation. */
export const appActions: readonly AdminRoute[] = [
  ...defineAppAction('approve', {
    ask: name => ({
      title: `Approve ${name}?`,
      text: 'The app registered itself. After the approval, pages no longer mark it as unverified, and show its logo.',
      button: 'Approve app',
      isDangerous: false,
    }),
    perform: ({ admin, params }) => approveClient(admin, params.id ?? ''),
  }),
  ...defineAppAction('disable', {
    ask: name => ({
      title: `Disable ${name}?`,
      text: 'The app is treated like an unknown one. Its access tokens are refused within 5 seconds, for all users.',
      button: 'Disable app',
    }),
    perform: ({ admin, params }) => setClientDisabled(admin, params.id ?? '', true),
  }),
  ...defineAppAction('enable', {
    ask: name => ({
      title: `Enable ${name}?`,
      text: 'The app can be launched again. It does not get its earlier access back.',
      button: 'Enable app',
      isDangerous: false,
    }),
    perform: ({ admin, params }) => setClientDisabled(admin, params.id ?? '', false),
  }),
  ...defineAppAction('rotate-secret', {
    ask: name => ({
      title: `Rotate the secret of ${name}?`,
      text: 'The server generates a new secret and shows it once. The old secret stops working at once.',
      button: 'Rotate secret',
    }),
    perform: ({ admin, params }) => rotateClientSecret(admin, params.id ?? ''),
  }),
  ...defineAppAction('remove', {
    ask: name => ({
      title: `Remove ${name}?`,
      text: 'The app loses its registration and all access. Its access tokens are refused within 5 seconds, for all users.',
      button: 'Remove app',
    }),
    perform: ({ admin, params }) => removeClient(admin, params.id ?? ''),
  }),
]

interface AppAction {
  ask(name: string): Pick<Confirmation, 'title' | 'text' | 'button' | 'isDangerous'>
  perform(request: AdminRequest): Promise<ChangedClient | ClientRow | AdminFailure>
}

/** An action on the app in the path. The settings describe the demo app, so its registration does not change here. */
function defineAppAction(
  name: 'approve' | 'disable' | 'enable' | 'rotate-secret' | 'remove',
  { ask, perform }: AppAction,
): readonly AdminRoute[] {
  return defineAction({
    path: `/apps/:id/${name}`,
    operation: `client ${name}`,
    async ask(request) {
      const client = await findApp(request)
      return client ? { section: 'apps', back: buildAppPath(client.id), ...ask(client.name) } : failUnknown()
    },
    async perform(request) {
      const result = await perform(request)
      if (isFailure(result)) return result
      if (!('client' in result)) return '/apps?done=removed'
      return renderNewSecret(request, result) ?? `${buildAppPath(result.client.client_id)}?done=saved`
    },
  })
}

export function findApp({ admin, params }: AdminRequest): Promise<Client | undefined> {
  return findRegisteredClient(admin.store.db, params.id ?? '')
}

export function failUnknown(): AdminFailure {
  return new AdminFailure('not_found', 'there is no such app')
}

export function buildAppPath(id: string): string {
  return `/apps/${encodeURIComponent(id)}`
}

export function renderNewSecret(request: AdminRequest, { client, secret }: ChangedClient): Html | undefined {
  if (secret === undefined) return undefined
  const title = `Secret of ${client.name}`
  const label = `Client secret of ${client.client_id}`
  return renderSecret(request, {
    section: 'apps',
    title,
    label,
    value: secret,
    back: buildAppPath(client.client_id),
  })
}
