import { randomBytes } from 'node:crypto'
import { parseScopes } from '../../smart/index.ts'
import { buildFhirUser } from '../clinician/clinician.ts'
import type { AuthSettings } from '../context.ts'
import { type Grant, hasScope } from '../grant/grant.ts'
import { signOwnJwt } from '../keys/own-jwt.ts'
import type { SigningKey } from '../keys/signing-key.ts'

export interface AccessTokenOptions {
  readonly grant: Grant
  readonly scope: string
  readonly now: number
  readonly lifetimeSeconds: number
}

/** Its `jti` begins with the grant's id, so that all tokens of a grant can be revoked. */
export function signAccessToken(
  settings: Pick<AuthSettings, 'issuerUrl' | 'fhirBaseUrl'>,
  key: SigningKey,
  { grant, scope, now, lifetimeSeconds }: AccessTokenOptions,
): string {
  const issuedAt = Math.floor(now / 1000)
  return signOwnJwt(key, 'at+jwt', {
    iss: settings.issuerUrl,
    sub: grant.clinician.id,
    aud: settings.fhirBaseUrl,
    client_id: grant.clientId,
    scope,
    jti: `${grant.id}.${randomBytes(12).toString('base64url')}`,
    iat: issuedAt,
    exp: issuedAt + lifetimeSeconds,
    ...(grant.patientId === undefined ? {} : { patient: grant.patientId }),
    ...(grant.encounterId === undefined ? {} : { encounter: grant.encounterId }),
    ...(needsFhirUser(scope)
      ? { fhirUser: buildFhirUser(grant.clinician.fhirUserId, settings.fhirBaseUrl) }
      : {}),
  })
}

// A `user/` scope grants nothing without a `fhirUser` claim.
function needsFhirUser(scope: string): boolean {
  return (
    hasScope(scope, 'fhirUser') ||
    parseScopes(scope).some(one => one.kind === 'resource' && one.context === 'user')
  )
}
