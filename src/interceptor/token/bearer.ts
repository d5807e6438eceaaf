/** What an Authorization header holds: a bearer token, something that cannot be one, or none (RFC 6750, 2.1). */
export type Bearer =
  | { readonly kind: 'token'; readonly token: string }
  | { readonly kind: 'none' }
  | { readonly kind: 'junk' }

// Long enough for some hundred scopes, short enough that hashing it is no work.
const LONGEST = 8192

/** Reads the token of a header. The scheme is compared without regard to case (RFC 9110, 11.1). */
export function readBearer(authorization: string | undefined): Bearer {
  if (authorization === undefined || !/^bearer +\S/i.test(authorization)) return { kind: 'none' }
  const token = authorization.slice('bearer'.length).trim()
  return token.length <= LONGEST ? { kind: 'token', token } : { kind: 'junk' }
}
