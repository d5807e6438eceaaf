import { Type } from 'typebox'
import { isFailure } from '../../../core/index.ts'
import { CLOSED } from '../../../endpoint/index.ts'
import { type Html, html } from '../../../web/ui/index.ts'
import {
  findRegisteredClient,
  isConfigured,
  type Client as RegisteredClient,
} from '../../oauth/clients/client.ts'
import { describeEnding } from '../access/grants-page.ts'
import { type AdminFailure, failAdmin } from '../base/action.ts'
import { describeColumns } from '../subject/columns.ts'
import type { Subject } from '../subject/operations.ts'
import type { AdminRequest } from '../subject/page/route.ts'
import { renderSecret } from '../subject/page/shell.ts'
import { buildAppPath, CLIENT_COLUMNS, SECTION } from './client-list.ts'
import {
  type ChangedClient,
  CLIENT_OPERATIONS,
  describeClient,
  findClientRow,
  type ShownClient,
} from './clients.ts'

export const Client = describeColumns(CLIENT_COLUMNS)
export const ClientWithSecret = Type.Object(
  {
    ...Client.properties,
    client_secret: Type.Optional(Type.String({ description: 'A new secret. It is not shown again.' })),
    warnings: Type.Optional(
      Type.Array(Type.String(), {
        description:
          'Scopes that are never granted as registered, with the reason. Absent if there are none.',
      }),
    ),
  },
  CLOSED,
)

export function describeChanged(changed: ChangedClient | AdminFailure) {
  if (isFailure(changed)) return changed
  const { client, secret } = changed
  return { ...describeClient(client), ...(secret !== undefined && { client_secret: secret }) }
}

export function findApp({ admin, params }: AdminRequest): Promise<RegisteredClient | undefined> {
  return findRegisteredClient(admin.store.db, params.id ?? '')
}

export function failUnknown(): AdminFailure {
  return failAdmin('client-not-shown')
}

/** Shows a new secret; otherwise the page of the app. */
export function showChanged(
  request: AdminRequest,
  changed: ChangedClient | AdminFailure,
  done: string,
): Html | string | AdminFailure {
  if (isFailure(changed)) return changed
  const { client, secret } = changed
  const path = buildAppPath(client.client_id)
  if (secret === undefined) return `${path}?done=${done}`
  return renderSecret(request, {
    section: SECTION,
    title: `Secret of ${client.name}`,
    label: `Client secret of ${client.client_id}`,
    value: secret,
    back: path,
  })
}

export async function findShown(request: AdminRequest): Promise<ShownClient | AdminFailure> {
  const row = await findClientRow(request.admin, request.params.id ?? '')
  const client = await findApp(request)
  if (isFailure(row) || !client) return failUnknown()
  return { ...row, isConfigured: isConfigured(request.context.settings, client) }
}

/** What operations on apps have in common. */
export const APPS: Subject<ShownClient, string, ChangedClient> = {
  name: 'client',
  operations: {
    ...CLIENT_OPERATIONS,
    remove: { ...CLIENT_OPERATIONS.remove, api: { ...CLIENT_OPERATIONS.remove.api, result: Client } },
  },
  toTarget: id => id,
  api: { path: '/clients/:client_id', result: ClientWithSecret, describe: describeChanged },
  pages: {
    section: SECTION,
    path: '/apps/:id',
    find: findShown,
    getName: client => client.name,
    getBack: (_, client) => buildAppPath(client.client_id),
    listFacts: async (request, { client_id: id }, { endsAccess }) => [
      ['Client id', html`<code>${id}</code>`],
      ...(endsAccess ? [await describeEnding(request, { clientIds: [id] })] : []),
    ],
    show: (request, changed, { verb }) =>
      verb === 'remove' ? '/apps?done=removed' : showChanged(request, changed, 'saved'),
  },
  command: { noun: 'app', option: 'id' },
}
