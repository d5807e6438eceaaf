import { buildFhirUser } from '../clinician/clinician.ts'
import type { AuthSettings } from '../context.ts'
import { hasScope } from '../grant/grant.ts'
import { signOwnJwt } from '../keys/own-jwt.ts'
import type { SigningKey } from '../keys/signing-key.ts'
import type { AccessTokenOptions } from './access-token.ts'

/** OIDC Core, 2. */
export function signIdToken(
  settings: Pick<AuthSettings, 'issuerUrl' | 'fhirBaseUrl'>,
  key: SigningKey,
  options: AccessTokenOptions & { readonly nonce: string | undefined },
): string {
  const { grant, scope, nonce, now, lifetimeSeconds } = options
  const issuedAt = Math.floor(now / 1000)
  const { id, fhirUserId, displayName } = grant.clinician
  const fhirUser = hasScope(scope, 'fhirUser')
  return signOwnJwt(key, 'JWT', {
    iss: settings.issuerUrl,
    sub: id,
    aud: grant.clientId,
    iat: issuedAt,
    exp: issuedAt + lifetimeSeconds,
    auth_time: Math.floor(grant.authTime / 1000),
    ...(nonce === undefined ? {} : { nonce }),
    ...(fhirUser ? { fhirUser: buildFhirUser(fhirUserId, settings.fhirBaseUrl) } : {}),
    ...(fhirUser || hasScope(scope, 'profile') ? { name: displayName } : {}),
  })
}
