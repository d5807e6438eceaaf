import type { KeptRecord } from '../../audit/index.ts'
import type { Settings } from '../../config/index.ts'
import type { Claims } from '../../jwt/index.ts'
import { LIMITS } from '../base/limits.ts'
import type { AuthRefusal } from '../base/refusal.ts'
import type { Login } from '../users/find-login.ts'

/**
 * What `server.ts` may add to OAuth. A launch that an extension starts, and the grant that follows from it, carry data that
 * only the extension reads. Without hooks such a launch is unknown, and such a grant has ended.
 */
export interface Hooks {
  readExtension(data: string): Extension
  /** Explains an audit record about an extension, for the activity page. */
  explainRecord(record: Pick<KeptRecord, 'reason' | 'details'>): RecordNote | undefined
  /** Names the origin of a launch by its first audit record. */
  nameOrigin(record: Pick<KeptRecord, 'reason' | 'details'>): string | undefined
}

/** How a launch and its grant differ. Without a member they are as usual. */
export interface Extension {
  /** Finds the login of a launch whose user does not sign in. */
  readonly findLogin?: (arrivedAt: number) => Promise<Login | undefined>
  readonly skipsConsent?: boolean | undefined
  readonly isPkceOptional?: boolean | undefined
  /** The scopes that may be granted at most. */
  readonly scope?: string | undefined
  /** The lifetime of access tokens. */
  readonly tokenSeconds?: number | undefined
  /** The `smart_style_url`, or `none`. */
  readonly style?: string | undefined
  /** Refuses a request that passed all checks. */
  readonly refuse?: (endpoint: 'authorize' | TokenEvent) => AuthRefusal | undefined
  /** Changes the claims of an access token before it is signed. */
  readonly changeClaims?: (claims: Claims) => Claims
  /** Changes a signed access token before it is sent. */
  readonly changeToken?: (token: string, event: TokenEvent) => Promise<string>
  /** The text of audit records, and the mark in their details. */
  readonly reason?: string
  readonly mark?: string
}

/** Tokens are issued for a code, or refreshed. */
export type TokenEvent = 'token' | 'refresh'

/** A badge, with and without details, and the advice for developers. */
interface RecordNote {
  readonly badge: string
  readonly details: string
  readonly cause: string
  readonly action: string
}

const USUAL: Extension = {}

/** Reads the extension of a launch or a grant. */
export function readExtension(
  { hooks }: { readonly hooks?: Hooks | undefined },
  of: { readonly extension?: string | null | undefined } | undefined,
): Extension {
  return (of?.extension == null ? undefined : hooks?.readExtension(of.extension)) ?? USUAL
}

/** The longest lifetime of an access token, in seconds. */
export function computeMaxTokenSeconds({
  accessTokenTtlSeconds,
  developerTools,
}: Pick<Settings, 'accessTokenTtlSeconds' | 'developerTools'>): number {
  return developerTools
    ? Math.max(accessTokenTtlSeconds, LIMITS.extensionTokenSeconds)
    : accessTokenTtlSeconds
}
