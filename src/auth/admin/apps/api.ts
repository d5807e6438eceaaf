import { Type } from 'typebox'
import { isFailure } from '../../../core/index.ts'
import { CLOSED, NONE } from '../../../endpoint/index.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { listScopeNotes } from '../../oauth/grants/scope-notes.ts'
import type { AdminFailure } from '../base/action.ts'
import { defineEndpoint, type Endpoint } from '../base/endpoint.ts'
import { describeColumns, toJson } from '../subject/columns.ts'
import { defineListEndpoint } from '../subject/endpoint.ts'
import { CLIENT_COLUMNS, CLIENTS, findListed } from './client-list.ts'
import { changeByMetadata, Metadata, NewClient, registerByMetadata } from './client-metadata.ts'
import {
  type ChangedClient,
  CLIENT_OPERATIONS,
  type ClientOperation,
  describeClient,
  findClientRow,
  nameOperation,
} from './clients.ts'

const Client = describeColumns(CLIENT_COLUMNS)
const ClientWithSecret = Type.Object(
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

export const clientEndpoints = [
  ...defineListEndpoint(CLIENTS),
  defineEndpoint({
    method: 'POST',
    path: '/clients',
    title: 'Register a client',
    description: 'Without `token_endpoint_auth_method` the client gets a secret. It is approved.',
    body: NewClient,
    status: 201,
    operation: nameOperation('add'),
    result: ClientWithSecret,
    handle: async ({ admin, context, body }) => addWarnings(context, await registerByMetadata(admin, body)),
  }),
  defineEndpoint({
    method: 'GET',
    path: '/clients/:client_id',
    title: 'One client, with its last use',
    result: Client,
    async handle({ admin, params: { client_id = '' } }) {
      const client = await findClientRow(admin, client_id)
      if (isFailure(client)) return client
      const [listed] = await findListed(admin, [client])
      return listed && toJson(CLIENT_COLUMNS, listed)
    },
  }),
  defineEndpoint({
    method: 'PATCH',
    path: '/clients/:client_id',
    title: 'Change a client',
    description:
      'Absent members keep their values. A new scope revokes the access that users gave the client.',
    body: Metadata,
    operation: nameOperation('set'),
    result: ClientWithSecret,
    handle: async ({ admin, context, params: { client_id = '' }, body }) =>
      addWarnings(context, await changeByMetadata(admin, client_id, body)),
  }),
  ...Object.entries<ClientOperation>(CLIENT_OPERATIONS).flatMap(([verb, operation]) =>
    defineAction(verb, operation),
  ),
]

function defineAction(verb: string, { signIn, title, perform }: ClientOperation): readonly Endpoint[] {
  if (title === undefined || !perform) return []
  const isRemoval = verb === 'remove'
  return [
    defineEndpoint({
      title,
      operation: { name: `client ${verb}`, signIn },
      ...(isRemoval
        ? { method: 'DELETE', path: '/clients/:client_id', result: Client }
        : { method: 'POST', path: `/clients/:client_id/${verb}`, body: NONE, result: ClientWithSecret }),
      handle: async ({ admin, params: { client_id = '' } }) =>
        describeChanged(await perform(admin, client_id)),
    }),
  ]
}

function describeChanged(changed: ChangedClient | AdminFailure) {
  if (isFailure(changed)) return changed
  const { client, secret } = changed
  return { ...describeClient(client), ...(secret !== undefined && { client_secret: secret }) }
}

/** The result of a registration or a change, with the same notes as on pages and on the command line. */
function addWarnings({ settings }: AuthContext, changed: ChangedClient | AdminFailure) {
  if (isFailure(changed)) return changed
  const warnings = listScopeNotes(changed.client.scope, settings.fhir.searchPermission)
  return { ...describeChanged(changed), ...(warnings.length > 0 && { warnings }) }
}
