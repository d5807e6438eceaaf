import type { Algorithm, Jwt } from '../../jwt/index.ts'
import { type Grant, PORTAL_CLIENT } from '../../smart/index.ts'
import { readGrant } from './read-grant.ts'

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
