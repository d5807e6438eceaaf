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
  /** Between the items of a list in a form, if they may contain spaces. */
  readonly separator?: RegExp
  /** Its field in the forms. */
  readonly field: string
  /** On pages. */
  readonly label: string
  /** Below its field. */
  readonly hint?: string
  /** In the OpenAPI document. */
  readonly about?: string
}

/** The properties of an app. The administration API, pages, registrations by apps and commands derive from these rows. */
export const CLIENT_FIELDS = {
  id: { member: 'client_id', option: 'id', field: 'client_id', kind: 'other', label: 'Client id' },
  name: { member: 'client_name', option: 'name', field: 'name', kind: 'text', label: 'Name' },
  description: {
    member: 'description',
    option: 'description',
    field: 'description',
    kind: 'text',
    label: 'Description',
  },
  logoUrl: { member: 'logo_uri', option: 'logo-url', field: 'logo_url', kind: 'text', label: 'Logo URL' },
  websiteUrl: {
    member: 'client_uri',
    option: 'website-url',
    field: 'website_url',
    kind: 'text',
    label: 'Website of the maker',
    about: 'The website of its maker.',
    hint: 'An https URL. Users see it, and the next three entries, when they decide whether to allow the app.',
  },
  policyUrl: {
    member: 'policy_uri',
    option: 'policy-url',
    field: 'policy_url',
    kind: 'text',
    label: 'Privacy notice',
    about: 'Its privacy notice.',
    hint: 'An https URL of a page that says what the maker does with the data.',
  },
  termsUrl: {
    member: 'tos_uri',
    option: 'terms-url',
    field: 'terms_url',
    kind: 'text',
    label: 'Terms of service',
    about: 'Its terms of service.',
    hint: 'An https URL.',
  },
  contacts: {
    member: 'contacts',
    option: 'contact',
    field: 'contacts',
    kind: 'list',
    separator: /\s*\n\s*/,
    label: 'Contacts',
    about: 'How to reach its maker.',
    hint: 'E-mail addresses or telephone numbers of the maker, one per line.',
  },
  launchUrl: {
    member: 'initiate_login_uri',
    option: 'launch-url',
    field: 'launch_url',
    kind: 'text',
    label: 'Launch URL',
    about: 'The launch URL.',
  },
  redirectUris: {
    member: 'redirect_uris',
    option: 'redirect-uri',
    field: 'redirect_uris',
    kind: 'list',
    label: 'Redirect URIs',
  },
  postLogoutRedirectUris: {
    member: 'post_logout_redirect_uris',
    option: 'post-logout-redirect-uri',
    field: 'post_logout_redirect_uris',
    kind: 'list',
    label: 'Redirect URIs after sign-out',
  },
  scope: { member: 'scope', option: 'scope', field: 'scope', kind: 'other', label: 'Scopes' },
  authMethod: {
    member: 'token_endpoint_auth_method',
    option: 'public',
    field: 'auth_method',
    kind: 'other',
    label: 'Kind of app',
  },
  jwks: { member: 'jwks', option: 'jwks-file', field: 'jwks', kind: 'other', label: 'Key set' },
  jwksUrl: {
    member: 'jwks_uri',
    option: 'jwks-url',
    field: 'jwks_url',
    kind: 'other',
    label: 'URL of the key set',
  },
  firstParty: {
    member: 'first_party',
    option: 'first-party',
    field: 'first_party',
    kind: 'flag',
    given: true,
    label: 'First-party',
    about: 'Its users are not asked for consent.',
  },
  approved: {
    member: 'approved',
    option: 'first-party',
    field: 'approved',
    kind: 'other',
    label: 'Approved',
  },
  pkceRequired: { member: 'pkce_required', option: 'pkce', field: 'pkce', kind: 'flag', label: 'PKCE' },
  issParameter: {
    member: 'iss_parameter',
    option: 'no-iss-parameter',
    field: 'iss',
    kind: 'flag',
    given: false,
    label: 'iss',
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

/** Those with one text or several. */
export const TEXT_FIELDS = PLAIN_FIELDS.filter(({ kind }) => kind !== 'flag')

/** Describes the properties that apps state themselves too, in the names of RFC 7591. */
export function describeApp(app: ClientProperties): Readonly<Record<string, unknown>> {
  const stated = TEXT_FIELDS.filter(({ property }) => app[property] !== undefined)
  return {
    ...Object.fromEntries(stated.map(({ member, property }) => [member, app[property]])),
    scope: app.scope,
    ...(app.jwks !== undefined && { jwks: JSON.parse(app.jwks) }),
    ...(app.jwksUrl !== undefined && { jwks_uri: app.jwksUrl }),
  }
}
