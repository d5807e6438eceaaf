import { isRecord } from '../../../fhir/index.ts'
import { type Algorithm, readKeySet, type VerificationKey } from '../../../jwt/index.ts'
import { LIMITS } from '../../limits.ts'

/** SMART 2.2, asymmetric authentication. */
export const assertionAlgorithms = ['RS384', 'ES384'] as const satisfies readonly Algorithm[]

/** The keys of a client that may verify an assertion. Undefined when the document is not a JWK Set, or is too large. */
export function readClientKeys(document: unknown): readonly VerificationKey[] | undefined {
  const isTooLarge = isRecord(document) && Array.isArray(document.keys) && document.keys.length > LIMITS.keys
  return isTooLarge ? undefined : readKeySet(document, assertionAlgorithms)
}

/**
 * Serializes a registered key set with the members that are strings or lists of strings; no others are needed.
 * Undefined if no key can verify an assertion, or if it is too long.
 */
export function serializeKeySet(document: unknown): string | undefined {
  if ((readClientKeys(document) ?? []).length === 0 || !isRecord(document)) return undefined
  const jwks: readonly unknown[] = Array.isArray(document.keys) ? document.keys : []
  const keys = jwks.filter(isRecord).map(jwk => Object.fromEntries(Object.entries(jwk).filter(isPlain)))
  const text = JSON.stringify({ keys })
  return text.length > LIMITS.keySetCharacters ? undefined : text
}

function isPlain([, value]: readonly [string, unknown]): boolean {
  return typeof value === 'string' || (Array.isArray(value) && value.every(one => typeof one === 'string'))
}

/** Whether a key set has a private or secret member. Such a key set must not be stored. */
export function hasPrivateKey(document: unknown): boolean {
  const jwks = isRecord(document) && Array.isArray(document.keys) ? document.keys : []
  return jwks.some(
    jwk => isRecord(jwk) && ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'].some(name => name in jwk),
  )
}
