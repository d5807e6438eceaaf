import { isIP } from 'node:net'
import { resolve } from 'node:path'
import { findScopeListFault, MAX_SCOPES, parseScope, type ScopeContext } from '../smart/index.ts'
import { parseDatabaseUrl } from '../store/index.ts'

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'silent'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

/** `expected` completes the sentence "expected …". */
export interface SettingType<T> {
  readonly expected: string
  parse(text: string): T | undefined
  /** Joins a list from the file. Without a separator, a list is not a valid value. */
  readonly separator?: string
  /** The file has a list or a mapping, which is parsed as JSON. */
  readonly structured?: true
  /** Makes paths absolute. */
  resolve?(value: T, folder: string): T
  /** What the `settings` command shows, if it is not the value. */
  show?(value: T): unknown
}

export const origin: SettingType<string> = {
  expected: 'an http or https URL without path, query and fragment',
  parse: text => {
    const url = parsePlainUrl(text)
    return url?.pathname === '/' ? url.origin : undefined
  },
}

export const baseAddress: SettingType<string> = {
  expected: 'an http or https URL without query and fragment',
  parse: text => parsePlainUrl(text)?.href.replace(/\/+$/, ''),
}

export const pageAddress: SettingType<string> = {
  expected: 'an http or https URL without fragment',
  parse: text => (parseHttpUrl(text)?.hash === '' && !text.includes('#') ? text : undefined),
}

/** The fragment is for hash routers (`/#/launch`). */
export const launchAddress: SettingType<string> = {
  expected: 'an http or https URL',
  parse: text => (parseHttpUrl(text) === undefined || !/^[\x21-\x7e]*$/.test(text) ? undefined : text),
}

export const baseAddresses: SettingType<readonly string[]> = {
  ...listOf(baseAddress),
  expected: 'http or https URLs without query and fragment, separated by commas',
}

export const origins: SettingType<readonly string[]> = {
  ...listOf(origin),
  expected: 'http or https URLs without path, query and fragment, separated by commas',
}

function parseHttpUrl(text: string): URL | undefined {
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '')
    return undefined
  return url
}

