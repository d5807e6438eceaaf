import { randomUUID } from 'node:crypto'
import { type Static, type TSchema, Type } from 'typebox'
import { isFailure } from '../../../core/index.ts'
import { type JsonSchema, Members } from '../../../endpoint/index.ts'
import { PLAIN_FIELDS, type PlainMember, type PlainProperty } from '../../oauth/clients/fields.ts'
import type { ClientChanges } from '../../oauth/clients/store-client.ts'
import {
  AUTH_METHODS,
  CLIENT_DEFAULTS,
  type ClientFault,
  type ClientProperties,
  normalizeScope,
  readRegisteredKeys,
} from '../../oauth/clients/validate.ts'
import type { Admin, AdminFailure } from '../base/action.ts'
import { addClient, type ChangedClient, changeClient, failProperty, findClientRow } from './clients.ts'

export const Texts = Type.Array(Type.String())
export const Keys = Type.Object({ keys: Type.Array(Type.Object({})) })
const OptionalText = Type.Union([Type.String({ minLength: 1 }), Type.Null()])
const SET = { text: OptionalText, list: Texts, flag: Type.Boolean(), other: Type.Unknown() } as const

/** The members that an administrator sets (RFC 7591, 2; OpenID Connect Registration, 2; of this server). */
const METADATA = {
  ...Object.fromEntries(
    PLAIN_FIELDS.map(({ member, kind, about }) => [member, Type.Optional(describe(SET[kind], about))]),
  ),
  scope: Type.Optional(
    Type.String({
      description:
        'The scopes that the client may request, or `sallyport/admin` or `sallyport/admin.read` alone for a client of this API, or `sallyport/audit` alone for a FHIR server that sends audit records.',
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
  jwks_uri: Type.Optional(describe(OptionalText)),
}

function describe<Schema extends TSchema>(schema: Schema, about?: string): Schema {
  const { anyOf }: JsonSchema = schema
  const texts = [about, anyOf ? '`null`: no value.' : undefined]
  const description = texts.filter(text => text !== undefined).join(' ')
  return description === '' ? schema : { ...schema, description }
}

export const Metadata = Members(METADATA)
export const NewClient = Members({
  client_id: Type.Optional(Type.String({ description: 'By default a new UUID.' })),
  ...METADATA,
})

type PlainMembers = Readonly<Partial<Record<PlainMember, unknown>>>
type ClientMetadata = PlainMembers & Static<typeof Metadata>

/** Registers a client. `client_id` may be chosen. Without a method it has a secret (RFC 7591, 2). */
export async function registerByMetadata(
  admin: Admin,
  { client_id = randomUUID(), ...metadata }: PlainMembers & Static<typeof NewClient>,
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
  const { jwks, jwks_uri, scope, token_endpoint_auth_method: method } = metadata
  const keys = jwks === undefined || jwks === null ? undefined : readRegisteredKeys(jwks)
  if (isFailure(keys)) return keys
  const plain = renameMembers(metadata)
  return {
    ...plain,
    ...(scope !== undefined && { scope: normalizeScope(scope) }),
    ...(method !== undefined && { authMethod: AUTH_METHODS[method] }),
    ...((jwks !== undefined || jwks_uri !== undefined) && { jwks: keys, jwksUrl: jwks_uri ?? undefined }),
    ...(plain.firstParty && { approved: true }),
  }
}

/** The schema has checked the types of the members. */
function renameMembers(members: PlainMembers): Pick<ClientChanges, PlainProperty> {
  const present = PLAIN_FIELDS.filter(({ member }) => members[member] !== undefined)
  return Object.fromEntries(present.map(({ member, property }) => [property, members[member] ?? undefined]))
}
