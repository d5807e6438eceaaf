import { readFile } from 'node:fs/promises'
import type { Client, Entry } from 'ldapts'
import type { LdapProvider } from '../../../../config/index.ts'
import { type Failed, fail } from '../../../../core/index.ts'
import type { Claims } from '../../../../jwt/index.ts'

const TIMEOUT_MS = 5_000

/** Attributes that are not text. */
const BINARY = ['objectGUID']

/** Decides whether a password of an account may be checked, and counts the check. */
export type GuardBind = (
  account: DirectoryAccount,
  bind: () => Promise<BindResult>,
) => Promise<BindResult | 'too-many'>

export interface DirectoryAccount {
  /** The name that the directory gives it, because a directory accepts many spellings of one username. */
  readonly name: string
  /** Undefined if there is none. */
  readonly claims: Claims | undefined
}

export type BindResult = 'right' | 'wrong'

/** A refused password. The claims are those of the entry that has the username, if there is one. */
export interface RefusedBind extends Failed {
  readonly reason: 'password-wrong' | 'password-too-many'
  readonly claims?: Claims
}

/**
 * Checks a username and password at a directory, and returns the attributes of the user as claims, with the names of the
 * groups as `groups`. The password is never compared here: the directory decides by a bind.
 */
export async function authenticateAtDirectory(
  provider: LdapProvider,
  { username, password }: { readonly username: string; readonly password: string },
  guardBind: GuardBind,
): Promise<{ readonly claims: Claims } | RefusedBind> {
  // RFC 4513, 5.1.2: a bind with an empty password succeeds without authentication.
  if (username === '' || password === '') return fail({ reason: 'password-wrong' })
  return withClient(provider, async directory => {
    await bindService(provider, directory)
    const entry = await findEntry(provider, directory, username)
    const account = { name: entry?.dn ?? normalizeUsername(username), claims: entry && toClaims(entry) }
    const result = await guardBind(account, () =>
      withClient(provider, client => tryBind(client, entry?.dn ?? UNKNOWN(provider), password)),
    )
    const reason = result === 'too-many' ? 'password-too-many' : 'password-wrong'
    const { claims } = account
    if (!entry || !claims) return fail({ reason })
    if (result !== 'right') return fail({ reason, claims })
    const groups = await listGroups(provider, directory, entry.dn, username)
    return { claims: { ...claims, groups } }
  })
}

/** Unknown usernames are counted as a directory would compare them (RFC 4518), so that the limit does not reveal which exist. */
function normalizeUsername(username: string): string {
  return username.normalize('NFKC').toLowerCase().trim().replace(/\s+/g, ' ')
}

/** Rejects with the reason if the directory cannot be used. */
export async function checkDirectory(provider: LdapProvider): Promise<void> {
  await withClient(provider, async directory => {
    await bindService(provider, directory)
    await directory.search(provider.baseDn, { scope: 'base', filter: '(objectClass=*)', sizeLimit: 1 })
  })
}

/** An unknown user takes as long as a wrong password. */
const UNKNOWN = ({ baseDn }: LdapProvider) => `cn=unknown user of sallyport,${baseDn}`

async function withClient<T>(provider: LdapProvider, use: (client: Client) => Promise<T>): Promise<T> {
  const { Client } = await import('ldapts')
  const ca = provider.tlsCa === undefined ? undefined : await readFile(provider.tlsCa)
  const client = new Client({
    url: provider.url,
    timeout: TIMEOUT_MS,
    connectTimeout: TIMEOUT_MS,
    ...(provider.url.startsWith('ldaps:') && { tlsOptions: { minVersion: 'TLSv1.2', ...(ca && { ca }) } }),
  })
  try {
    return await use(client)
  } finally {
    await client.unbind().catch(() => undefined)
  }
}

async function bindService({ bindDn, bindPasswordFile }: LdapProvider, client: Client): Promise<void> {
  if (bindDn === undefined || bindPasswordFile === undefined) return
  await client.bind(bindDn, (await readFile(bindPasswordFile, 'utf8')).trim())
}

/**
 * Result codes of a bind that tell of the directory and not of the account (RFC 4511, 4.1.9). All others count as a wrong
 * password: a locked account (19), a disabled one (53) or one without a password (48) looks no different.
 */
const DIRECTORY_FAILURES = {
  operationsError: 1,
  protocolError: 2,
  timeLimitExceeded: 3,
  authMethodNotSupported: 7,
  strongerAuthRequired: 8,
  adminLimitExceeded: 11,
  unavailableCriticalExtension: 12,
  confidentialityRequired: 13,
  busy: 51,
  unavailable: 52,
} as const

const DIRECTORY_FAILURE_CODES: ReadonlySet<number> = new Set(Object.values(DIRECTORY_FAILURES))

async function tryBind(client: Client, dn: string, password: string): Promise<BindResult> {
  const { ResultCodeError } = await import('ldapts')
  try {
    await client.bind(dn, password)
    return 'right'
  } catch (error) {
    if (error instanceof ResultCodeError && !DIRECTORY_FAILURE_CODES.has(error.code)) return 'wrong'
    throw error
  }
}

/** Undefined if the filter finds no user or several. */
async function findEntry(
  { baseDn, userFilter }: LdapProvider,
  client: Client,
  username: string,
): Promise<Entry | undefined> {
  const { SizeLimitExceededError } = await import('ldapts')
  try {
    const { searchEntries } = await client.search(baseDn, {
      scope: 'sub',
      filter: fill(userFilter, { username }),
      sizeLimit: 2,
      attributes: ['*', 'entryUUID', 'memberOf', ...BINARY],
      explicitBufferAttributes: BINARY,
    })
    return searchEntries.length === 1 ? searchEntries[0] : undefined
  } catch (error) {
    if (error instanceof SizeLimitExceededError) return undefined
    throw error
  }
}

/** The common names of the groups that the filter finds. */
async function listGroups(
  { baseDn, groupFilter }: LdapProvider,
  client: Client,
  dn: string,
  username: string,
): Promise<readonly string[]> {
  if (groupFilter === undefined) return []
  const filter = fill(groupFilter, { dn, username })
  const { searchEntries } = await client.search(baseDn, { scope: 'sub', filter, attributes: ['cn'] })
  return searchEntries.flatMap(({ cn = [] }) => cn).map(String)
}

function fill(filter: string, values: Readonly<Record<string, string>>): string {
  return filter.replace(/\{(\w+)\}/g, (placeholder, name) => {
    const value = values[name]
    return value === undefined ? placeholder : escapeFilter(value)
  })
}

/** RFC 4515, 3. */
function escapeFilter(value: string): string {
  return value.replace(
    /[\\*()\0]/g,
    character => `\\${character.charCodeAt(0).toString(16).padStart(2, '0')}`,
  )
}

/** An attribute with one value is a text, one with several a list. Passwords, which a directory may return, are left out. */
function toClaims({ dn, userPassword: _, ...attributes }: Entry): Claims {
  const toText = (value: string | Buffer) => (typeof value === 'string' ? value : value.toString('hex'))
  const entries = Object.entries(attributes).map(([name, value]) => {
    const values = (Array.isArray(value) ? value : [value]).map(toText)
    return [name, values.length === 1 ? values[0] : values] as const
  })
  return { ...Object.fromEntries(entries), dn }
}
