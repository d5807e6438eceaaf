import { randomUUID } from 'node:crypto'
import { type Clinician, fhirUserOf } from '../clinician/clinician.ts'
import type { AuthContext } from '../context.ts'
import { signOwnJwt } from '../keys/own-jwt.ts'
import { LIFETIME } from '../lifetimes.ts'

/** The portal's own token for one clinician (contract 5.4): short-lived, and for what the portal shows only. */
export async function portalToken(
  { settings, keys, clock }: AuthContext,
  clinician: Clinician,
): Promise<string> {
  const issuedAt = Math.floor(clock() / 1000)
  return signOwnJwt(await keys.signing(), 'at+jwt', {
    iss: settings.issuerUrl,
    sub: clinician.id,
    aud: settings.fhirBaseUrl,
    client_id: 'sallyport-portal',
    scope: 'user/Patient.rs user/Encounter.rs',
    jti: randomUUID(),
    iat: issuedAt,
    exp: issuedAt + LIFETIME.portalToken / 1000,
    fhirUser: fhirUserOf(clinician.fhirUserId, settings.fhirBaseUrl),
  })
}
