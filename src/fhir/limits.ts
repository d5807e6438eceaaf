/** Characters of an access token. */
export const TOKEN_CHARACTERS = 12 * 1024
/** Granular scopes, which restrict by search parameters, of an access token. */
export const GRANULAR_SCOPES = 150