function parsePlainUrl(text: string): URL | undefined {
  return /[?#]/.test(text) ? undefined : parseHttpUrl(text)
}

/** Compared as text with the `iss` of tokens, so it is kept as written. */
export const issuer: SettingType<string> = {
  expected: 'an http or https URL without query and fragment',
  parse: text => (parsePlainUrl(text) === undefined ? undefined : text),
}

export const ldapUrl: SettingType<string> = {
  expected: 'ldap://<host>[:<port>] or ldaps://<host>[:<port>]',
  parse: text => (/^ldaps?:\/\/[^/?#@\s]+$/.test(text) && URL.canParse(text) ? text : undefined),
}

export const syslogUrl: SettingType<string> = {
  expected: 'tls://<host>[:<port>]',
  parse: text => (/^tls:\/\/[^/?#@\s]+$/.test(text) && URL.canParse(text) ? text : undefined),
}

export const distinguishedName: SettingType<string> = {
  expected: 'a distinguished name such as ou=people,dc=ehr,dc=example',
  parse: text => (/^[^\s=]+=[^=].*$/.test(text) ? text : undefined),
}

/** RFC 4515. It must use one of the placeholders. */
export function ldapFilter(...placeholders: readonly string[]): SettingType<string> {
  return {
    expected: `an LDAP filter in brackets with ${placeholders.join(' or ')}`,
    parse: text => (/^\(.+\)$/.test(text) && placeholders.some(one => text.includes(one)) ? text : undefined),
  }
}

export const providerId: SettingType<string> = {
  expected: 'at most 40 lower-case letters, digits and hyphens',
  parse: text => (/^[a-z0-9][a-z0-9-]{0,39}$/.test(text) ? text : undefined),
}

export const signInMethods: SettingType<readonly string[]> = {
  ...listOf(providerId),
  expected: 'ids of sign-in providers, or password, separated by commas',
}

export const claimName: SettingType<string> = {
  expected: 'the name of a claim',
  parse: text => (/^\S{1,200}$/.test(text) ? text : undefined),
}

export const oidcScopes: SettingType<string> = {
  expected: 'scopes with openid, separated by spaces',
  separator: ' ',
  parse: text => {
    const scopes = text.split(' ').filter(scope => scope !== '')
    return scopes.includes('openid') && scopes.every(scope => /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(scope))
      ? scopes.join(' ')
      : undefined
  },
}

export const acrValues: SettingType<readonly string[]> = {
  ...listOf({ parse: text => (/^[\x21-\x7e]+$/.test(text) ? text : undefined) }),
  expected: 'authentication context classes (acr), separated by commas',
}

export const flag: SettingType<boolean> = {
  expected: 'true or false',
  parse: text => (text === 'true' ? true : text === 'false' ? false : undefined),
}

export function wholeNumber(min: number, max: number): SettingType<number> {
  return {
    expected: `a whole number from ${min} to ${max}`,
    parse: text => {
      const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
      return number >= min && number <= max ? number : undefined
    },
  }
}

export const port = wholeNumber(1, 65535)

export function oneOf<const Choice extends string>(...choices: readonly Choice[]): SettingType<Choice> {
  return {
    expected: choices.join(' or '),
    parse: text => choices.find(choice => choice === text),
  }
}

export const logLevel: SettingType<LogLevel> = oneOf(...LOG_LEVELS)

export const hosts: SettingType<readonly string[]> = {
  ...listOf({
    parse: text =>
      isIP(text) > 0 || /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i.test(text) ? text.toLowerCase() : undefined,
  }),
  expected: 'names or IP addresses of hosts, separated by commas',
}

/** `smart.server.bind`. Host names other than `localhost` would need to be resolved, and could change. */
export const bindAddresses: SettingType<readonly string[]> = {
  ...listOf({ parse: text => (isIP(text) > 0 || text === 'localhost' ? text : undefined) }),
  expected: 'IP addresses, separated by commas',
}

const PROXY_NAMES: readonly string[] = ['loopback', 'linklocal', 'uniquelocal']

export const proxies: SettingType<string> = {
  expected: 'IP addresses, networks (10.0.0.0/8), loopback, linklocal or uniquelocal, separated by commas',
  separator: ',',
  parse: text => {
    const known = listOf({
      parse: part => (PROXY_NAMES.includes(part) || isNetwork(part) ? part : undefined),
    })
    return known.parse(text)?.join(',')
  },
}

function isNetwork(text: string): boolean {
  const [address = '', bits, ...more] = text.split('/')
  const version = isIP(address)
  if (version === 0 || more.length > 0) return false
  // A proxy network of all addresses (`/0`) is refused.
  return bits === undefined || wholeNumber(1, version === 4 ? 32 : 128).parse(bits) !== undefined
}

export const contexts: SettingType<readonly ScopeContext[]> = {
  ...listOf(oneOf('patient', 'user', 'system')),
  expected: 'patient, user or system, separated by commas',
}

export const scopes: SettingType<string> = {
  expected: `SMART scopes, at most ${MAX_SCOPES}, separated by spaces`,
  separator: ' ',
  parse: text => {
    const parts = text.split(' ').filter(part => part !== '')
    return parts.length > 0 &&
      findScopeListFault(text) === undefined &&
      parts.every(part => parseScope(part) !== undefined)
      ? parts.join(' ')
      : undefined
  },
}

export const databaseUrl: SettingType<string> = {
  expected: 'sqlite:<path> or postgres://<user>:<password>@<host>/<database>',
  parse: text => (parseDatabaseUrl(text) === undefined ? undefined : text),
  resolve: (value, folder) => {
    const target = parseDatabaseUrl(value)
    return target?.dialect === 'sqlite' ? `sqlite:${resolve(folder, target.path)}` : value
  },
}

/** RFC 6749, appendix A.1, without the space. */
export const clientId: SettingType<string> = {
  expected: 'a client id of printable characters without spaces',
  parse: text => (/^[\x21-\x7e]{1,200}$/.test(text) ? text : undefined),
}

export const clientIds: SettingType<readonly string[]> = {
  ...listOf(clientId),
  expected: 'client ids, separated by commas',
}

export const usernames: SettingType<readonly string[]> = {
  ...listOf({ parse: text => (text === '' ? undefined : text) }),
  expected: 'usernames, separated by commas',
}

export const path: SettingType<string> = {
  expected: 'a path',
  parse: text => (text.includes('\0') ? undefined : text),
  resolve: (value, folder) => resolve(folder, value),
}

export const searchParameters: SettingType<readonly string[]> = {
  ...listOf({
    parse: text => (/^(?:[A-Z][A-Za-z]+\.)?[a-z][A-Za-z0-9-]*$/.test(text) ? text : undefined),
  }),
  expected: 'search parameters such as mrn or Patient.mrn, separated by commas',
}

export const resourceTypes: SettingType<readonly string[]> = {
  ...listOf({ parse: text => (/^[A-Z][A-Za-z]+$/.test(text) ? text : undefined) }),
  expected: 'resource types such as Questionnaire, separated by commas',
}

export const fhirOperations: SettingType<readonly string[]> = {
  ...listOf({
    parse: text => (/^(?:[A-Z][A-Za-z]+\/)?\$[a-z][a-z0-9-]*(?::read)?$/.test(text) ? text : undefined),
  }),
  expected: 'operations such as $meta, Patient/$match or Patient/$match:read, separated by commas',
}

export const headerText: SettingType<string> = {
  expected: 'printable characters',
  parse: text => (/^[\x20-\x7e]{1,8192}$/.test(text) ? text : undefined),
}

/** Text that pages show. Controls could reverse the text around it. */
export function shortText(maxCharacters: number): SettingType<string> {
  return {
    expected: `a text of at most ${maxCharacters} characters without control characters`,
    parse: text =>
      /^[^\p{C}]+$/u.test(text) && text.length <= maxCharacters ? text.trim() || undefined : undefined,
  }
}

export const hexColour: SettingType<string> = {
  expected: 'a colour such as #3942b8',
  parse: text => (/^#[0-9a-f]{6}$/i.test(text) ? text.toLowerCase() : undefined),
}

export const secretText: SettingType<string> = {
  expected: 'at least 16 characters, preferably 32 random bytes',
  parse: text => (text.length >= 16 ? text : undefined),
}

/** bcrypt ignores bytes after the 72nd. */
export const password: SettingType<string> = {
  expected: 'a password of at most 72 bytes',
  parse: text => (Buffer.byteLength(text) <= 72 && !text.includes('\0') ? text : undefined),
}

function listOf<T>(item: Pick<SettingType<T>, 'parse'>): Omit<SettingType<readonly T[]>, 'expected'> {
  return {
    separator: ',',
    parse: text => {
      const items = text.split(',').map(part => item.parse(part.trim()))
      return items.includes(undefined) ? undefined : ([...new Set(items)] as T[])
    },
  }
}
