import { type Claims, decodeJwt, readKeySet, signJwt, verifySignature } from '../../jwt/index.ts'
import type { PublicJwk, SigningKey } from './signing-key.ts'

/** RFC 9068, 4: the `typ` keeps an ID token from being used as an access token. */
export type TokenType = 'at+jwt' | 'JWT'

export function signOwnJwt({ publicJwk, privateKey }: SigningKey, typ: TokenType, claims: Claims): string {
  return signJwt({ alg: publicJwk.alg, typ, kid: publicJwk.kid }, claims, privateKey)
}

/** The claims of a token of this type that one of our keys signed, even if it has expired; otherwise undefined. */
export function verifyOwnJwt(token: string, typ: TokenType, keys: readonly PublicJwk[]): Claims | undefined {
  const jwt = decodeJwt(token)
  if (jwt?.header.typ !== typ) return undefined
  const named = keys.filter(({ kid }) => kid === jwt.header.kid)
  const [key] = readKeySet({ keys: named }, ['RS256']) ?? []
  return key && verifySignature(jwt, key) ? jwt.claims : undefined
}
