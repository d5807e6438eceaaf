import { randomUUID } from 'node:crypto'
import { isFailure } from '../../fhir/index.ts'
import type { ClientChanges } from '../oauth/clients/store-client.ts'
import {
  AUTH_METHODS,
  type AuthMethod,
  CLIENT_DEFAULTS,
  type ClientFault,
  type ClientProperties,
  normalizeScope,
  readRegisteredKeys,
} from '../oauth/clients/validate.ts'
import type { Admin, AdminFailure } from './action.ts'
import { addClient, type ChangedClient, changeClient, failProperty, findClientRow } from './clients.ts'

/** The metadata of a client that an administrator sets, in the names of RFC 7591 and of this server. `null`: no value. */
export interface ClientMetadata {
  readonly client_name?: string | null
  readonly description?: string | null
  readonly logo_uri?: string | null
  readonly redirect_uris?: readonly string[]
  readonly post_logout_redirect_uris?: readonly string[]
  readonly initiate_login_uri?: string | null
  readonly scope?: string
  readonly token_endpoint_auth_method?: AuthMethod
  readonly jwks?: object | null
  readonly jwks_uri?: string | null
  readonly first_party?: boolean
  readonly pkce_required?: boolean
  readonly iss_parameter?: boolean
}

/** Registers a client. `client_id` may be chosen. Without a method it has a secret (RFC 7591, 2). */
export async function registerByMetadata(
  admin: Admin,
  { client_id = randomUUID(), ...metadata }: ClientMetadata & { readonly client_id?: string },
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
