/** RFC 6749, 4.1.2.1 and 5.2; RFC 7591, 3.2.2; RFC 8707, 2; OIDC Core, 3.1.2.6; OIDC Unmet Authentication Requirements. */
export type RefusalCode =
  | 'invalid_request'
  | 'invalid_client'
  | 'invalid_grant'
  | 'invalid_scope'
  | 'invalid_target'
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

/** A sent value beside the one that it was compared with, for developers only. It must not be a secret. */
export interface ComparedValue {
  /** The parameter. */
  readonly name: string
  /** Undefined if it was not sent. */
  readonly sent: string | undefined
  readonly expected: readonly string[]
  readonly origin: 'registered' | 'required' | 'granted' | 'launched' | 'in the authorization request'
}

/** The words about a reason. In all of them, `{name}` stands for the fact of this name. */
export interface Words {
  /** For the client and its developers. */
  readonly sentence: string
  /** The exact reason, for the log and for developers only. */
  readonly detail?: string
  /** The parameter whose comparison, as it was sent and as it is expected, replaces the cause. */
  readonly compares?: string
  /** What happened, for developers; by default the sentence. */
  readonly cause?: string
  /** Follows the cause. */
  readonly note?: string
  /** What to do. */
  readonly remedy: string
}

/** The words about a request that OAuth refuses. */
export interface OAuthWords extends Words {
  readonly cause: string
  readonly error: RefusalCode
}

/** The words about a request that a page or another endpoint refuses. */
export interface StatusWords extends Words {
  readonly cause: string
  readonly status: number
}
