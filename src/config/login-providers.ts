import { resolve } from 'node:path'
import { isRecord, parseJson } from '../core/index.ts'
import type { SettingType } from './setting-types.ts'
import * as types from './setting-types.ts'
import { readEach, SettingsError } from './settings-error.ts'

/** Selects users by a claim: one of its values must be listed. */
export interface ClaimRule {
  readonly claim: string
  readonly values: readonly string[]
}

/** How a user's Practitioner follows from the claims. */
export type FhirUserRule =
  | { readonly kind: 'claim'; readonly claim: string }
  | { readonly kind: 'template'; readonly template: string }
  | { readonly kind: 'search'; readonly search: string }

interface Provider {
  /** In URLs and logs. */
  readonly id: string
  /** On the sign-in page. */
  readonly name: string
  readonly usernameClaim: string
  readonly displayNameClaim: string
  readonly fhirUser: FhirUserRule | undefined
  /** Undefined: every user of the provider. */
  readonly allow: ClaimRule | undefined
  /** Undefined: no administrators. */
  readonly admin: ClaimRule | undefined
  /** Whether an unknown user gets an account. */
  readonly provision: boolean
}

export interface OidcProvider extends Provider {
  readonly kind: 'oidc'
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: string | undefined
  readonly clientSecretFile: string | undefined
  readonly clientKeyFile: string | undefined
  readonly scopes: string
  readonly acrValues: readonly string[]
  readonly maxAge: number | undefined
}

export interface LdapProvider extends Provider {
  readonly kind: 'ldap'
  readonly url: string
  readonly bindDn: string | undefined
  readonly bindPasswordFile: string | undefined
  readonly baseDn: string
  /** Has `{username}`. */
  readonly userFilter: string
  /** Has `{dn}` or `{username}`. */
  readonly groupFilter: string | undefined
  readonly tlsCa: string | undefined
}

export type LoginProvider = OidcProvider | LdapProvider

/** `claim=value,value`. */
export const claimRule: SettingType<ClaimRule> = {
  expected: 'claim=value,value',
  parse: text => {
    const [, claim, values] = /^([^=]+)=(.+)$/.exec(text) ?? []
    return claim === undefined || values === undefined ? undefined : makeClaimRule(claim, values.split(','))
  },
}

/** A template has `{`, a search also has `?`. */
export const fhirUserRule: SettingType<FhirUserRule> = {
  expected:
    "a claim's name, a template such as Practitioner/{claim}, or a search such as Practitioner?identifier=urn:x|{claim}",
  parse: text => {
    if (text.includes('?')) return makeFhirUserRule('search', text)
    return makeFhirUserRule(text.includes('{') ? 'template' : 'claim', text)
  },
}

/** `sallyport.yaml` has a list; an environment variable has the same list as JSON. */
export const loginProviders: SettingType<readonly LoginProvider[]> = {
  expected: 'a list of sign-in providers (docs/how-to/sign-in.md)',
  structured: true,
  parse: text => {
    const list = parseJson(text)
    if (!Array.isArray(list)) return undefined
    return readEach([...list.entries()], ([at, entry]) => readProvider(entry, at))
  },
  resolve: (providers, folder) => providers.map(provider => resolvePaths(provider, folder)),
  show: showIds,
}

/** A list of things that have ids. */
export function showIds(list: readonly { readonly id: string }[]): readonly string[] | undefined {
  return list.length === 0 ? undefined : list.map(({ id }) => id)
}

function resolvePaths(provider: LoginProvider, folder: string): LoginProvider {
  const absolute = (path: string | undefined) => (path === undefined ? undefined : resolve(folder, path))
  if (provider.kind === 'ldap')
    return {
      ...provider,
      bindPasswordFile: absolute(provider.bindPasswordFile),
      tlsCa: absolute(provider.tlsCa),
    }
  return {
    ...provider,
    clientSecretFile: absolute(provider.clientSecretFile),
    clientKeyFile: absolute(provider.clientKeyFile),
  }
}

/** The provider of `SMART_LOGIN_ISSUER` and the settings beside it. */
export const SINGLE_PROVIDER_ID = 'default'

export const DEFAULT_SCOPES = 'openid profile'

export const OIDC_CLAIMS = { usernameClaim: 'preferred_username', displayNameClaim: 'name' } as const

