import { Type } from '@sinclair/typebox'
import { isFailure } from '../../../core/index.ts'
import { CLOSED, formatTime, NONE, PageOf, Time } from '../../../endpoint/index.ts'
import { PLAIN_FIELDS } from '../../oauth/clients/fields.ts'
import type { AuthContext } from '../../oauth/context.ts'
import { listScopeNotes } from '../../oauth/grants/scope-notes.ts'
import { findLastUses } from '../access/last-uses.ts'
import type { AdminFailure } from '../base/action.ts'
import { defineEndpoint, type Endpoint, PAGE_QUERY, toPage } from '../base/endpoint.ts'
import { changeByMetadata, Keys, Metadata, NewClient, registerByMetadata, Texts } from './client-metadata.ts'
import {
  type ChangedClient,
  CLIENT_OPERATIONS,
  type ClientOperation,
  type ClientRow,
  describeClient,
  findClientRow,
  listClients,
  nameOperation,
} from './clients.ts'

const SHOWN = {
  text: Type.Optional(Type.String()),
  list: Texts,
  flag: Type.Boolean(),
  other: Type.Unknown(),
} as const

const CLIENT = {
  client_id: Type.String(),
  client_id_issued_at: Type.Integer({ description: 'Seconds since 1970.' }),
  ...Object.fromEntries(PLAIN_FIELDS.map(({ member, kind }) => [member, SHOWN[kind]])),
  client_name: Type.String(),
  scope: Type.String(),
  token_endpoint_auth_method: Type.String(),
  grant_types: Type.Array(Type.String(), {
    description: 'Derived from the scopes and the redirect URIs.',
  }),
  response_types: Type.Array(Type.String()),
  jwks: Type.Optional(Keys),
  jwks_uri: Type.Optional(Type.String()),
  approved: Type.Boolean({ description: 'False for a client that registered itself.' }),
  disabled: Type.Boolean(),
  last_used_at: Type.Optional(Time),
}
const Client = Type.Object(CLIENT, CLOSED)
const ClientWithSecret = Type.Object(
  {
    ...CLIENT,
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
  defineEndpoint({
    method: 'GET',
    path: '/clients',
    title: 'Clients, by id',
    query: Type.Object(
      {
        text: Type.Optional(Type.String({ maxLength: 200, description: 'Part of the id or the name.' })),
        approved: Type.Optional(Type.Boolean()),
        disabled: Type.Optional(Type.Boolean()),
        ...PAGE_QUERY,
      },
      CLOSED,
    ),
    result: PageOf(Client),
    async handle({ admin, query }) {
      const page = await listClients(admin, query)
      const uses = await findLastUses(
        admin,
        page.items.map(row => row.client_id),
      )
      return toPage(page, row => describe(row, uses.get(row.client_id)))
    },
  }),
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
      return describe(client, (await findLastUses(admin, [client_id])).get(client_id))
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

function describe(client: ClientRow, lastUsedAt?: number) {
  return {
    ...describeClient(client),
    ...(lastUsedAt !== undefined && { last_used_at: formatTime(lastUsedAt) }),
  }
}

function describeChanged(changed: ChangedClient | AdminFailure) {
  if (isFailure(changed)) return changed
  const { client, secret } = changed
  return { ...describe(client), ...(secret !== undefined && { client_secret: secret }) }
}

/** The result of a registration or a change, with the same notes as on pages and on the command line. */
function addWarnings({ settings }: AuthContext, changed: ChangedClient | AdminFailure) {
  if (isFailure(changed)) return changed
  const warnings = listScopeNotes(changed.client.scope, settings.fhir.searchPermission)
  return { ...describeChanged(changed), ...(warnings.length > 0 && { warnings }) }
}
