import { createPublicKey, type KeyObject, verify } from 'node:crypto'
import { isRecord } from '../../../fhir/index.ts'
import { LIMITS } from '../../limits.ts'

/** How assertions may be signed (SMART 2.2, asymmetric authentication). */
export const assertionAlgorithms = ['RS384', 'ES384'] as const
export type AssertionAlgorithm = (typeof assertionAlgorithms)[number]

/** A public key of a client. */
export interface ClientKey {
  readonly kid: string
  readonly algorithm: AssertionAlgorithm
  readonly key: KeyObject
}

export function isAssertionAlgorithm(value: unknown): value is AssertionAlgorithm {
  return assertionAlgorithms.some(algorithm => algorithm === value)
}

/** The keys of a JWK Set (RFC 7517, 5) that may verify an assertion; others are passed over. Undefined: it is none, or too large. */
export function readClientKeys(document: unknown): readonly ClientKey[] | undefined {
  const jwks = isRecord(document) ? document.keys : undefined
  if (!Array.isArray(jwks) || jwks.length > LIMITS.keys) return undefined
  return jwks.flatMap(jwk => (isRecord(jwk) ? (readKey(jwk) ?? []) : []))
}

/**
 * A registered key set as it is kept: of each key the members that are texts or lists of texts, for no other is ever
 * read. Undefined when there is no key in it that may verify an assertion, or it is too long.
 */
export function keptKeySet(document: unknown): string | undefined {
  if ((readClientKeys(document) ?? []).length === 0 || !isRecord(document)) return undefined
  const jwks: readonly unknown[] = Array.isArray(document.keys) ? document.keys : []
  const keys = jwks.filter(isRecord).map(jwk => Object.fromEntries(Object.entries(jwk).filter(isPlain)))
  const text = JSON.stringify({ keys })
  return text.length > LIMITS.keySetCharacters ? undefined : text
}

function isPlain([, value]: readonly [string, unknown]): boolean {
  return typeof value === 'string' || (Array.isArray(value) && value.every(one => typeof one === 'string'))
}

/** Whether a private or secret member is in a key set: then it must not be registered, nor kept. */
export function holdsPrivateKey(document: unknown): boolean {
  const jwks = isRecord(document) && Array.isArray(document.keys) ? document.keys : []
  return jwks.some(
    jwk => isRecord(jwk) && ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'].some(name => name in jwk),
  )
}

/** Verifies a JWS signature; that of ES384 is the two numbers one after the other (RFC 7518, 3.4). */
export function isSignedBy({ key }: ClientKey, input: Buffer, signature: Buffer): boolean {
  return verify('sha384', input, { key, dsaEncoding: 'ieee-p1363' }, signature)
}

function readKey(jwk: Readonly<Record<string, unknown>>): ClientKey | undefined {
  const algorithm = algorithmOf(jwk)
  const { kid, use, alg, key_ops: operations } = jwk
  if (algorithm === undefined || typeof kid !== 'string' || kid === '') return undefined
  if ((use ?? 'sig') !== 'sig' || (alg ?? algorithm) !== algorithm) return undefined
  if (operations !== undefined && !(Array.isArray(operations) && operations.includes('verify')))
    return undefined
  const key = load(jwk)
  return key && { kid, algorithm, key }
}

function algorithmOf({ kty, crv }: Readonly<Record<string, unknown>>): AssertionAlgorithm | undefined {
  if (kty === 'RSA') return 'RS384'
  return kty === 'EC' && crv === 'P-384' ? 'ES384' : undefined
}

// Only the public members are read. RFC 7518, 3.3: an RSA key has at least 2048 bits. A longer one takes longer to verify.
function load({ kty, n, e, crv, x, y }: Readonly<Record<string, unknown>>): KeyObject | undefined {
  try {
    const parts = kty === 'RSA' ? { kty, n, e } : { kty, crv, x, y }
    const key = createPublicKey({ key: parts as JsonWebKey, format: 'jwk' })
    const bits = key.asymmetricKeyDetails?.modulusLength ?? 2048
    return bits >= 2048 && bits <= LIMITS.rsaBits ? key : undefined
  } catch {
    return undefined
  }
}
