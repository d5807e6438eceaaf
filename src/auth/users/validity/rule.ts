/**
 * Decides whether a login or a grant is still good: by what was true when it was given, and what is true now (ENDS-1). Every
 * use asks `findEnd`, so that access ends as a consequence of a change, whoever makes it.
 */
import { getProviderIssuer, isRedirecting, type LoginProvider, type Settings } from '../../../config/index.ts'
import { sha256 } from '../../../store/index.ts'
import { type Evidence, isStillAccepted } from './evidence.ts'

/** The settings that decide about access now. */
export interface AccessRules {
  readonly onLoopback: boolean
  /** Access that developer tools gave, and temporary clients, count only while they are on. */
  readonly developerTools: boolean
  /** Whether users may sign in with a password of this server. */
  readonly passwords: boolean
  readonly accessTokenTtlSeconds: number
  /** 0: access with `offline_access` has no maximum age. */
  readonly offlineAccessMaxDays: number
  /** Whether agents may be used, for how long after each consent, and whose documents may describe them. */
  readonly agents: Pick<Settings['agents'], 'enabled' | 'accessMinutes' | 'clientHosts'>
  /** Who needs a second factor besides a password. */
  readonly secondFactor: Settings['login']['secondFactor']
  readonly providers: readonly LoginProvider[]
  findByIssuer(issuer: unknown): LoginProvider | undefined
}

/** `getLogin` is called for each decision, because the providers may change while the servers run. */
export function makeRules(
  settings: Pick<
    Settings,
    'onLoopback' | 'developerTools' | 'accessTokenTtlSeconds' | 'offlineAccessMaxDays' | 'agents'
  >,
  getLogin: () => Pick<Settings['login'], 'passwords' | 'secondFactor' | 'providers'>,
): AccessRules {
  const { onLoopback, developerTools, accessTokenTtlSeconds, offlineAccessMaxDays, agents } = settings
  return {
    onLoopback,
    developerTools,
    accessTokenTtlSeconds,
    offlineAccessMaxDays,
    agents,
    get passwords() {
      return getLogin().passwords
    },
    get secondFactor() {
      return getLogin().secondFactor
    },
    get providers() {
      return getLogin().providers
    },
    findByIssuer: issuer => getLogin().providers.find(provider => getProviderIssuer(provider) === issuer),
  }
}

/** What is true about an account now. */
export interface AccountFacts {
  readonly id: string
  readonly password_hash: string
  readonly fhir_user_id: string
  readonly access_version: number
  readonly disabled: boolean
  readonly for_loopback: boolean
  readonly admin: boolean
  readonly auditor: boolean
}

/** What is true about a client now. */
export interface ClientFacts {
  readonly scope: string
  readonly created_at: number
  readonly enabled_at: number | null
  readonly expires_at: number | null
  readonly disabled: boolean
  readonly for_loopback: boolean
}

/** What was true when access was given, besides the marks of the account and of the client. */
export interface Basis {
  /** Given on loopback. */
  readonly loopback?: true
  /** Given by developer tools. */
  readonly developerTools?: true
  /** The RelatedPersons as which the user acts for patients. */
  readonly relatedPersons?: readonly string[]
  /** What the rules of the identity provider accepted. */
  readonly evidence?: Evidence
  /** The user authenticated with a second factor here. */
  readonly secondFactor?: true
}

/** A login or a grant, with what is true now about everything that it depends on. */
export interface Given {
  readonly isRevoked: boolean
  /** Undefined: it has no fixed end. */
  readonly endsAt: number | undefined
  readonly accountMark: string
  readonly account: AccountFacts
  readonly basis: Basis
  /** Undefined without an identity provider. */
  readonly issuer: string | undefined
  /** The account that the user of the identity provider signs in to now. */
  readonly link: { readonly accountId: string; readonly isProvisioned: boolean } | undefined
  readonly relatedPersons: readonly string[]
  /** Of a grant. */
  readonly client?: ClientFacts & { readonly mark: string }
}

/** Why access has ended, for the log. */
export type End = (typeof CHECKS)[number][0]

type Check = (given: Given, rules: AccessRules, now: number) => boolean

