import type { ClientProperties } from './validate.ts'

interface ClientField {
  /** Its name in RFC 7591, in OpenID Connect Registration, or on this server. */
  readonly member: string
  /** Its option on the command line, or the option that sets it. */
  readonly option: string
  /** Properties of the same kind are read, stored and shown in the same way. */
  readonly kind: 'text' | 'list' | 'flag' | 'other'
  /** The value of a flag if its option is present. */
  readonly given?: boolean
  /** In the OpenAPI document. */
  readonly about?: string
}

/** The properties of an app. The administration API, registrations by apps and commands derive from these rows. */
export const CLIENT_FIELDS = {
  id: { member: 'client_id', option: 'id', kind: 'other' },
  name: { member: 'client_name', option: 'name', kind: 'text' },
  description: { member: 'description', option: 'description', kind: 'text' },
  logoUrl: { member: 'logo_uri', option: 'logo-url', kind: 'text' },
  websiteUrl: {
    member: 'client_uri',
    option: 'website-url',
    kind: 'text',
    about: 'The website of its maker.',
  },
  policyUrl: { member: 'policy_uri', option: 'policy-url', kind: 'text', about: 'Its privacy notice.' },
  termsUrl: { member: 'tos_uri', option: 'terms-url', kind: 'text', about: 'Its terms of service.' },
  contacts: { member: 'contacts', option: 'contact', kind: 'list', about: 'How to reach its maker.' },
  launchUrl: {
    member: 'initiate_login_uri',
    option: 'launch-url',
    kind: 'text',
    about: 'The launch URL.',
  },
  redirectUris: { member: 'redirect_uris', option: 'redirect-uri', kind: 'list' },
  postLogoutRedirectUris: {
    member: 'post_logout_redirect_uris',
    option: 'post-logout-redirect-uri',
    kind: 'list',
  },
  scope: { member: 'scope', option: 'scope', kind: 'other' },
  authMethod: { member: 'token_endpoint_auth_method', option: 'public', kind: 'other' },
  jwks: { member: 'jwks', option: 'jwks-file', kind: 'other' },
  jwksUrl: { member: 'jwks_uri', option: 'jwks-url', kind: 'other' },
  firstParty: {
    member: 'first_party',
    option: 'first-party',
    kind: 'flag',
    given: true,
    about: 'Its users are not asked for consent.',
  },
  approved: { member: 'approved', option: 'first-party', kind: 'other' },
  pkceRequired: { member: 'pkce_required', option: 'pkce', kind: 'flag' },
  issParameter: {
    member: 'iss_parameter',
    option: 'no-iss-parameter',
    kind: 'flag',
    given: false,
    about: 'Responses have `iss` (RFC 9207).',
  },
} as const satisfies Readonly<Record<'id' | keyof ClientProperties, ClientField>>

type PropertyOf<Kind> = {
  [Name in keyof typeof CLIENT_FIELDS]: (typeof CLIENT_FIELDS)[Name]['kind'] extends Kind ? Name : never
}[keyof typeof CLIENT_FIELDS]

/** The properties that need no rule of their own. */
export type PlainProperty = PropertyOf<'text' | 'list' | 'flag'>

export type PlainMember = (typeof CLIENT_FIELDS)[PlainProperty]['member']

type PlainField = ClientField & { readonly member: PlainMember; readonly property: PlainProperty }

export const PLAIN_FIELDS = Object.entries<ClientField>(CLIENT_FIELDS)
  .filter(([, { kind }]) => kind !== 'other')
  .map(([property, field]) => ({ ...field, property })) as readonly PlainField[]

/** Describes the properties that apps state themselves too, in the names of RFC 7591. */
export function describeApp(app: ClientProperties): Readonly<Record<string, unknown>> {
  const stated = PLAIN_FIELDS.filter(({ kind, property }) => kind !== 'flag' && app[property] !== undefined)
  return {
    ...Object.fromEntries(stated.map(({ member, property }) => [member, app[property]])),
    scope: app.scope,
    ...(app.jwks !== undefined && { jwks: JSON.parse(app.jwks) }),
    ...(app.jwksUrl !== undefined && { jwks_uri: app.jwksUrl }),
  }
}
