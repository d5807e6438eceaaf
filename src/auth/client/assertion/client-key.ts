import { isRecord } from '../../../fhir/index.ts'
import { type Algorithm, readKeySet, type VerificationKey } from '../../../jwt/index.ts'
import { LIMITS } from '../../limits.ts'

/** How assertions may be signed (SMART 2.2, asymmetric authentication). */
export const assertionAlgorithms = ['RS384', 'ES384'] as const satisfies readonly Algorithm[]

/** The keys of a client that may verify an assertion. Undefined when the document is not a JWK Set, or is too large. */
export function readClientKeys(document: unknown): readonly VerificationKey[] | undefined {
  const isTooLarge = isRecord(document) && Array.isArray(document.keys) && document.keys.length > LIMITS.keys
  return isTooLarge ? undefined : readKeySet(document, assertionAlgorithms)
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
