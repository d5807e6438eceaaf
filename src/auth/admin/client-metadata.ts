import { randomUUID } from 'node:crypto'
import { type Static, Type } from '@sinclair/typebox'
import { isFailure } from '../../core/index.ts'
import type { ClientChanges } from '../oauth/clients/store-client.ts'
import {
  AUTH_METHODS,
  CLIENT_DEFAULTS,
  type ClientFault,
  type ClientProperties,
  normalizeScope,
  readRegisteredKeys,
} from '../oauth/clients/validate.ts'
import type { Admin, AdminFailure } from './action.ts'
import { addClient, type ChangedClient, changeClient, failProperty, findClientRow } from './clients.ts'
import { CLOSED } from './endpoint.ts'

const Text = Type.String({ minLength: 1 })
const OptionalText = Type.Optional(Type.Union([Text, Type.Null()], { description: '`null`: no value.' }))
export const Urls = Type.Array(Type.String())
export const Keys = Type.Object({ keys: Type.Array(Type.Object({})) })

/** The members that an administrator sets (RFC 7591, 2; OpenID Connect Registration, 2; of this server). */
const METADATA = {
  client_name: OptionalText,
  description: OptionalText,
  logo_uri: OptionalText,
  redirect_uris: Type.Optional(Urls),
  post_logout_redirect_uris: Type.Optional(Urls),
  initiate_login_uri: Type.Optional(
    Type.Union([Text, Type.Null()], { description: 'The launch URL. `null`: no value.' }),
  ),
  scope: Type.Optional(
    Type.String({
      description:
        'The scopes that the client may request, or `sallyport/admin` alone for a client of this API.',
    }),
  ),
  token_endpoint_auth_method: Type.Optional(
    Type.Union([
      Type.Literal('none'),
      Type.Literal('client_secret_basic'),
      Type.Literal('client_secret_post'),
      Type.Literal('private_key_jwt'),
    ]),
  ),
  jwks: Type.Optional(Type.Union([Keys, Type.Null()])),
  jwks_uri: OptionalText,
  first_party: Type.Optional(Type.Boolean({ description: 'Its users are not asked for consent.' })),
  pkce_required: Type.Optional(Type.Boolean()),
  iss_parameter: Type.Optional(Type.Boolean({ description: 'Responses have `iss` (RFC 9207).' })),
}

export const Metadata = Type.Object(METADATA, CLOSED)
export const NewClient = Type.Object(
  { client_id: Type.Optional(Type.String({ description: 'By default a new UUID.' })), ...METADATA },
  CLOSED,
)

type ClientMetadata = Static<typeof Metadata>

/** Registers a client. `client_id` may be chosen. Without a method it has a secret (RFC 7591, 2). */
export async function registerByMetadata(
  admin: Admin,
  { client_id = randomUUID(), ...metadata }: Static<typeof NewClient>,
): Promise<ChangedClient | AdminFailure> {
  const properties = readProperties(metadata)
  if (isFailure(properties)) return failProperty(properties)
  const app: ClientProperties = { ...CLIENT_DEFAULTS, authMethod: 'client_secret', scope: '', ...properties }
  return addClient(admin, client_id, app)
}

/** Changes the members that are present. A client that begins to use a secret gets one. */
export async function changeByMetadata(
  admin: Admin,
  id: string,
  metadata: ClientMetadata,
): Promise<ChangedClient | AdminFailure> {
  const client = await findClientRow(admin, id)
  if (isFailure(client)) return client
  const properties = readProperties(metadata)
  if (isFailure(properties)) return failProperty(properties)
  const { authMethod, ...others } = properties
  // A request that repeats the client's method does not replace its keys.
  return changeClient(admin, id, {
    ...others,
    ...(authMethod !== undefined && authMethod !== client.auth_method && { authMethod }),
  })
}

/** The properties of the members that are present. A key set replaces the URL of one, and the reverse. */
function readProperties(metadata: ClientMetadata): ClientChanges | ClientFault {
  const { jwks, jwks_uri, scope, token_endpoint_auth_method: method, ...others } = metadata
  const keys = jwks === undefined || jwks === null ? undefined : readRegisteredKeys(jwks)
  if (isFailure(keys)) return keys
  return {
    ...renameMembers(others),
    ...(scope !== undefined && { scope: normalizeScope(scope) }),
    ...(method !== undefined && { authMethod: AUTH_METHODS[method] }),
    ...((jwks !== undefined || jwks_uri !== undefined) && { jwks: keys, jwksUrl: jwks_uri ?? undefined }),
    ...(others.first_party && { approved: true }),
  }
}

const NAMES = {
  client_name: 'name',
  description: 'description',
  logo_uri: 'logoUrl',
  redirect_uris: 'redirectUris',
  post_logout_redirect_uris: 'postLogoutRedirectUris',
  initiate_login_uri: 'launchUrl',
  first_party: 'firstParty',
  pkce_required: 'pkceRequired',
  iss_parameter: 'issParameter',
} as const satisfies Partial<Record<keyof ClientMetadata, keyof ClientProperties>>

function renameMembers(members: Pick<ClientMetadata, keyof typeof NAMES>): ClientChanges {
  const names = Object.keys(NAMES) as readonly (keyof typeof NAMES)[]
  return Object.fromEntries(
    names.filter(name => members[name] !== undefined).map(name => [NAMES[name], members[name] ?? undefined]),
  )
}
