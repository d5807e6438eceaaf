import { LruMap } from '../../cache/index.ts'
import { remember, toRecord } from '../../core/index.ts'
import { type Because, failFor, isId, parseReference, type TOKENS } from '../../fhir/index.ts'
import { type Algorithm, isNumericDate, isToCome, type Jwt } from '../../jwt/index.ts'
import { type Grant, PORTAL_CLIENT, parseScopes } from '../../smart/index.ts'

/** What a token must contain. */
export interface ExpectedToken {
  readonly issuer: string
  /** The FHIR base, or another issuer's name for it. */
  readonly audiences: readonly string[]
  /** The `typ` of an access token; by default `at+jwt`. */
  readonly types?: readonly string[] | undefined
  /** The algorithms that may sign its tokens. */
  readonly algorithms: readonly Algorithm[]
}

type TokenFault = Because<keyof typeof TOKENS | 'expired-token'>

/** Checks header and claims. It comes before the signature check, which is expensive. */
export function checkClaims(jwt: Jwt, expected: ExpectedToken, now: number): TokenFault | undefined {
  return checkHeader(jwt.header, expected) ?? checkIssued(jwt.claims, expected) ?? checkTime(jwt.claims, now)
}

// RFC 9068, 2.1: otherwise an ID token, signed with the same key, would be accepted.
const ACCESS_TOKEN: readonly string[] = ['at+jwt']

function checkHeader(
  { alg, typ, kid, crit }: Jwt['header'],
  expected: ExpectedToken,
): TokenFault | undefined {
  const { algorithms, types = ACCESS_TOKEN } = expected
  if (!algorithms.some(it => it === alg))
    return failFor('token-alg-wrong', { expected: algorithms.join(' or ') })
  const named = typeof typ === 'string' ? typ.toLowerCase().replace(/^application\//, '') : ''
  if (!types.some(it => it.toLowerCase() === named))
    return failFor('token-typ-wrong', { expected: types.join(' or ') })
  if (typeof kid !== 'string' || kid === '') return failFor('token-kid-missing')
  return crit === undefined ? undefined : failFor('token-crit-unsupported')
}

function checkIssued({ iss, aud }: Jwt['claims'], expected: ExpectedToken): TokenFault | undefined {
  if (iss !== expected.issuer) return failFor('token-iss-wrong', { expected: expected.issuer })
  const audiences: readonly unknown[] = Array.isArray(aud) ? aud : [aud]
  return audiences.some(it => typeof it === 'string' && expected.audiences.includes(removeTrailingSlash(it)))
    ? undefined
    : failFor('token-aud-wrong', { expected: expected.audiences.join(' or ') })
}

function checkTime({ exp, nbf }: Jwt['claims'], now: number): TokenFault | undefined {
  if (!isNumericDate(exp)) return failFor('token-exp-missing')
  if (isToCome(nbf, now)) return failFor('token-not-yet-valid')
  return exp * 1000 <= now ? failFor('expired-token') : undefined
}

/** The FHIR base is valid with and without a trailing slash. */
export function removeTrailingSlash(url: string): string {
  return url.endsWith('/') ? url.slice(0, -1) : url
}

const USERS: ReadonlySet<string> = new Set([
  'Practitioner',
  'PractitionerRole',
  'Patient',
  'RelatedPerson',
  'Person',
])

/**
 * Reads the grant from the claims of a verified token. An unreadable `patient`, `fhirUser` or `user_patients` claim is
 * ignored. So is `audit`, unless the portal asks.
 */
export function readGrant(claims: Readonly<Record<string, unknown>>, fhirBaseUrl: string): Grant {
  const { patient, fhirUser, user_patients, sub, client_id, jti } = claims
  const user = typeof fhirUser === 'string' ? parseReference(fhirUser, fhirBaseUrl) : undefined
  return {
    scopes: readScopes(claims.scope),
    ...(typeof patient === 'string' && isId(patient) && { patient }),
    ...(user && USERS.has(user.type) && { fhirUser: { type: user.type, id: user.id } }),
    ...(Array.isArray(user_patients) && user_patients.every(isId) && { userPatients: user_patients }),
    ...(typeof sub === 'string' && { subject: sub }),
    ...(typeof client_id === 'string' && { clientId: client_id }),
    ...(typeof jti === 'string' && { tokenId: jti }),
    ...(client_id === PORTAL_CLIENT && readAudit(claims.audit)),
  }
}

/** What the portal adds to the audit records of its requests. */
function readAudit(claim: unknown): Pick<Grant, 'note' | 'address'> {
  const { note, address } = toRecord(claim)
  return {
    ...(typeof note === 'string' && { note }),
    ...(typeof address === 'string' && { address }),
  }
}

/** All tokens of an app have a few scope strings: they share the parsed scopes. */
const parsed = new LruMap<Grant['scopes']>(200)

function readScopes(claim: unknown): Grant['scopes'] {
  return typeof claim === 'string' ? remember(parsed, claim, parseScopes) : parseScopes(claim)
}
