/** Characters of the scope that an auth server may grant a session. It is read again for every request to `/api`. */
export const GRANTED_SCOPE_CHARACTERS = 32_000

/** Resources in a list of the session API, and the most that a client may ask for by `_count`. */
export const LISTED_RESOURCES = 1_000
/** Pages of a FHIR server that are read for one list. */
export const SEARCH_PAGES = 200

/** Characters of the parameters of `/launch` and `/callback`. What `/launch` passes on has to fit into a response header. */
export const LAUNCH_PARAMETER_CHARACTERS = { iss: 2_000, launch: 4_096, code: 4_096, state: 200 } as const

/** Launches that one browser may have under way. */
export const PENDING_LAUNCHES = 5
/** Launches that are under way from one network, and altogether: anybody can begin one, without a cookie too. */
export const PENDING_LAUNCHES_PER_NETWORK = 2_000
export const PENDING_LAUNCHES_IN_ALL = 10_000

/**
 * How long the app waits for an answer of an auth server, whatever `smart.app.timeout-seconds` says: a renewal whose
 * response was lost must be asked again while the auth server still takes it for a retry.
 */
export const AUTH_SERVER_TIMEOUT_MS = 20_000

/** How long one instance may take to renew tokens, by discovery and refresh, before another takes over. */
export function computeRenewalClaimMs(authTimeoutMs: number): number {
  return 2 * authTimeoutMs + 5_000
}
