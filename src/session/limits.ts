/** Characters of the scope that an auth server may grant a session. It is read again for every request to `/api`. */
export const GRANTED_SCOPE_CHARACTERS = 32_000

/** Launches that one browser may have under way. */
export const PENDING_LAUNCHES = 5
