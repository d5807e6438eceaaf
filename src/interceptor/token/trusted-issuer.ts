import type { Algorithm, Jwt } from '../../jwt/index.ts'
import { type Grant, PORTAL_CLIENT } from '../../smart/index.ts'
import { grantOf } from './grant-of.ts'

/** Another issuer than our auth server whose access tokens are honoured (contract 5.7). */
export interface TrustedIssuer {
  /** Its `iss`, to the letter. */
  readonly issuer: string
  /** Its key set. */
  readonly jwksUrl: string
  /** The `aud` of its tokens for this server, any one of these; the FHIR base unless told. */
  readonly audiences?: readonly string[] | undefined
  /**
   * The `typ` of its access tokens; `at+jwt` unless told. Where it is one that its id_tokens have too, only the
   * audience tells them apart.
   */
  readonly types?: readonly string[] | undefined
  /** Names of claims, with a dot for one inside another; `patient`, `fhirUser` and `scope` unless told. */
  readonly patientClaim?: string | undefined
  readonly fhirUserClaim?: string | undefined
  readonly scopeClaim?: string | undefined
}

/** The algorithms that a trusted issuer may sign with. */
export const TRUSTED_ALGORITHMS: readonly Algorithm[] = ['RS256', 'RS384', 'PS256', 'ES256', 'ES384']

/** What a verified token of the issuer grants. */
export function foreignGrantOf(claims: Jwt['claims'], trusted: TrustedIssuer, fhirBaseUrl: string): Grant {
  const { issuer, patientClaim = 'patient', fhirUserClaim = 'fhirUser', scopeClaim = 'scope' } = trusted
  const patient = claimAt(claims, patientClaim)
  const { clientId, ...grant } = grantOf(
    {
      ...claims,
      scope: claimAt(claims, scopeClaim),
      fhirUser: claimAt(claims, fhirUserClaim),
      // Some write a reference.
      patient: typeof patient === 'string' ? patient.replace(/^Patient\//, '') : undefined,
    },
    fhirBaseUrl,
  )
  // The portal is our own: nobody else's token is honoured as its.
  return { ...grant, issuer, ...(clientId !== undefined && clientId !== PORTAL_CLIENT && { clientId }) }
}

/** A claim by its whole name, which may be an address, or by the names that lead to it. */
function claimAt(claims: Readonly<Record<string, unknown>>, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name]
  let value: unknown = claims
  for (const part of name.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part)) return undefined
    value = (value as Readonly<Record<string, unknown>>)[part]
  }
  return value
}
