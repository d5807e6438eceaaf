import { createPublicKey, type KeyObject } from 'node:crypto'

// RFC 7518, 3.3
const SMALLEST_MODULUS = 2048

/** The RSA keys of a JWK Set (RFC 7517, 5) that may verify RS256, by `kid`; others are passed over. */
export function readKeys(document: unknown): ReadonlyMap<string, KeyObject> {
  const found = new Map<string, KeyObject>()
  const jwks: unknown =
    typeof document === 'object' && document !== null && 'keys' in document ? document.keys : []
  for (const jwk of Array.isArray(jwks) ? jwks : []) {
    const key = isVerifier(jwk) ? load(jwk) : undefined
    if (key) found.set(jwk.kid, key)
  }
  return found
}

interface Verifier {
  readonly kid: string
  readonly n: string
  readonly e: string
}

function isVerifier(jwk: unknown): jwk is Verifier {
  if (typeof jwk !== 'object' || jwk === null) return false
  const { kty, kid, use, alg, n, e } = jwk as Readonly<Record<string, unknown>>
  const texts = typeof kid === 'string' && typeof n === 'string' && typeof e === 'string'
  return texts && kty === 'RSA' && (use ?? 'sig') === 'sig' && (alg ?? 'RS256') === 'RS256'
}

// Only the public members: a private key must not be needed, nor held, here.
function load({ n, e }: Verifier): KeyObject | undefined {
  try {
    const key = createPublicKey({ key: { kty: 'RSA', n, e }, format: 'jwk' })
    return (key.asymmetricKeyDetails?.modulusLength ?? 0) >= SMALLEST_MODULUS ? key : undefined
  } catch {
    return undefined
  }
}
