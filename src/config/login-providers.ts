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

/** How a user's Practitioner, or Patient, follows from the claims. */
export type FhirUserRule =
  | { readonly kind: 'claim'; readonly claim: string }
  | { readonly kind: 'template'; readonly template: string }
  | { readonly kind: 'search'; readonly search: string }

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
    return readEach([...list.entries()], ([index, entry]) => readProvider(entry, index))
  },
  resolve: (providers, folder) => providers.map(provider => resolvePaths(provider, folder)),
  show: showIds,
}

/** A list of things that have ids. */
export function showIds(list: readonly { readonly id: string }[]): readonly string[] | undefined {
  return list.length === 0 ? undefined : list.map(({ id }) => id)
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
  /** The value of a field that is not there. A field without it must be there. */
  readonly otherwise?: { readonly value: T }
}

function defineRequired<T>({ expected, separator, parse }: SettingType<T>): Field<T> {
  const read = (value: unknown) => {
    const text = Array.isArray(value) && separator !== undefined ? value.join(separator) : value
    return typeof text === 'object' ? undefined : parse(String(text))
  }
  return { expected, read }
}

function defineOptional<T>(type: SettingType<T>): Field<T | undefined>
function defineOptional<T>(type: SettingType<T>, value: T): Field<T>
function defineOptional<T>(type: SettingType<T>, value?: T): Field<T | undefined> {
  return { ...defineRequired(type), otherwise: { value } }
}

const nestedFhirUser: Field<FhirUserRule | undefined> = {
  otherwise: { value: undefined },
  expected: 'exactly one of claim, template and search',
  read: value => {
    const [entry, ...more] = isRecord(value) ? Object.entries(value) : []
    if (entry === undefined || more.length > 0 || typeof entry[1] !== 'string') return undefined
    return makeFhirUserRule(entry[0], entry[1])
  },
}

const nestedClaimRule: Field<ClaimRule | undefined> = {
  otherwise: { value: undefined },
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
    return placeholder && /^(?:Practitioner|Patient)\/[^?\s]+$/.test(text)
      ? { kind, template: text }
      : undefined
  if (kind === 'search')
    return placeholder && /^(?:Practitioner|Patient)\?[^\s=]+=\S+$/.test(text)
      ? { kind, search: text }
      : undefined
  return undefined
}

const COMMON = {
  /** In URLs and logs. */
  id: defineRequired(types.providerId),
  /** On the sign-in page. */
  name: defineOptional(types.headerText),
  kind: defineOptional(types.oneOf('oidc', 'ldap')),
  'username-claim': defineOptional(types.claimName, OIDC_CLAIMS.usernameClaim),
  'display-name-claim': defineOptional(types.claimName, OIDC_CLAIMS.displayNameClaim),
  'fhir-user': nestedFhirUser,
  /** Undefined: every user of the provider. */
  allow: nestedClaimRule,
  /** Undefined: no administrators. */
  admin: nestedClaimRule,
  /** Whether an unknown user gets an account. */
  provision: defineOptional(types.flag, false),
}

const OIDC = {
  ...COMMON,
  issuer: defineRequired(types.issuer),
  'client-id': defineRequired(types.clientId),
  'client-secret': defineOptional(types.headerText),
  'client-secret-file': defineOptional(types.path),
  'client-key-file': defineOptional(types.path),
  scopes: defineOptional(types.oidcScopes, DEFAULT_SCOPES),
  /** Patients and related persons, or clinicians. */
  users: defineOptional(types.oneOf('clinicians', 'patients'), 'clinicians'),
  'acr-values': defineOptional(types.acrValues, []),
  'max-age': defineOptional(types.wholeNumber(0, 31_536_000)),
}

const LDAP = {
  ...COMMON,
  'username-claim': defineOptional(types.claimName, 'uid'),
  'display-name-claim': defineOptional(types.claimName, 'cn'),
  url: defineRequired(types.ldapUrl),
  'bind-dn': defineOptional(types.distinguishedName),
  'bind-password-file': defineOptional(types.path),
  'base-dn': defineRequired(types.distinguishedName),
  'user-filter': defineOptional(types.ldapFilter('{username}'), '(uid={username})'),
  'group-filter': defineOptional(types.ldapFilter('{dn}', '{username}')),
  'tls-ca': defineOptional(types.path),
}

type CamelCase<Name> = Name extends `${infer First}-${infer Rest}`
  ? `${First}${Capitalize<CamelCase<Rest>>}`
  : Name
