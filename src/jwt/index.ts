/**
 * JSON Web Tokens (RFC 7515, 7517, 7519) for every module: sign, decode and verify, and read the public keys of a JWK
 * Set. It checks signatures and nothing else: what `typ`, `iss`, `aud` and `exp` must be is up to the caller, because
 * it differs between access tokens, ID tokens and client assertions.
 */
export {
  type Algorithm,
  type Claims,
  computeThumbprint,
  decodeJwt,
  type Jwt,
  LARGEST_RSA_KEY_BITS,
  readKeySet,
  signJwt,
  type VerificationKey,
  verifySignature,
  verifySignatureInThread,
} from './jwt.ts'
