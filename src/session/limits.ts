/** Characters of the scope that an auth server may grant a session. It is read again for every request to `/api`. */
export const GRANTED_SCOPE_CHARACTERS = 32_000