/** The values of fields: `client-id` becomes `clientId`. */
type Read<Fields> = {
  readonly [Name in keyof Fields as CamelCase<Name>]: Fields[Name] extends Field<infer T> ? T : never
}

export interface OidcProvider extends Omit<Read<typeof OIDC>, 'name' | 'kind'> {
  readonly kind: 'oidc'
  readonly name: string
}

export interface LdapProvider extends Omit<Read<typeof LDAP>, 'name' | 'kind'> {
  readonly kind: 'ldap'
  readonly name: string
}

export type LoginProvider = OidcProvider | LdapProvider

const PATHS: ReadonlySet<string> = new Set(['clientSecretFile', 'clientKeyFile', 'bindPasswordFile', 'tlsCa'])

function resolvePaths<Provider extends LoginProvider>(provider: Provider, folder: string): Provider {
  const members = Object.entries(provider).map(([name, value]) => [
    name,
    PATHS.has(name) && value !== undefined ? resolve(folder, value) : value,
  ])
  return Object.fromEntries(members)
}

function readProvider(entry: unknown, index: number): LoginProvider {
  if (!isRecord(entry)) throw createFault(`provider ${index + 1}`, 'expected names with values')
  const label = `provider ${typeof entry.id === 'string' ? entry.id : index + 1}`
  const provider = entry.kind === 'ldap' ? readLdap(entry, label) : readOidc(entry, label)
  if (provider.provision && !provider.fhirUser) throw createFault(label, 'provision needs fhir-user')
  const fault = findUsersFault(provider)
  if (fault !== undefined) throw createFault(label, fault)
  return provider
}

function readOidc(entry: Readonly<Record<string, unknown>>, label: string): OidcProvider {
  const read = readFields(OIDC, entry, label)
  const secrets = [read.clientSecret, read.clientSecretFile, read.clientKeyFile]
  if (secrets.filter(secret => secret !== undefined).length > 1)
    throw createFault(label, 'expected one of client-secret, client-secret-file and client-key-file')
  return { ...read, kind: 'oidc', name: read.name ?? read.id }
}

/** A provider is for clinicians or for patients. For patients it must say how sure it is of them: `acr-values`. */
export function findUsersFault(provider: LoginProvider): string | undefined {
  const isForPatients = provider.kind === 'oidc' && provider.users === 'patients'
  const { fhirUser, admin } = provider
  const type = isForPatients ? 'Patient' : 'Practitioner'
  const rule =
    fhirUser?.kind === 'template' ? fhirUser.template : fhirUser?.kind === 'search' && fhirUser.search
  if (rule && !rule.startsWith(type)) return `fhir-user must name a ${type}`
  if (!isForPatients) return undefined
  if (provider.acrValues.length === 0) return 'users: patients needs acr-values'
  return admin ? 'patients cannot be administrators' : undefined
}

function readLdap(entry: Readonly<Record<string, unknown>>, label: string): LdapProvider {
  const read = readFields(LDAP, entry, label)
  if ((read.bindDn === undefined) !== (read.bindPasswordFile === undefined))
    throw createFault(label, 'bind-dn needs bind-password-file, and the other way round')
  return { ...read, kind: 'ldap', name: read.name ?? read.id }
}

function readFields<Fields extends Readonly<Record<string, Field<unknown>>>>(
  fields: Fields,
  entry: Readonly<Record<string, unknown>>,
  label: string,
): Read<Fields> {
  const unknown = Object.keys(entry).filter(name => !Object.hasOwn(fields, name))
  const checks = [
    ...unknown.map(name => () => {
      throw createFault(label, `unknown setting ${name}; expected ${Object.keys(fields).join(', ')}`)
    }),
    ...Object.entries(fields).map(([name, field]) => () => [
      name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase()),
      readField(name, field, entry[name], label),
    ]),
  ]
  return Object.fromEntries(readEach(checks, check => check()) as [string, unknown][]) as Read<Fields>
}

function readField(name: string, field: Field<unknown>, value: unknown, label: string): unknown {
  if (value === undefined && field.otherwise) return field.otherwise.value
  if (value === undefined) throw createFault(label, `${name} is missing`)
  const read = field.read(value)
  if (read === undefined) throw createFault(label, `${name}: expected ${field.expected}`)
  return read
}

function createFault(label: string, problem: string): SettingsError {
  return new SettingsError(`Cannot use smart.login.providers: ${label}: ${problem}`)
}
