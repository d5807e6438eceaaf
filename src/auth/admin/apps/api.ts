import { isFailure } from '../../../core/index.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { listScopeNotes } from '../../oauth/grants/scope-notes.ts'
import type { AdminFailure } from '../base/action.ts'
import { defineEndpoint } from '../base/endpoint.ts'
import { toJson } from '../subject/columns.ts'
import { defineListEndpoint } from '../subject/endpoint.ts'
import { defineOperationEndpoints } from '../subject/operations.ts'
import { CLIENT_COLUMNS, CLIENTS, findListed } from './client-list.ts'
import { changeByMetadata, Metadata, NewClient, registerByMetadata } from './client-metadata.ts'
import { type ChangedClient, findClientRow, nameOperation } from './clients.ts'
import { APPS, Client, ClientWithSecret, describeChanged } from './subject.ts'

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
  ...defineOperationEndpoints(APPS),
]

/** The result of a registration or a change, with the same notes as on pages and on the command line. */
function addWarnings({ settings }: AuthContext, changed: ChangedClient | AdminFailure) {
  if (isFailure(changed)) return changed
  const warnings = listScopeNotes(changed.client.scope, settings.fhir.searchPermission)
  return { ...describeChanged(changed), ...(warnings.length > 0 && { warnings }) }
}
