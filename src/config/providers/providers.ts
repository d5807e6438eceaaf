import { resolve } from 'node:path'
import { isRecord, parseJson } from '../../core/index.ts'
import type { SettingType } from '../setting-types.ts'
import { readEach } from '../settings-error.ts'
import { createFault } from './fields.ts'
import { describeLdap, type LdapProvider, readLdap } from './ldap.ts'
import { describeOidc, type OidcProvider, readOidc } from './oidc.ts'
import type { ProviderTraits } from './traits.ts'

export type LoginProvider = OidcProvider | LdapProvider

/** Each kind has a file beside this one and a folder in `auth/users/providers`. An unknown one is refused by its field. */
function readKind(entry: Readonly<Record<string, unknown>>, label: string): LoginProvider {
  return entry.kind === 'ldap' ? readLdap(entry, label) : readOidc(entry, label)
}

export function describeProvider(provider: LoginProvider): ProviderTraits {
  switch (provider.kind) {
    case 'oidc':
      return describeOidc(provider)
    case 'ldap':
      return describeLdap(provider)
  }
}

/** Whether users sign in on the provider's own pages. */
export function isRedirecting(provider: LoginProvider | undefined): provider is OidcProvider {
  return provider !== undefined && describeProvider(provider).signIn === 'redirect'
}

/** Whether users sign in in our form. */
export function hasForm(provider: LoginProvider): provider is LdapProvider {
  return describeProvider(provider).signIn === 'form'
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

/** Reasons why the providers cannot be used together, one phrase each. */
export function findProviderConflicts(providers: readonly LoginProvider[]): readonly string[] {
  const ids = providers.map(provider => provider.id)
  const issuers = providers.map(getProviderIssuer)
  return [
    ...findRepeated(ids).map(id => `two sign-in providers have the id ${id}`),
    ...findRepeated(issuers).map(issuer => `two sign-in providers have the issuer ${issuer}`),
  ]
}

/** The issuer of a provider's users. */
export function getProviderIssuer(provider: LoginProvider): string {
  return describeProvider(provider).issuer
}

function findRepeated(texts: readonly string[]): readonly string[] {
  return [...new Set(texts.filter((text, at) => texts.indexOf(text) !== at))]
}

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
  const provider = readKind(entry, label)
  if (provider.provision && !provider.fhirUser) throw createFault(label, 'provision needs fhir-user')
  const fault = findUsersFault(provider)
  if (fault !== undefined) throw createFault(label, fault)
  return provider
}

/** A provider is for clinicians or for patients. For patients it must say how sure it is of them: `acr-values`. */
function findUsersFault(provider: LoginProvider): string | undefined {
  const { users, acrValues } = describeProvider(provider)
  const isForPatients = users === 'patients'
  const { fhirUser, admin } = provider
  const type = isForPatients ? 'Patient' : 'Practitioner'
  const rule =
    fhirUser?.kind === 'template' ? fhirUser.template : fhirUser?.kind === 'search' && fhirUser.search
  if (rule && !rule.startsWith(type)) return `fhir-user must name a ${type}`
  if (!isForPatients) return undefined
  if (acrValues.length === 0) return 'users: patients needs acr-values'
  return admin ? 'patients cannot be administrators' : undefined
}