/** Reasons why the providers cannot be used together, one phrase each. */
export function findProviderConflicts(providers: readonly LoginProvider[]): readonly string[] {
  const ids = providers.map(provider => provider.id)
  const issuers = providers.map(getProviderIssuer)
  return [
    ...findRepeated(ids).map(id => `two sign-in providers have the id ${id}`),
    ...findRepeated(issuers).map(issuer => `two sign-in providers have the issuer ${issuer}`),
  ]
}

/** The issuer of a provider's users. A directory has no issuer, so its id stands for it. */
export function getProviderIssuer(provider: LoginProvider): string {
  return provider.kind === 'oidc' ? provider.issuer : `ldap:${provider.id}`
}

function findRepeated(texts: readonly string[]): readonly string[] {
  return [...new Set(texts.filter((text, at) => texts.indexOf(text) !== at))]
}

interface Field<T> {
  readonly expected: string
  read(value: unknown): T | undefined
  readonly required?: true
}

type Fields = Readonly<Record<string, Field<unknown>>>
type Read<F extends Fields> = {
  readonly [Name in keyof F]: F[Name] extends { readonly required: true } & Field<infer T>
    ? T
    : F[Name] extends Field<infer T>
      ? T | undefined
      : never
}

function defineOptional<T>(type: SettingType<T>): Field<T> {
  const read = (value: unknown) => {
    const text = joinList(value, type.separator) ?? value
    return typeof text === 'object' || text === undefined ? undefined : type.parse(String(text))
  }
  return { expected: type.expected, read }
}

function joinList(value: unknown, separator: string | undefined): string | undefined {
  return Array.isArray(value) && separator !== undefined ? value.join(separator) : undefined
}

function defineRequired<T>(type: SettingType<T>): Field<T> & { readonly required: true } {
  return { ...defineOptional(type), required: true }
}

const nestedFhirUser: Field<FhirUserRule> = {
  expected: 'exactly one of claim, template and search',
  read: value => {
    const [entry, ...more] = isRecord(value) ? Object.entries(value) : []
    if (entry === undefined || more.length > 0 || typeof entry[1] !== 'string') return undefined
    return makeFhirUserRule(entry[0], entry[1])
  },
}

const nestedClaimRule: Field<ClaimRule> = {
  expected: 'a claim and a list of values',
  read: value => {
    if (!isRecord(value) || Object.keys(value).length !== 2) return undefined
    const { claim, values } = value
    return typeof claim === 'string' && Array.isArray(values) ? makeClaimRule(claim, values) : undefined
  },
}

function makeClaimRule(claim: string, values: readonly unknown[]): ClaimRule | undefined {
  const texts = values.flatMap(value =>
    typeof value === 'string' && value.trim() !== '' ? [value.trim()] : [],
  )
  return claim.trim() === '' || texts.length === 0 || texts.length !== values.length
    ? undefined
    : { claim: claim.trim(), values: texts }
}

function makeFhirUserRule(kind: string, text: string): FhirUserRule | undefined {
  if (kind === 'claim') return /^[^\s{}?]+$/.test(text) ? { kind, claim: text } : undefined
  const placeholder = /\{[^{}\s]+\}/.test(text)
  if (kind === 'template')
    return placeholder && /^Practitioner\/[^?\s]+$/.test(text) ? { kind, template: text } : undefined
  if (kind === 'search')
    return placeholder && /^Practitioner\?[^\s=]+=\S+$/.test(text) ? { kind, search: text } : undefined
  return undefined
}

const COMMON = {
  id: defineRequired(types.providerId),
  name: defineOptional(types.headerText),
  kind: defineOptional(types.oneOf('oidc', 'ldap')),
  'username-claim': defineOptional(types.claimName),
  'display-name-claim': defineOptional(types.claimName),
  'fhir-user': nestedFhirUser,
  allow: nestedClaimRule,
  admin: nestedClaimRule,
  provision: defineOptional(types.flag),
} as const

const OIDC = {
  ...COMMON,
  issuer: defineRequired(types.issuer),
  'client-id': defineRequired(types.clientId),
  'client-secret': defineOptional(types.headerText),
  'client-secret-file': defineOptional(types.path),
  'client-key-file': defineOptional(types.path),
  scopes: defineOptional(types.oidcScopes),
  'acr-values': defineOptional(types.acrValues),
  'max-age': defineOptional(types.wholeNumber(0, 31_536_000)),
} as const

