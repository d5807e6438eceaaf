import { TOKEN_CHARACTERS } from '../../fhir/index.ts'

/** What an Authorization header holds: a bearer token, one that is too long, or none (RFC 6750, 2.1). */
export type Bearer =
  | { readonly kind: 'token'; readonly token: string }
  | { readonly kind: 'none' }
  | { readonly kind: 'too-long' }

/** Reads the token of a header. The scheme is compared without regard to case (RFC 9110, 11.1). */
export function readBearer(authorization: string | undefined): Bearer {
  if (authorization === undefined || !/^bearer +\S/i.test(authorization)) return { kind: 'none' }
  const token = authorization.slice('bearer'.length).trim()
  return token.length <= TOKEN_CHARACTERS ? { kind: 'token', token } : { kind: 'too-long' }
}
