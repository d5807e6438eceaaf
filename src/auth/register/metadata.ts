import { isResourceType } from '../../fhir/index.ts'
import { findScopeListFault, LONGEST_SCOPE_LIST, parseScope } from '../../smart/index.ts'
import { hasPrivateKey, serializeKeySet } from '../client/assertion/client-key.ts'
import {
  findJwksUrlFault,
  findLaunchUrlFault,
  findLogoUrlFault,
  findRedirectUriFault,
} from '../client/urls.ts'
import { LIMITS } from '../limits.ts'
import { Refusal } from '../refusal.ts'

/** RFC 7591, 2. */
export type AuthMethod = 'none' | 'client_secret_basic' | 'client_secret_post' | 'private_key_jwt'

/** The checked metadata of a client (RFC 7591, 2). */
export interface ClientMetadata {
  readonly name: string | undefined
  readonly logoUrl: string | undefined
  readonly authMethod: AuthMethod
  readonly redirectUris: readonly string[]
  readonly postLogoutRedirectUris: readonly string[]
  readonly launchUrl: string | undefined
  readonly scope: string
  readonly grantTypes: readonly string[]
  readonly jwks: string | undefined
  readonly jwksUrl: string | undefined
}

const TOO_LONG = `it is longer than ${LIMITS.urlCharacters} characters`

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
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw makeInvalid('The body must be a JSON object.')
  const document: Document = { ...body }
  const authMethod = readChoice(document, 'token_endpoint_auth_method', AUTH_METHODS) ?? 'client_secret_basic'
  const grantTypes = readTexts(document, 'grant_types') ?? ['authorization_code']
  if (!grantTypes.every(type => GRANT_TYPES.includes(type)))
    throw makeInvalid('A grant type is not supported.')
  if (!(readTexts(document, 'response_types') ?? ['code']).every(type => type === 'code'))
    throw makeInvalid('The only response type is code.')
  if (grantTypes.includes('client_credentials') && authMethod !== 'private_key_jwt')
    throw makeInvalid('The grant type client_credentials needs private_key_jwt.')
  return {
    name: readText(document, 'client_name', LIMITS.nameCharacters),
    logoUrl: readUrl(document, 'logo_uri', findLogoUrlFault),
    authMethod,
    grantTypes,
    redirectUris: readRedirectUris(document, grantTypes),
    postLogoutRedirectUris: readUrls(document, 'post_logout_redirect_uris'),
    launchUrl: readUrl(document, 'initiate_login_uri', findLaunchUrlFault),
    scope: readScope(document, grantTypes),
    ...readKeys(document, authMethod),
  }
}

function readRedirectUris(document: Document, grantTypes: readonly string[]): readonly string[] {
  const uris = readUrls(document, 'redirect_uris')
  if (uris.length === 0 && grantTypes.includes('authorization_code'))
    throw new InvalidMetadata(
      'invalid_redirect_uri',
      'The grant type authorization_code needs a redirect_uri.',
    )
  return uris
}

function readUrls(document: Document, name: string): readonly string[] {
  const uris = readTexts(document, name) ?? []
  for (const uri of uris) {
    const fault = findRedirectUriFault(uri)
    const reason = uri.length > LIMITS.urlCharacters ? TOO_LONG : fault
    if (reason !== undefined)
      throw new InvalidMetadata('invalid_redirect_uri', `A URL in ${name} is invalid: ${reason}.`)
  }
  return [...new Set(uris)]
}

/** SMART scopes; `system/` only for backend services. */
function readScope(document: Document, grantTypes: readonly string[]): string {
  const list = readText(document, 'scope', LONGEST_SCOPE_LIST) ?? chooseDefaultScope(grantTypes)
  if (list.trim() === '') throw makeInvalid('The scope is empty.')
  const fault = findScopeListFault(list)
  if (fault !== undefined) throw makeInvalid(`The scope ${fault}.`)
  const parts = list.split(' ').filter(part => part !== '')
  for (const part of parts) {
    const parsed = parseScope(part)
    const known = parsed?.kind === 'plain' || parsed?.type === '*' || (parsed && isResourceType(parsed.type))
    if (!known) throw makeInvalid('A scope is not a SMART on FHIR R4 scope.')
    if (part.startsWith('system/') && !grantTypes.includes('client_credentials'))
      throw makeInvalid('The system/ scopes need the grant type client_credentials.')
    if (part.startsWith('__'))
      throw makeInvalid('Only an administrator can register scopes of this server itself.')
  }
  return [...new Set(parts)].join(' ')
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

function readKeys(document: Document, authMethod: AuthMethod) {
  const jwksUrl = readUrl(document, 'jwks_uri', findJwksUrlFault)
  const { jwks } = document
  if (jwks !== undefined && jwksUrl !== undefined) throw makeInvalid('Use either jwks or jwks_uri, not both.')
  if (hasPrivateKey(jwks)) throw makeInvalid('The jwks contains a private key; only public keys are allowed.')
  const keys = jwks === undefined ? undefined : serializeKeySet(jwks)
  if (jwks !== undefined && keys === undefined)
    throw makeInvalid(
      `The jwks has no key for RS384 or ES384 with a kid, or more than ${LIMITS.keys} keys or ${LIMITS.keySetCharacters} characters.`,
    )
  if (authMethod === 'private_key_jwt' && jwks === undefined && jwksUrl === undefined)
    throw makeInvalid('The method private_key_jwt needs jwks or jwks_uri.')
  return { jwks: keys, jwksUrl }
}

function readUrl(
  document: Document,
  name: string,
  findFault: (text: string) => string | undefined,
): string | undefined {
  const uri = readText(document, name, LIMITS.urlCharacters)
  const fault = uri === undefined ? undefined : findFault(uri)
  if (fault !== undefined) throw makeInvalid(`The ${name} is invalid: ${fault}.`)
  return uri
}

function readChoice<const Choice extends string>(
  document: Document,
  name: string,
  choices: readonly Choice[],
): Choice | undefined {
  const value = readText(document, name, 200)
  const choice = choices.find(one => one === value)
  if (value !== undefined && choice === undefined) throw makeInvalid(`The ${name} is not supported.`)
  return choice
}

function readText(document: Document, name: string, longest: number): string | undefined {
  const value = document[name]
  if (value === undefined || value === null) return undefined
  if (typeof value !== 'string' || value === '' || value.length > longest || /\p{Cc}/u.test(value))
    throw makeInvalid(`The ${name} must be a string of at most ${longest} characters.`)
  return value
}

function readTexts(document: Document, name: string): readonly string[] | undefined {
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
