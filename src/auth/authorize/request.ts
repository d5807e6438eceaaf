import type { Client } from '../client/client.ts'
import type { Parameters } from '../parameters.ts'

/** An authorization request that was verified in full (RFC 6749, 4.1.1). Kept as JSON while its user logs in. */
export interface AuthorizationRequest {
  readonly clientId: string
  readonly redirectUri: string
  readonly state?: string
  /** As it was asked for; without `scope` what the client is registered for. */
  readonly scope: string
  /** Undefined where the client may leave it out, and did. */
  readonly codeChallenge?: string
  /** Set where the client asked not to be sent `iss`. */
  readonly omitsIss?: boolean
  readonly nonce?: string
  /** SHA-256 of the launch token, whose expiry was checked when the request arrived (contract 4). */
  readonly launchHash?: string
  /** Names all that follows in the audit trail: that of the launch, or its own. It becomes the id of the grant. */
  readonly launchId: string
  readonly prompts: readonly Prompt[]
  /** Seconds since the login at most. */
  readonly maxAge?: number
  /** The user that the client expects, by `id_token_hint`. */
  readonly expectedSubject?: string
  readonly loginHint?: string
  readonly arrivedAt: number
  /** What its user picked, in a standalone launch. */
  readonly picked?: PickedContext
}

export interface PickedContext {
  /** Who picked: with another user it is to be picked anew. */
  readonly clinicianId: string
  readonly patientId: string
  readonly encounterId?: string
}

export const PROMPTS = ['none', 'login', 'consent', 'select_account'] as const
export type Prompt = (typeof PROMPTS)[number]

/** What a request asks, from a client that is known and to an address that is its own: errors may be redirected now. */
export interface Asked {
  readonly client: Client
  readonly redirectUri: string
  readonly parameters: Parameters
}

/** What a check found out for the verified request. */
export type Finding = Partial<AuthorizationRequest>