const LDAP = {
  ...COMMON,
  url: defineRequired(types.ldapUrl),
  'bind-dn': defineOptional(types.distinguishedName),
  'bind-password-file': defineOptional(types.path),
  'base-dn': defineRequired(types.distinguishedName),
  'user-filter': defineOptional(types.ldapFilter('{username}')),
  'group-filter': defineOptional(types.ldapFilter('{dn}', '{username}')),
  'tls-ca': defineOptional(types.path),
} as const

function readProvider(entry: unknown, at: number): LoginProvider {
  if (!isRecord(entry)) throw createFault(`provider ${at + 1}`, 'expected names with values')
  const label = `provider ${typeof entry.id === 'string' ? entry.id : at + 1}`
  return entry.kind === 'ldap' ? readLdap(entry, label) : readOidc(entry, label)
}

function readOidc(entry: Readonly<Record<string, unknown>>, label: string): OidcProvider {
  const read = readFields(OIDC, entry, label)
  const secrets = [read['client-secret'], read['client-secret-file'], read['client-key-file']]
  if (secrets.filter(secret => secret !== undefined).length > 1)
    throw createFault(label, 'expected one of client-secret, client-secret-file and client-key-file')
  return {
    ...makeCommon(read, OIDC_CLAIMS, label),
    kind: 'oidc',
    issuer: read.issuer,
    clientId: read['client-id'],
    clientSecret: read['client-secret'],
    clientSecretFile: read['client-secret-file'],
    clientKeyFile: read['client-key-file'],
    scopes: read.scopes ?? DEFAULT_SCOPES,
    acrValues: read['acr-values'] ?? [],
    maxAge: read['max-age'],
  }
}

function readLdap(entry: Readonly<Record<string, unknown>>, label: string): LdapProvider {
  const read = readFields(LDAP, entry, label)
  if ((read['bind-dn'] === undefined) !== (read['bind-password-file'] === undefined))
    throw createFault(label, 'bind-dn needs bind-password-file, and the other way round')
  return {
    ...makeCommon(read, { usernameClaim: 'uid', displayNameClaim: 'cn' }, label),
    kind: 'ldap',
    url: read.url,
    bindDn: read['bind-dn'],
    bindPasswordFile: read['bind-password-file'],
    baseDn: read['base-dn'],
    userFilter: read['user-filter'] ?? '(uid={username})',
    groupFilter: read['group-filter'],
    tlsCa: read['tls-ca'],
  }
}

function makeCommon(
  read: Read<typeof COMMON>,
  claims: Pick<Provider, 'usernameClaim' | 'displayNameClaim'>,
  label: string,
): Provider {
  const { id, name = id, provision = false, allow, admin } = read
  if (provision && read['fhir-user'] === undefined) throw createFault(label, 'provision needs fhir-user')
  return {
    id,
    name,
    allow,
    admin,
    provision,
    fhirUser: read['fhir-user'],
    usernameClaim: read['username-claim'] ?? claims.usernameClaim,
    displayNameClaim: read['display-name-claim'] ?? claims.displayNameClaim,
  }
}

function readFields<F extends Fields>(
  fields: F,
  entry: Readonly<Record<string, unknown>>,
  label: string,
): Read<F> {
  const unknown = Object.keys(entry).filter(name => !Object.hasOwn(fields, name))
  const checks = [
    ...unknown.map(name => () => {
      throw createFault(label, `unknown setting ${name}; expected ${Object.keys(fields).join(', ')}`)
    }),
    ...Object.entries(fields).map(([name, field]) => () => [
      name,
      readField(name, field, entry[name], label),
    ]),
  ]
  return Object.fromEntries(readEach(checks, check => check()) as [string, unknown][]) as Read<F>
}

function readField(name: string, field: Field<unknown>, value: unknown, label: string): unknown {
  if (value === undefined && field.required) throw createFault(label, `${name} is missing`)
  const read = value === undefined ? undefined : field.read(value)
  if (value !== undefined && read === undefined)
    throw createFault(label, `${name}: expected ${field.expected}`)
  return read
}

function createFault(label: string, problem: string): SettingsError {
  return new SettingsError(`Cannot use smart.login.providers: ${label}: ${problem}`)
}
