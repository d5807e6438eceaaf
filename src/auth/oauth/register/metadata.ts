import { isFailure, isPlainLine, isRecord, ON_PLAIN_LINE } from '../../../core/index.ts'
import { MAX_SCOPE_LIST_CHARACTERS } from '../../../smart/index.ts'
import { makeFault } from '../../base/fault.ts'
import { LIMITS } from '../../base/limits.ts'
import { type AuthRefusal, refuse } from '../../base/refusal.ts'
import { CLIENT_FIELDS } from '../clients/fields.ts'
import {
  AUTH_METHODS,
  type AuthMethod,
  CLIENT_DEFAULTS,
  ClientFault,
  type ClientProperties,
  describeClientFaults,
  findClientFault,
  hasOwnScope,
  nameValue,
  normalizeScope,
  readRegisteredKeys,
} from '../clients/validate.ts'

/** The checked metadata of a client (RFC 7591, 2). */
export interface ClientMetadata {
  readonly app: ClientProperties
  readonly authMethod: AuthMethod
  readonly grantTypes: readonly string[]
}

const GRANT_TYPES: readonly string[] = ['authorization_code', 'refresh_token', 'client_credentials']

/** Reads the metadata of a client. Unknown members are ignored (RFC 7591, 2). */
export function readClientMetadata(body: unknown): ClientMetadata | AuthRefusal {
  const members = readMembers(body)
  if (isFailure(members)) return members
  const { texts, lists, jwks } = members
  const authMethod = texts.get('token_endpoint_auth_method') ?? 'client_secret_basic'
  if (!isAuthMethod(authMethod)) return refuse('metadata-auth-method-unsupported')
  const grantTypes = lists.get('grant_types') ?? ['authorization_code']
  if (!grantTypes.every(type => GRANT_TYPES.includes(type))) return refuse('metadata-grant-type-unsupported')
  if (!(lists.get('response_types') ?? ['code']).every(type => type === 'code'))
    return refuse('metadata-response-type-unsupported')
  if (grantTypes.includes('client_credentials') && authMethod !== 'private_key_jwt')
    return refuse('metadata-credentials-need-keys')
  const keys = jwks === undefined ? undefined : readRegisteredKeys(jwks)
  if (isFailure(keys)) return refuseProperty(keys)
  const app: ClientProperties = {
    ...CLIENT_DEFAULTS,
    approved: false,
    authMethod: AUTH_METHODS[authMethod],
    name: texts.get('client_name'),
    logoUrl: texts.get('logo_uri'),
    websiteUrl: texts.get('client_uri'),
    policyUrl: texts.get('policy_uri'),
    termsUrl: texts.get('tos_uri'),
    contacts: [...new Set(lists.get('contacts'))],
    redirectUris: [...new Set(lists.get('redirect_uris'))],
    postLogoutRedirectUris: [...new Set(lists.get('post_logout_redirect_uris'))],
    launchUrl: texts.get('initiate_login_uri'),
    scope: normalizeScope(texts.get('scope') ?? chooseDefaultScope(grantTypes)),
    jwksUrl: texts.get('jwks_uri'),
    jwks: keys,
  }
  return checkProperties(app, grantTypes) ?? { app, authMethod, grantTypes }
}

/** The members that are texts, and their longest values. */
const TEXTS: Readonly<Record<string, number>> = {
  token_endpoint_auth_method: 200,
  client_name: LIMITS.nameCharacters,
  logo_uri: LIMITS.urlCharacters,
  client_uri: LIMITS.urlCharacters,
  policy_uri: LIMITS.urlCharacters,
  tos_uri: LIMITS.urlCharacters,
  initiate_login_uri: LIMITS.urlCharacters,
  scope: MAX_SCOPE_LIST_CHARACTERS,
  jwks_uri: LIMITS.urlCharacters,
}

const LISTS = [
  'grant_types',
  'response_types',
  'redirect_uris',
  'post_logout_redirect_uris',
  'contacts',
] as const

interface Members {
  readonly texts: ReadonlyMap<string, string>
  readonly lists: ReadonlyMap<string, readonly string[]>
  readonly jwks: unknown
}

function readMembers(body: unknown): Members | AuthRefusal {
  if (!isRecord(body)) return refuse('metadata-malformed')
  if (Object.keys(body).length > LIMITS.metadataMembers)
    return refuse('metadata-has-too-many-members', { most: LIMITS.metadataMembers })
  const texts = new Map<string, string>()
  const lists = new Map<string, readonly string[]>()
  for (const [name, max] of Object.entries(TEXTS)) {
    const value = body[name] ?? undefined
    if (value === undefined) continue
    if (typeof value !== 'string' || !isPlainLine(value, max))
      return refuse('metadata-text-malformed', { member: name, longest: max, form: ON_PLAIN_LINE })
    texts.set(name, value)
  }
  for (const name of LISTS) {
    const value = body[name] ?? undefined
    if (value === undefined) continue
    if (!Array.isArray(value) || value.length > LIMITS.urls || !value.every(one => typeof one === 'string'))
      return name === 'redirect_uris'
        ? refuse('metadata-redirect-uris-malformed', { most: LIMITS.urls })
        : refuse('metadata-list-malformed', { member: name, most: LIMITS.urls })
    lists.set(name, value)
  }
  return { texts, lists, jwks: body.jwks }
}

function isAuthMethod(text: string): text is AuthMethod {
  return Object.hasOwn(AUTH_METHODS, text)
}

function checkProperties(app: ClientProperties, grantTypes: readonly string[]): AuthRefusal | undefined {
  const fault = findClientFault(app)
  if (fault) return refuseProperty(fault)
  if (grantTypes.includes('authorization_code') && app.redirectUris.length === 0)
    return refuseProperty(new ClientFault('redirectUris', makeFault('redirect-uri-of-grant-missing')))
  if (/(^| )system\//.test(app.scope) && !grantTypes.includes('client_credentials'))
    return refuse('metadata-system-scopes-need-credentials')
  return hasOwnScope(app.scope) ? refuse('metadata-own-scopes') : undefined
}

function refuseProperty(fault: ClientFault): AuthRefusal {
  const { property } = fault
  const isRedirectUri = property === 'redirectUris' || property === 'postLogoutRedirectUris'
  const faults = describeClientFaults(fault, one => {
    const { member } = CLIENT_FIELDS[one.property]
    return makeFault('registered-member-invalid', { member, fault: isPlain(one) ? nameValue(one) : one })
  })
  return refuse(isRedirectUri ? 'metadata-redirect-uri-invalid' : 'metadata-property-invalid', { faults })
}

/** RFC 6749, 5.2: the characters of an error description. */
function isPlain({ value = '' }: ClientFault): boolean {
  return /^[\x20-\x21\x23-\x5b\x5d-\x7e]*$/.test(value)
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
