/** Characters of the scope that an auth server may grant a session. Each request to `/api` parses it. */
export const GRANTED_SCOPE_CHARACTERS = 32_000

/** Resources in a list of the session API, and the maximum of `_count`. */
export const LISTED_RESOURCES = 1_000
/** Pages that the app reads from a FHIR server for one list. */
export const SEARCH_PAGES = 200

/** Characters of the parameters of `/launch` and `/callback`. `/launch` passes them on in a response header. */
export const LAUNCH_PARAMETER_CHARACTERS = { iss: 2_000, launch: 4_096, code: 4_096, state: 200 } as const

/** Open sessions of one browser. The oldest ends when another one opens. */
export const SESSIONS_PER_BROWSER = 10

/** Sessions whose patients a process remembers, to warn of similar names. */
export const SHOWN_PATIENTS = 10_000

/** Pending launches of one browser. */
export const PENDING_LAUNCHES = 5
/** Pending launches from one network, and in total: anybody can start one, even without a cookie. */
export const PENDING_LAUNCHES_PER_NETWORK = 2_000
export const PENDING_LAUNCHES_IN_ALL = 10_000

/** Characters of a pending launch that its browser keeps. The cookies of five are far below the limit of the headers. */
export const KEPT_CHARACTERS = 1_000

/**
 * Timeout for the auth server, independent of `smart.app.timeout-seconds`: if the response to a refresh is lost,
 * the app must repeat the request while the auth server still accepts it as a retry.
 */
export const AUTH_SERVER_TIMEOUT_MS = 20_000

/** How long one instance may take to renew tokens (discovery and refresh) before another takes over. */
export function computeRenewalClaimMs(authTimeoutMs: number): number {
  return 2 * authTimeoutMs + 5_000
}
