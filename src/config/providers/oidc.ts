import * as types from '../setting-types.ts'
import { COMMON, createFault, defineOptional, defineRequired, type Read, readFields } from './fields.ts'
import type { ProviderTraits } from './traits.ts'

const OIDC = {
  ...COMMON,
  'username-claim': defineOptional(types.claimName, 'preferred_username'),
  'display-name-claim': defineOptional(types.claimName, 'name'),
  issuer: defineRequired(types.issuer),
  'client-id': defineRequired(types.clientId),
  'client-secret': defineOptional(types.headerText),
  'client-secret-file': defineOptional(types.path),
  'client-key-file': defineOptional(types.path),
  scopes: defineOptional(types.oidcScopes, 'openid profile'),
  /** Patients and related persons, or clinicians. */
  users: defineOptional(types.oneOf('clinicians', 'patients'), 'clinicians'),
  'acr-values': defineOptional(types.acrValues, []),
  'max-age': defineOptional(types.wholeNumber(0, 31_536_000)),
}

export interface OidcProvider extends Omit<Read<typeof OIDC>, 'name' | 'kind'> {
  readonly kind: 'oidc'
  readonly name: string
}

export function readOidc(entry: Readonly<Record<string, unknown>>, label: string): OidcProvider {
  const read = readFields(OIDC, entry, label)
  const secrets = [read.clientSecret, read.clientSecretFile, read.clientKeyFile]
  if (secrets.filter(secret => secret !== undefined).length > 1)
    throw createFault(label, 'expected one of client-secret, client-secret-file and client-key-file')
  return { ...read, kind: 'oidc', name: read.name ?? read.id }
}

export function describeOidc(provider: OidcProvider): ProviderTraits {
  const { issuer, clientSecretFile, clientKeyFile, users, acrValues, maxAge } = provider
  return {
    issuer,
    url: issuer,
    files: [clientSecretFile, clientKeyFile],
    secrets: ['clientSecret'],
    users,
    signIn: 'redirect',
    subjectClaims: ['sub'],
    acrValues,
    maxAge,
    directory: undefined,
    works: 'The provider and its keys are reachable.',
  }
}
