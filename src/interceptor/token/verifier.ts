import { LruMap } from '../../cache/index.ts'
import { GRANULAR_SCOPES, TOKEN_CHARACTERS } from '../../fhir/index.ts'
import { decodeJwt, type Jwt, verifySignature } from '../../jwt/index.ts'
import { type Grant, hasTooManyCombined, MOST_COMBINED_PARAMETERS, type Scope } from '../../smart/index.ts'
import type { Refusal } from '../refusal.ts'
import { type Bearer, readBearer } from './bearer.ts'
import { bad, checkClaims, type Expected, tooLarge } from './check-claims.ts'
import type { KeySet } from './key-set.ts'

export type Verify = typeof verifySignature

/** An issuer, its keys, and what its tokens mean. */
export interface Issuer<Caller> extends Expected {
  readonly keys: KeySet
  /** What the claims of a verified token grant. */
  readonly grantOf: (claims: Jwt['claims']) => Grant
  /** Made once for a grant. */
  readonly callerOf: (grant: Grant) => Caller
}

export interface VerifierOptions<Caller> {
  /** Those whose tokens are honoured, our auth server first. */
  readonly issuers: readonly [Issuer<Caller>, ...Issuer<Caller>[]]
  readonly clock: () => number
  readonly verify?: Verify | undefined
}

export type Verified<Caller> =
  | Refusal
  | { readonly kind: 'caller'; readonly caller: Caller }
  /** It was verified, and has expired since. */
  | { readonly kind: 'late'; readonly caller: Caller }

export interface Verifier<Caller> {
  /** The caller whose token the header holds, or why there is none: at once for a token that was seen before. */
  verify(authorization: string | undefined): Verified<Caller> | Promise<Verified<Caller>>
  /** Has every token verified anew. */
  forget(): void
}

interface SeenToken<Caller> {
  readonly verified: { readonly kind: 'caller'; readonly caller: Caller }
  /** In milliseconds since 1970. */
  readonly expiresAt: number
}

const REMEMBERED_TOKENS = 5_000

/**
 * Verifies bearer tokens (service.md 5.1, contract 5.7). A token seen before costs a look into a map and no RSA verification; a
 * new one costs one; one that cannot be good costs none.
 */
export function verifier<Caller>(options: VerifierOptions<Caller>): Verifier<Caller> {
  const { issuers, clock, verify = verifySignature } = options
  const [first] = issuers
  const known = new Map(issuers.map(it => [it.issuer, it]))
  // The keys are the tokens themselves: computing a digest would be most of the cost of a token that was seen before.
  // Only verified tokens get in, and stay after they expire, so that the audit trail knows whose they were.
  const seen = new LruMap<SeenToken<Caller>>(REMEMBERED_TOKENS)

  async function verifyNew(token: string): Promise<Verified<Caller>> {
    const jwt = decodeJwt(token)
    if (!jwt) return bad('it is no JWT')
    // Not believed yet: it says by whose rules the token is judged, and so whose key must have signed it.
    const issuer = (typeof jwt.claims.iss === 'string' ? known.get(jwt.claims.iss) : undefined) ?? first
    const fault = checkClaims(jwt, issuer, clock())
    if (fault) return fault
    const key = await issuer.keys.find(String(jwt.header.kid), jwt.header.alg)
    if (key === 'unavailable') return { kind: 'no-keys' }
    if (key === 'unknown') return bad('kid is no key of the issuer')
    if (!verify(jwt, key)) return bad('the signature is wrong')
    const grant = issuer.grantOf(jwt.claims)
    const excess = findExcess(grant.scopes)
    if (excess !== undefined) return tooLarge(excess)
    const verified = { kind: 'caller', caller: issuer.callerOf(grant) } as const
    seen.set(token, { verified, expiresAt: Number(jwt.claims.exp) * 1000 })
    return verified
  }

  return {
    verify(authorization) {
      const bearer: Bearer = readBearer(authorization)
      if (bearer.kind === 'none') return { kind: 'no-bearer' }
      if (bearer.kind === 'too-long') return tooLarge(`is longer than ${TOKEN_CHARACTERS} characters`)
      const found = seen.get(bearer.token)
      if (!found) return verifyNew(bearer.token)
      return clock() < found.expiresAt ? found.verified : { kind: 'late', caller: found.verified.caller }
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
