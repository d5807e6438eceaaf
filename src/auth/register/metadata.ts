import { isResourceType } from '../../fhir/index.ts'
import { findScopeListFault, LONGEST_SCOPE_LIST, parseScope } from '../../smart/index.ts'
import { jwksUrlFault, launchUrlFault, logoUrlFault, redirectUriFault } from '../client/addresses.ts'
import { holdsPrivateKey, keptKeySet } from '../client/assertion/client-key.ts'
import { LIMITS } from '../limits.ts'
import { Refusal } from '../refusal.ts'

/** How a client proves itself, in the words of RFC 7591. */
export type AuthMethod = 'none' | 'client_secret_basic' | 'client_secret_post' | 'private_key_jwt'

/** A client as it described itself (RFC 7591, 2), checked. */
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

/** Reads what a client says of itself. Members that we do not know are passed over (RFC 7591, 2). */
export function readClientMetadata(body: unknown): ClientMetadata | Refusal {
  try {
    return read(body)
  } catch (error) {
    if (error instanceof Unfit) return error.refusal
    throw error
  }
}

class Unfit extends Error {
  readonly refusal: Refusal
  constructor(code: 'invalid_client_metadata' | 'invalid_redirect_uri', text: string) {
    super(text)
    this.refusal = new Refusal(code, text)
  }
}

function read(body: unknown): ClientMetadata {
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw unfit('The body must be a JSON object.')
  const document: Document = { ...body }
  const authMethod = oneOf(document, 'token_endpoint_auth_method', AUTH_METHODS) ?? 'client_secret_basic'
  const grantTypes = texts(document, 'grant_types') ?? ['authorization_code']
  if (!grantTypes.every(type => GRANT_TYPES.includes(type))) throw unfit('A grant type is not supported.')
  if (!(texts(document, 'response_types') ?? ['code']).every(type => type === 'code'))
    throw unfit('The only response type is code.')
  if (grantTypes.includes('client_credentials') && authMethod !== 'private_key_jwt')
    throw unfit('The grant type client_credentials needs private_key_jwt.')
  return {
    name: text(document, 'client_name', LIMITS.nameCharacters),
    logoUrl: address(document, 'logo_uri', logoUrlFault),
    authMethod,
    grantTypes,
    redirectUris: redirectUris(document, grantTypes),
    postLogoutRedirectUris: addresses(document, 'post_logout_redirect_uris'),
    launchUrl: address(document, 'initiate_login_uri', launchUrlFault),
    scope: scope(document, grantTypes),
    ...keys(document, authMethod),
  }
}

function redirectUris(document: Document, grantTypes: readonly string[]): readonly string[] {
  const uris = addresses(document, 'redirect_uris')
  if (uris.length === 0 && grantTypes.includes('authorization_code'))
    throw new Unfit('invalid_redirect_uri', 'The grant type authorization_code needs a redirect_uri.')
  return uris
}

function addresses(document: Document, name: string): readonly string[] {
  const uris = texts(document, name) ?? []
  for (const uri of uris) {
    const fault = redirectUriFault(uri)
    const reason = uri.length > LIMITS.urlCharacters ? TOO_LONG : fault
    if (reason !== undefined)
      throw new Unfit('invalid_redirect_uri', `An address of ${name} cannot be used: ${reason}.`)
  }
  return [...new Set(uris)]
}

/** Scopes of the SMART grammar, `system/` only for back ends. */
function scope(document: Document, grantTypes: readonly string[]): string {
  const list = text(document, 'scope', LONGEST_SCOPE_LIST) ?? defaultScope(grantTypes)
  if (list.trim() === '') throw unfit('The scope is empty.')
  const fault = findScopeListFault(list)
  if (fault !== undefined) throw unfit(`The scope ${fault}.`)
  const parts = list.split(' ').filter(part => part !== '')
  for (const part of parts) {
    const parsed = parseScope(part)
    const known = parsed?.kind === 'plain' || parsed?.type === '*' || (parsed && isResourceType(parsed.type))
    if (!known) throw unfit('A scope is none of SMART on FHIR R4.')
    if (part.startsWith('system/') && !grantTypes.includes('client_credentials'))
      throw unfit('The system/ scopes need the grant type client_credentials.')
    if (part.startsWith('__')) throw unfit('Scopes of this server itself are given by its administrator.')
  }
  return [...new Set(parts)].join(' ')
}

/** RFC 7591, 2: a client that names no scopes may be given some. Its users, or an administrator, still decide. */
function defaultScope(grantTypes: readonly string[]): string {
  return [
    ...(grantTypes.includes('authorization_code')
      ? ['launch launch/patient openid fhirUser patient/*.rs']
      : []),
    ...(grantTypes.includes('refresh_token') ? ['online_access offline_access'] : []),
    ...(grantTypes.includes('client_credentials') ? ['system/*.rs'] : []),
  ].join(' ')
}

function keys(document: Document, authMethod: AuthMethod) {
  const jwksUrl = address(document, 'jwks_uri', jwksUrlFault)
  const { jwks } = document
  if (jwks !== undefined && jwksUrl !== undefined) throw unfit('Either jwks or jwks_uri, not both.')
  if (holdsPrivateKey(jwks)) throw unfit('The jwks holds a private key; only public keys belong there.')
  const kept = jwks === undefined ? undefined : keptKeySet(jwks)
  if (jwks !== undefined && kept === undefined)
    throw unfit(
      `The jwks has no key for RS384 or ES384 with a kid, or more than ${LIMITS.keys} keys or ${LIMITS.keySetCharacters} characters.`,
    )
  if (authMethod === 'private_key_jwt' && jwks === undefined && jwksUrl === undefined)
    throw unfit('The method private_key_jwt needs jwks or jwks_uri.')
  return { jwks: kept, jwksUrl }
}

function address(
  document: Document,
  name: string,
  faultOf: (text: string) => string | undefined,
): string | undefined {
  const uri = text(document, name, LIMITS.urlCharacters)
  const fault = uri === undefined ? undefined : faultOf(uri)
  if (fault !== undefined) throw unfit(`The ${name} cannot be used: ${fault}.`)
  return uri
}

function oneOf<const Choice extends string>(
  document: Document,
  name: string,
  choices: readonly Choice[],
): Choice | undefined {
  const value = text(document, name, 200)
  const choice = choices.find(one => one === value)
  if (value !== undefined && choice === undefined) throw unfit(`The ${name} is not supported.`)
  return choice
}

function text(document: Document, name: string, longest: number): string | undefined {
  const value = document[name]
  if (value === undefined || value === null) return undefined
  if (typeof value !== 'string' || value === '' || value.length > longest || /\p{Cc}/u.test(value))
    throw unfit(`The ${name} must be a text of at most ${longest} characters.`)
  return value
}

function texts(document: Document, name: string): readonly string[] | undefined {
  const value = document[name]
  if (value === undefined || value === null) return undefined
  if (!Array.isArray(value) || value.length > LIMITS.urls || !value.every(one => typeof one === 'string'))
    throw name === 'redirect_uris'
      ? new Unfit('invalid_redirect_uri', `The redirect_uris must be a list of at most ${LIMITS.urls} URLs.`)
      : unfit(`The ${name} must be a list of at most ${LIMITS.urls} strings.`)
  return value
}

function unfit(text: string): Unfit {
  return new Unfit('invalid_client_metadata', text)
}
