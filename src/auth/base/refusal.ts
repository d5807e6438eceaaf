import { Failing } from '../../core/index.ts'
/** RFC 6749, 4.1.2.1 and 5.2; RFC 7591, 3.2.2; OIDC Core, 3.1.2.6; OIDC Unmet Authentication Requirements. */
export type RefusalCode =
  | 'invalid_request'
  | 'invalid_client'
  | 'invalid_grant'
  | 'invalid_scope'
  | 'unauthorized_client'
  | 'unsupported_grant_type'
  | 'unsupported_response_type'
  | 'access_denied'
  | 'login_required'
  | 'consent_required'
  | 'interaction_required'
  | 'unmet_authentication_requirements'
  | 'request_not_supported'
  | 'request_uri_not_supported'
  | 'registration_not_supported'
  | 'invalid_redirect_uri'
  | 'invalid_client_metadata'
  | 'temporarily_unavailable'
  | 'server_error'

/** A verified redirect URI that an error may be sent to. */
export interface ReturnTarget {
  readonly redirectUri: string
  readonly state: string | undefined
  /** Whether the response to this client has no `iss` parameter. */
  readonly omitsIss: boolean
}

/** What is known about a refused request, for the audit trail only. */
export interface KnownParties {
  /** A registered client, authenticated or not. */
  readonly clientId?: string | undefined
  /** Whether the client is approved and was authenticated by a secret or a key. */
  readonly isAuthenticated?: boolean
  readonly launchId?: string | undefined
  readonly patientId?: string | undefined
  /** Why this request revoked a grant. */
  readonly endedGrant?: string | undefined
}

/** A sent value beside the one that it was compared with, for developers only. It must not be a secret. */
export interface Comparison {
  /** The parameter. */
  readonly name: string
  /** Undefined if it was not sent. */
  readonly sent: string | undefined
  readonly expected: readonly string[]
  readonly origin: 'registered' | 'required' | 'granted' | 'launched' | 'in the authorization request'
}

/**
 * A refused request. `description` is for the client and its developers, `detail` for the log only. It may be redirected
 * only if `returnTo` is set (RFC 6749, 4.1.2.1).
 */
export class Refusal extends Failing {
  readonly kind = 'refused'
  readonly code: RefusalCode
  readonly description: string
  readonly detail: string | undefined
  readonly returnTo: ReturnTarget | undefined
  readonly known: KnownParties
  readonly compared: readonly Comparison[]

  constructor(
    code: RefusalCode,
    description: string,
    more: Partial<Pick<Refusal, 'detail' | 'returnTo' | 'known' | 'compared'>> = {},
  ) {
    super()
    this.code = code
    this.description = description
    this.detail = more.detail
    this.returnTo = more.returnTo
    this.known = more.known ?? {}
    this.compared = more.compared ?? []
  }

  withReturnTo(returnTo: ReturnTarget): Refusal {
    return new Refusal(this.code, this.description, { ...this, returnTo })
  }

  withComparison(comparison: Comparison): Refusal {
    return new Refusal(this.code, this.description, { ...this, compared: [...this.compared, comparison] })
  }

  withKnown(known: KnownParties): Refusal {
    return new Refusal(this.code, this.description, { ...this, known: { ...this.known, ...known } })
  }
}

/** RFC 6749, 5.2. All others are 400. */
const STATUSES: Partial<Record<RefusalCode, 401 | 403 | 500 | 503>> = {
  invalid_client: 401,
  access_denied: 403,
  temporarily_unavailable: 503,
  server_error: 500,
}

export function getStatus(code: RefusalCode): 400 | 401 | 403 | 500 | 503 {
  return STATUSES[code] ?? 400
}
