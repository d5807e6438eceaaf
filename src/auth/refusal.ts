/** The OAuth 2.0 and OpenID Connect errors that we answer with (RFC 6749, 4.1.2.1 and 5.2; RFC 7591, 3.2.2; OIDC Core, 3.1.2.6). */
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
  | 'request_not_supported'
  | 'request_uri_not_supported'
  | 'registration_not_supported'
  | 'invalid_redirect_uri'
  | 'invalid_client_metadata'
  | 'temporarily_unavailable'
  | 'server_error'

/** Where an error may be sent: a redirect address that was verified to be the client's own. */
export interface Return {
  readonly redirectUri: string
  readonly state: string | undefined
  /** Whether the client asked not to be sent `iss`. */
  readonly omitsIss: boolean
}

/** What is known of a request that is turned away, for the audit trail alone. */
export interface Known {
  /** Of a registered client, whether or not it proved itself. */
  readonly clientId?: string | undefined
  /** Whether that client proved itself, by a secret or a key, and an administrator vouches for it. */
  readonly isProven?: boolean
  readonly launchId?: string | undefined
  readonly patientId?: string | undefined
  /** Why a grant ended with this very request. */
  readonly endedGrant?: string | undefined
}

/**
 * A request that is turned away. `description` is for the client and its developer, `detail` for our log only. It knows
 * whether it may be redirected: only once `returnTo` was verified (RFC 6749, 4.1.2.1).
 */
export class Refusal {
  readonly code: RefusalCode
  readonly description: string
  readonly detail: string | undefined
  readonly returnTo: Return | undefined
  readonly known: Known

  constructor(
    code: RefusalCode,
    description: string,
    more: { detail?: string | undefined; returnTo?: Return | undefined; known?: Known } = {},
  ) {
    this.code = code
    this.description = description
    this.detail = more.detail
    this.returnTo = more.returnTo
    this.known = more.known ?? {}
  }

  /** The same refusal, which may now be sent to the client's verified address. */
  returningTo(returnTo: Return): Refusal {
    return new Refusal(this.code, this.description, { ...this, returnTo })
  }

  /** The same refusal, with more for the audit trail. */
  knowing(known: Known): Refusal {
    return new Refusal(this.code, this.description, { ...this, known: { ...this.known, ...known } })
  }
}

/** The status of a refusal that is answered with JSON or a page (RFC 6749, 5.2). */
export function statusOf(code: RefusalCode): 400 | 401 | 403 | 500 | 503 {
  switch (code) {
    case 'invalid_client':
      return 401
    case 'access_denied':
      return 403
    case 'temporarily_unavailable':
      return 503
    case 'server_error':
      return 500
    case 'invalid_request':
    case 'invalid_grant':
    case 'invalid_scope':
    case 'unauthorized_client':
    case 'unsupported_grant_type':
    case 'unsupported_response_type':
    case 'login_required':
    case 'consent_required':
    case 'interaction_required':
    case 'request_not_supported':
    case 'request_uri_not_supported':
    case 'registration_not_supported':
    case 'invalid_redirect_uri':
    case 'invalid_client_metadata':
      return 400
  }
}
