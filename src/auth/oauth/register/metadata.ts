import { isFailure, isRecord } from '../../../fhir/index.ts'
import { LONGEST_SCOPE_LIST } from '../../../smart/index.ts'
import { LIMITS } from '../../base/limits.ts'
import { Refusal } from '../../base/refusal.ts'
import {
  CLIENT_DEFAULTS,
  ClientFault,
  type ClientProperties,
  findClientFault,
  hasOwnScope,
  normalizeScope,
  readRegisteredKeys,
} from '../clients/validate.ts'

/** RFC 7591, 2. */
type AuthMethod = 'none' | 'client_secret_basic' | 'client_secret_post' | 'private_key_jwt'

/** The checked metadata of a client (RFC 7591, 2). */
export interface ClientMetadata {
  readonly app: ClientProperties
  readonly authMethod: AuthMethod
  readonly grantTypes: readonly string[]
}

type Document = Readonly<Record<string, unknown>>

const AUTH_METHODS: readonly AuthMethod[] = [
  'none',
  'client_secret_basic',
  'client_secret_post',
  'private_key_jwt',
]
const GRANT_TYPES: readonly string[] = ['authorization_code', 'refresh_token', 'client_credentials']

/** Reads the metadata of a client. Unknown members are ignored (RFC 7591, 2). */
export function readClientMetadata(body: unknown): ClientMetadata | Refusal {
  try {
    return readDocument(body)
  } catch (error) {
    if (error instanceof InvalidMetadata) return error.refusal
    throw error
  }
}

class InvalidMetadata extends Error {
  readonly refusal: Refusal
  constructor(code: 'invalid_client_metadata' | 'invalid_redirect_uri', text: string) {
    super(text)
    this.refusal = new Refusal(code, text)
  }
}

function readDocument(body: unknown): ClientMetadata {
  if (!isRecord(body)) throw makeInvalid('The body must be a JSON object.')
  const document: Document = body
  if (Object.keys(document).length > LIMITS.metadataMembers)
    throw makeInvalid(`The body has more than ${LIMITS.metadataMembers} members.`)
  const authMethod = readChoice(document, 'token_endpoint_auth_method', AUTH_METHODS) ?? 'client_secret_basic'
  const grantTypes = readLimitedTexts(document, 'grant_types') ?? ['authorization_code']
  if (!grantTypes.every(type => GRANT_TYPES.includes(type)))
    throw makeInvalid('A grant type is not supported.')
  if (!(readLimitedTexts(document, 'response_types') ?? ['code']).every(type => type === 'code'))
    throw makeInvalid('The only response type is code.')
  if (grantTypes.includes('client_credentials') && authMethod !== 'private_key_jwt')
    throw makeInvalid('The grant type client_credentials needs private_key_jwt.')
  const app: ClientProperties = {
    ...CLIENT_DEFAULTS,
    approved: false,
    authMethod: hasSecret(authMethod) ? 'client_secret' : authMethod,
    name: readLimitedText(document, 'client_name', LIMITS.nameCharacters),
    logoUrl: readLimitedText(document, 'logo_uri', LIMITS.urlCharacters),
    redirectUris: [...new Set(readLimitedTexts(document, 'redirect_uris'))],
    postLogoutRedirectUris: [...new Set(readLimitedTexts(document, 'post_logout_redirect_uris'))],
    launchUrl: readLimitedText(document, 'initiate_login_uri', LIMITS.urlCharacters),
    scope: readScope(document, grantTypes),
    jwksUrl: readLimitedText(document, 'jwks_uri', LIMITS.urlCharacters),
    jwks: readJwks(document),
  }
  checkApp(app, grantTypes)
  return { app, authMethod, grantTypes }
}

function hasSecret(method: AuthMethod): method is 'client_secret_basic' | 'client_secret_post' {
  return method === 'client_secret_basic' || method === 'client_secret_post'
}

/** The members of the properties that may be at fault. */
const MEMBERS: Partial<Record<ClientFault['property'], string>> = {
  name: 'client_name',
  logoUrl: 'logo_uri',
  redirectUris: 'redirect_uris',
  postLogoutRedirectUris: 'post_logout_redirect_uris',
  launchUrl: 'initiate_login_uri',
  jwksUrl: 'jwks_uri',
}

function checkApp(app: ClientProperties, grantTypes: readonly string[]): void {
  const fault = findClientFault(app)
  if (fault) throw toInvalid(fault)
  if (grantTypes.includes('authorization_code') && app.redirectUris.length === 0)
    throw toInvalid(new ClientFault('redirectUris', 'the grant type authorization_code needs one'))
  if (/(^| )system\//.test(app.scope) && !grantTypes.includes('client_credentials'))
    throw makeInvalid('The system/ scopes need the grant type client_credentials.')
  if (hasOwnScope(app.scope))
    throw makeInvalid('Only an administrator can register scopes of this server itself.')
}

function toInvalid({ property, text }: ClientFault): InvalidMetadata {
  const code =
    property === 'redirectUris' || property === 'postLogoutRedirectUris'
      ? 'invalid_redirect_uri'
      : 'invalid_client_metadata'
  return new InvalidMetadata(code, `The ${MEMBERS[property] ?? property} is invalid: ${text}.`)
}

function readScope(document: Document, grantTypes: readonly string[]): string {
  return normalizeScope(
    readLimitedText(document, 'scope', LONGEST_SCOPE_LIST) ?? chooseDefaultScope(grantTypes),
  )
}

/** RFC 7591, 2: the default scopes of a client. Its users, or an administrator, still decide. */
function chooseDefaultScope(grantTypes: readonly string[]): string {
  return [
    ...(grantTypes.includes('authorization_code')
      ? ['launch launch/patient openid fhirUser patient/*.rs']
      : []),
    ...(grantTypes.includes('refresh_token') ? ['online_access offline_access'] : []),
    ...(grantTypes.includes('client_credentials') ? ['system/*.rs'] : []),
  ].join(' ')
}

function readJwks({ jwks }: Document): string | undefined {
  const keys = jwks === undefined ? undefined : readRegisteredKeys(jwks)
  if (isFailure(keys)) throw toInvalid(keys)
  return keys
}

function readChoice<const Choice extends string>(
  document: Document,
  name: string,
  choices: readonly Choice[],
): Choice | undefined {
  const value = readLimitedText(document, name, 200)
  const choice = choices.find(one => one === value)
  if (value !== undefined && choice === undefined) throw makeInvalid(`The ${name} is not supported.`)
  return choice
}

function readLimitedText(document: Document, name: string, longest: number): string | undefined {
  const value = document[name]
  if (value === undefined || value === null) return undefined
  if (typeof value !== 'string' || value === '' || value.length > longest || /\p{Cc}/u.test(value))
    throw makeInvalid(`The ${name} must be a string of at most ${longest} characters.`)
  return value
}

function readLimitedTexts(document: Document, name: string): readonly string[] | undefined {
  const value = document[name]
  if (value === undefined || value === null) return undefined
  if (!Array.isArray(value) || value.length > LIMITS.urls || !value.every(one => typeof one === 'string'))
    throw name === 'redirect_uris'
      ? new InvalidMetadata(
          'invalid_redirect_uri',
          `The redirect_uris must be a list of at most ${LIMITS.urls} URLs.`,
        )
      : makeInvalid(`The ${name} must be a list of at most ${LIMITS.urls} strings.`)
  return value
}

function makeInvalid(text: string): InvalidMetadata {
  return new InvalidMetadata('invalid_client_metadata', text)
}
