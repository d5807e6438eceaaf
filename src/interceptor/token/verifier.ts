import { LruMap } from '../../cache/index.ts'
import { type Because, failFor, GRANULAR_SCOPES, TOKEN_CHARACTERS, type TOKENS } from '../../fhir/index.ts'
import { type Algorithm, decodeJwt, type Jwt, verifySignature } from '../../jwt/index.ts'
import {
  type Grant,
  hasTooManyCombined,
  MAX_COMBINED_PARAMETERS,
  PORTAL_CLIENT,
  type Scope,
} from '../../smart/index.ts'
import { checkClaims, type ExpectedToken, readGrant } from './check-claims.ts'
import type { KeySet } from './key-set.ts'

export type Verify = typeof verifySignature

/** An issuer, its keys, and how to read its tokens. */
export interface Issuer<Caller> extends ExpectedToken {
  readonly keys: KeySet
  readonly readGrant: (claims: Jwt['claims']) => Grant
  readonly createCaller: (grant: Grant) => Caller
}

interface VerifierOptions<Caller> {
  /** The accepted issuers, our auth server first if it is one. */
  readonly issuers: readonly [Issuer<Caller>, ...Issuer<Caller>[]]
  readonly clock: () => number
  readonly verify?: Verify | undefined
}

export type Verified<Caller> =
  | Because<keyof typeof TOKENS | 'no-bearer' | 'expired-token' | 'no-keys'>
  | {
      readonly caller: Caller
      /** The token is signed by its issuer and has expired. */
      readonly isExpired: boolean
    }

export interface Verifier<Caller> {
  /** Verifies the token of an Authorization header; synchronously if the token was seen before. */
  verify(authorization: string | undefined): Verified<Caller> | Promise<Verified<Caller>>
  /** Forgets every verified token. */
  forget(): void
}

interface SeenToken<Caller> {
  readonly verified: { readonly caller: Caller; readonly isExpired: boolean }
  /** In milliseconds since 1970. */
  readonly expiresAt: number
}

const REMEMBERED_TOKENS = 1_000

/**
 * Verifies bearer tokens. A token that was seen before costs a map lookup, a new one a signature check, and one with
 * other invalid claims than an expiry neither.
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
    if (!jwt) return failFor('token-not-a-jwt')
    // The unverified `iss` only chooses the rules and the key set.
    const issuer = (typeof jwt.claims.iss === 'string' ? known.get(jwt.claims.iss) : undefined) ?? first
    const fault = checkClaims(jwt, issuer, clock())
    // The signature of an expired token only tells the audit trail whose it was.
    const isExpired = fault?.reason === 'expired-token'
    if (fault && !isExpired) return fault
    const key = await issuer.keys.find(String(jwt.header.kid), jwt.header.alg)
    if (key === 'unavailable') return fault ?? failFor('no-keys')
    if (key === 'unknown') return fault ?? failFor('token-key-unknown')
    if (!verify(jwt, key)) return fault ?? failFor('token-signature-wrong')
    const grant = issuer.readGrant(jwt.claims)
    const excess = findExcess(grant.scopes)
    if (excess) return fault ?? excess
    const verified = { caller: issuer.createCaller(grant), isExpired: false }
    seen.set(token, { verified, expiresAt: Number(jwt.claims.exp) * 1000 })
    return { ...verified, isExpired }
  }

  return {
    verify(authorization) {
      const bearer: Bearer = readBearer(authorization)
      if (bearer.kind === 'none') return failFor('no-bearer')
      if (bearer.kind === 'too-long') return failFor('token-too-long', { most: TOKEN_CHARACTERS })
      const found = seen.get(bearer.token)
      if (!found) return verifyNew(bearer.token)
      return clock() < found.expiresAt ? found.verified : { ...found.verified, isExpired: true }
    },
    forget: () => seen.clear(),
  }
}

/** Which limit the granular scopes exceed. */
function findExcess(scopes: readonly Scope[]): Because<keyof typeof TOKENS> | undefined {
  const counts = scopes.map(scope => (scope.kind === 'resource' ? scope.query.length : 0))
  if (counts.filter(count => count > 0).length > GRANULAR_SCOPES)
    return failFor('token-scopes-too-many', { most: GRANULAR_SCOPES })
  return hasTooManyCombined(counts)
    ? failFor('token-parameters-too-many', { most: MAX_COMBINED_PARAMETERS })
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

/** Another issuer whose access tokens are accepted. */
export interface TrustedIssuer {
  /** The exact `iss` of its tokens. */
  readonly issuer: string
  readonly jwksUrl: string
  /** One of these must be the `aud` of its tokens; by default the FHIR base. */
  readonly audiences?: readonly string[] | undefined
  /**
   * The `typ` of its access tokens; by default `at+jwt`. If its ID tokens have the same `typ`, only the audience
   * distinguishes them.
   */
  readonly types?: readonly string[] | undefined
  /** Claim names; a dot leads into an object. By default `patient`, `fhirUser` and `scope`. */
  readonly patientClaim?: string | undefined
  readonly fhirUserClaim?: string | undefined
  readonly scopeClaim?: string | undefined
}

/** The algorithms that a trusted issuer may sign with. */
export const TRUSTED_ALGORITHMS: readonly Algorithm[] = ['RS256', 'RS384', 'PS256', 'ES256', 'ES384']

/** Reads the grant from the claims of a verified token of the issuer. */
export function readTrustedGrant(claims: Jwt['claims'], trusted: TrustedIssuer, fhirBaseUrl: string): Grant {
  const { issuer, patientClaim = 'patient', fhirUserClaim = 'fhirUser', scopeClaim = 'scope' } = trusted
  const patient = findClaim(claims, patientClaim)
  const { clientId, ...grant } = readGrant(
    {
      ...claims,
      // Only our own auth server knows for which patients a related person acts.
      user_patients: undefined,
      audit: undefined,
      scope: findClaim(claims, scopeClaim),
      fhirUser: findClaim(claims, fhirUserClaim),
      // Some issuers send a reference.
      patient: typeof patient === 'string' ? patient.replace(/^Patient\//, '') : undefined,
    },
    fhirBaseUrl,
  )
  // Only our own auth server issues tokens of the portal.
  return { ...grant, issuer, ...(clientId !== undefined && clientId !== PORTAL_CLIENT && { clientId }) }
}

/** Finds a claim by its full name, which may be a URL with dots, or by a path of names. */
function findClaim(claims: Readonly<Record<string, unknown>>, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name]
  let value: unknown = claims
  for (const part of name.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part)) return undefined
    value = (value as Readonly<Record<string, unknown>>)[part]
  }
  return value
}