const CHECKS = [
  ['it was revoked', ({ isRevoked }) => isRevoked],
  ['it has expired', ({ endsAt }, _, now) => endsAt !== undefined && endsAt <= now],
  ['the account is disabled', ({ account }, rules) => !isUsableAccount(account, rules)],
  ['the account changed', ({ account, accountMark }) => accountMark !== computeAccountMark(account)],
  ['it was given on loopback', ({ basis }, rules) => basis.loopback === true && !rules.onLoopback],
  ['developer tools are off', ({ basis }, rules) => basis.developerTools === true && !rules.developerTools],
  [
    'passwords are off',
    ({ basis, issuer }, rules) => !basis.developerTools && issuer === undefined && !rules.passwords,
  ],
  [
    'a second factor is required',
    ({ basis, issuer, account }, rules) =>
      !basis.developerTools &&
      !basis.secondFactor &&
      needsSecondFactor(rules, { issuer, evidence: basis.evidence, ...account }),
  ],
  [
    'the link to the provider is gone',
    ({ issuer, link, account }) => issuer !== undefined && link?.accountId !== account.id,
  ],
  [
    'the provider no longer accepts it',
    ({ issuer, basis, link }, rules) => {
      const provider = rules.findByIssuer(issuer)
      return (
        issuer !== undefined && !(provider && isStillAccepted(provider, basis.evidence, link?.isProvisioned))
      )
    },
  ],
  [
    'the user no longer acts for a patient',
    ({ basis, relatedPersons }) => !(basis.relatedPersons ?? []).every(id => relatedPersons.includes(id)),
  ],
  [
    'the client is disabled',
    ({ client }, rules, now) => client !== undefined && !isUsableClient(client, rules, now),
  ],
  ['the client changed', ({ client }) => client !== undefined && client.mark !== computeClientMark(client)],
] as const satisfies readonly (readonly [string, Check])[]

/** Finds the reason why a login or a grant has ended; undefined if it is still good. */
export function findEnd(given: Given, rules: AccessRules, now: number): End | undefined {
  return CHECKS.find(([, hasEnded]) => hasEnded(given, rules, now))?.[0]
}

/** Whether a user needs a second factor. An OpenID provider decides that itself: `acr-values` requires it there. */
export function needsSecondFactor(
  rules: Pick<AccessRules, 'secondFactor' | 'findByIssuer'>,
  {
    issuer,
    evidence,
    admin,
    auditor,
  }: {
    readonly issuer: string | undefined
    readonly evidence: Evidence | undefined
    /** By the account. A directory may name further administrators. */
    readonly admin: boolean
    /** Sees what administrators see. */
    readonly auditor: boolean
  },
): boolean {
  if (rules.secondFactor === 'none' || isRedirecting(rules.findByIssuer(issuer))) return false
  return rules.secondFactor === 'all' || admin || auditor || evidence?.admin !== undefined
}

/** Whether anyone may sign in to an account, or act for it. */
export function isUsableAccount(
  { disabled, for_loopback }: Pick<AccountFacts, 'disabled' | 'for_loopback'>,
  rules: Pick<AccessRules, 'onLoopback'>,
): boolean {
  return !disabled && isForThisServer(for_loopback, rules)
}

/** Whether a client exists for other servers and users. A temporary client expires. */
export function isUsableClient(
  { disabled, for_loopback, expires_at }: Pick<ClientFacts, 'disabled' | 'for_loopback' | 'expires_at'>,
  rules: Pick<AccessRules, 'onLoopback' | 'developerTools'>,
  now: number,
): boolean {
  const isCurrent = expires_at === null || (rules.developerTools && expires_at > now)
  return !disabled && isForThisServer(for_loopback, rules) && isCurrent
}

/** What was made for loopback, with a known password or without an administrator, ends with a public URL (ENDS-2). */
function isForThisServer(isForLoopback: boolean, { onLoopback }: Pick<AccessRules, 'onLoopback'>): boolean {
  return onLoopback || !isForLoopback
}

/** Differs after every change of an account that ends its logins and grants. */
export function computeAccountMark({
  password_hash,
  fhir_user_id,
  access_version,
}: Pick<AccountFacts, 'password_hash' | 'fhir_user_id' | 'access_version'>): string {
  return sha256(JSON.stringify([password_hash, fhir_user_id, access_version]))
}

/** Differs after every change of a client that ends its grants. */
export function computeClientMark({
  scope,
  created_at,
  enabled_at,
}: Pick<ClientFacts, 'scope' | 'created_at' | 'enabled_at'>): string {
  return sha256(JSON.stringify([scope, created_at, enabled_at]))
}
