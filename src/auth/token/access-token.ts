import { randomBytes } from 'node:crypto'
import { parseScopes } from '../../smart/index.ts'
import { fhirUserOf } from '../clinician/clinician.ts'
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

/** The access token of a grant (contract 4). Its `jti` begins with the grant's id, by which all of them can be named. */
export function accessToken(
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
    ...(speaksOfUser(scope)
      ? { fhirUser: fhirUserOf(grant.clinician.fhirUserId, settings.fhirBaseUrl) }
      : {}),
  })
}

// Contract 5.4: `user/` without a `fhirUser` in the token reaches nothing.
function speaksOfUser(scope: string): boolean {
  return (
    hasScope(scope, 'fhirUser') ||
    parseScopes(scope).some(one => one.kind === 'resource' && one.context === 'user')
  )
}
