import type { Client } from '../client/client.ts'
import type { FoundLaunch } from '../launch/launch-token.ts'
import type { Parameters } from '../parameters.ts'

/** A verified authorization request (RFC 6749, 4.1.1). It is stored as JSON while its user logs in. */
export interface AuthorizationRequest {
  readonly clientId: string
  readonly redirectUri: string
  readonly state?: string
  /** The requested scopes; by default the registered scopes of the client. */
  readonly scope: string
  /** Undefined if PKCE is optional for the client and was not used. */
  readonly codeChallenge?: string
  /** Whether the response to this client has no `iss` parameter. */
  readonly omitsIss?: boolean
  readonly nonce?: string
  /** SHA-256 of the launch token, whose expiry was checked when the request arrived. */
  readonly launchHash?: string
  /** The id of the launch, or a new one, in all audit records. It becomes the id of the grant. */
  readonly launchId: string
  readonly prompts: readonly Prompt[]
  /** Maximum age of the login, in seconds. */
  readonly maxAge?: number
  /** The requested authentication context classes, in order of preference. */
  readonly acrValues?: readonly string[]
  /** The user of the `id_token_hint`. */
  readonly expectedSubject?: string
  readonly loginHint?: string
  readonly arrivedAt: number
  /** What the user picked in a standalone launch. */
  readonly picked?: PickedContext
}

export interface PickedContext {
  /** Who picked: another user must pick again. */
  readonly clinicianId: string
  readonly patientId: string
  readonly encounterId?: string
  /** For a first-party app: another patient has a similar name. */
  readonly similarName?: true
  /** The resource as which a patient user acts for the patient. */
  readonly fhirUserId?: string
}

export const PROMPTS = ['none', 'login', 'consent', 'select_account'] as const
export type Prompt = (typeof PROMPTS)[number]

/** The parameters of a request whose client and redirect URI have been verified, so that errors may be redirected. */
export interface RequestInput {
  readonly client: Client
  readonly redirectUri: string
  readonly parameters: Parameters
  /** The launch that the request names, valid or not. */
  readonly launch: FoundLaunch | undefined
}

/** A request that passed all checks, with its client and its launch. */
export interface VerifiedRequest {
  readonly request: AuthorizationRequest
  readonly client: Client
  readonly launch: FoundLaunch | undefined
}

/** What a check adds to the verified request. */
export type Finding = Partial<AuthorizationRequest>
