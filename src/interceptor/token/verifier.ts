import { LruMap } from '../../cache/index.ts'
import { GRANULAR_SCOPES, TOKEN_CHARACTERS } from '../../fhir/index.ts'
import { decodeJwt, type Jwt, verifySignature } from '../../jwt/index.ts'
import { type Grant, hasTooManyCombined, MOST_COMBINED_PARAMETERS, type Scope } from '../../smart/index.ts'
import type { Refusal } from '../refusal.ts'
import { checkClaims, type ExpectedToken, rejectToken, rejectTooLarge } from './check-claims.ts'
import type { KeySet } from './key-set.ts'

export type Verify = typeof verifySignature

/** An issuer, its keys, and how to read its tokens. */
export interface Issuer<Caller> extends ExpectedToken {
  readonly keys: KeySet
  readonly readGrant: (claims: Jwt['claims']) => Grant
  readonly createCaller: (grant: Grant) => Caller
}

export interface VerifierOptions<Caller> {
  /** The accepted issuers, our auth server first. */
  readonly issuers: readonly [Issuer<Caller>, ...Issuer<Caller>[]]
  readonly clock: () => number
  readonly verify?: Verify | undefined
}

export type Verified<Caller> =
  | Refusal
  | { readonly kind: 'caller'; readonly caller: Caller }
  /** The token was valid and has expired. */
  | { readonly kind: 'expired'; readonly caller: Caller }

export interface Verifier<Caller> {
  /** Verifies the token of an Authorization header; synchronously if the token was seen before. */
  verify(authorization: string | undefined): Verified<Caller> | Promise<Verified<Caller>>
  /** Forgets every verified token. */
  forget(): void
}

interface SeenToken<Caller> {
  readonly verified: { readonly kind: 'caller'; readonly caller: Caller }
  /** In milliseconds since 1970. */
  readonly expiresAt: number
}

const REMEMBERED_TOKENS = 5_000

/**
 * Verifies bearer tokens. A token that was seen before costs a map lookup, a new one a signature check, and one with
 * invalid claims neither.
 */
export function createVerifier<Caller>(options: VerifierOptions<Caller>): Verifier<Caller> {
  const { issuers, clock, verify = verifySignature } = options
  const [first] = issuers
  const known = new Map(issuers.map(it => [it.issuer, it]))
  // The keys are the tokens themselves: computing a digest would be most of the cost of a token that was seen before.
  // Only verified tokens get in, and stay after they expire, so that the audit trail knows whose they were.
  const seen = new LruMap<SeenToken<Caller>>(REMEMBERED_TOKENS)

  async function verifyNew(token: string): Promise<Verified<Caller>> {
    const jwt = decodeJwt(token)
    if (!jwt) return rejectToken('it is not a JWT')
    // The unverified `iss` only chooses the rules and the key set.
    const issuer = (typeof jwt.claims.iss === 'string' ? known.get(jwt.claims.iss) : undefined) ?? first
    const fault = checkClaims(jwt, issuer, clock())
    if (fault) return fault
    const key = await issuer.keys.find(String(jwt.header.kid), jwt.header.alg)
    if (key === 'unavailable') return { kind: 'no-keys' }
    if (key === 'unknown') return rejectToken('kid is not a key of the issuer')
    if (!verify(jwt, key)) return rejectToken('the signature is wrong')
    const grant = issuer.readGrant(jwt.claims)
    const excess = findExcess(grant.scopes)
    if (excess !== undefined) return rejectTooLarge(excess)
    const verified = { kind: 'caller', caller: issuer.createCaller(grant) } as const
    seen.set(token, { verified, expiresAt: Number(jwt.claims.exp) * 1000 })
    return verified
  }

  return {
    verify(authorization) {
      const bearer: Bearer = readBearer(authorization)
      if (bearer.kind === 'none') return { kind: 'no-bearer' }
      if (bearer.kind === 'too-long') return rejectTooLarge(`is longer than ${TOKEN_CHARACTERS} characters`)
      const found = seen.get(bearer.token)
      if (!found) return verifyNew(bearer.token)
      return clock() < found.expiresAt ? found.verified : { kind: 'expired', caller: found.verified.caller }
    },
    forget: () => seen.clear(),
  }
}

/** Which limit the granular scopes exceed. */
function findExcess(scopes: readonly Scope[]): string | undefined {
  const counts = scopes.map(scope => (scope.kind === 'resource' ? scope.query.length : 0))
  if (counts.filter(count => count > 0).length > GRANULAR_SCOPES)
    return `has more than ${GRANULAR_SCOPES} granular scopes`
  return hasTooManyCombined(counts)
    ? `has more than ${MOST_COMBINED_PARAMETERS} search parameters in scopes that combine several`
    : undefined
}

/** RFC 6750, 2.1. */
type Bearer =
  | { readonly kind: 'token'; readonly token: string }
  | { readonly kind: 'none' }
  | { readonly kind: 'too-long' }

/** The scheme is compared without regard to case (RFC 9110, 11.1). */
export function readBearer(authorization: string | undefined): Bearer {
  if (authorization === undefined || !/^bearer +\S/i.test(authorization)) return { kind: 'none' }
  const token = authorization.slice('bearer'.length).trim()
  return token.length <= TOKEN_CHARACTERS ? { kind: 'token', token } : { kind: 'too-long' }
}
