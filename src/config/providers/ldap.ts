import * as types from '../setting-types.ts'
import { COMMON, createFault, defineOptional, defineRequired, type Read, readFields } from './fields.ts'
import type { ProviderTraits } from './traits.ts'

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

export interface LdapProvider extends Omit<Read<typeof LDAP>, 'name' | 'kind'> {
  readonly kind: 'ldap'
  readonly name: string
}

export function readLdap(entry: Readonly<Record<string, unknown>>, label: string): LdapProvider {
  const read = readFields(LDAP, entry, label)
  if ((read.bindDn === undefined) !== (read.bindPasswordFile === undefined))
    throw createFault(label, 'bind-dn needs bind-password-file, and the other way round')
  return { ...read, kind: 'ldap', name: read.name ?? read.id }
}

export function describeLdap(provider: LdapProvider): ProviderTraits {
  const { id, url, baseDn, userFilter, groupFilter, bindPasswordFile, tlsCa } = provider
  return {
    // A directory has no issuer, so its id stands for it.
    issuer: `ldap:${id}`,
    url,
    files: [bindPasswordFile, tlsCa],
    secrets: [],
    users: 'clinicians',
    signIn: 'form',
    // They never change for an entry: OpenLDAP and others (RFC 4530), Active Directory.
    subjectClaims: ['entryUUID', 'objectGUID'],
    acrValues: [],
    maxAge: undefined,
    directory: [url, baseDn, userFilter, groupFilter ?? null],
    works: 'The directory accepts the service account, and has the base entry.',
  }
}
