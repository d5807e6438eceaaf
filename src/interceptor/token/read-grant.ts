import { isId, parseReference } from '../../fhir/index.ts'
import { type Grant, parseScopes } from '../../smart/index.ts'

const USERS: ReadonlySet<string> = new Set([
  'Practitioner',
  'PractitionerRole',
  'Patient',
  'RelatedPerson',
  'Person',
])

/** Reads the grant from the claims of a verified token. An unreadable `patient` or `fhirUser` claim is ignored. */
export function readGrant(claims: Readonly<Record<string, unknown>>, fhirBaseUrl: string): Grant {
  const { patient, fhirUser, sub, client_id, jti } = claims
  const user = typeof fhirUser === 'string' ? parseReference(fhirUser, fhirBaseUrl) : undefined
  return {
    scopes: parseScopes(claims.scope),
    ...(typeof patient === 'string' && isId(patient) && { patient }),
    ...(user && USERS.has(user.type) && { fhirUser: { type: user.type, id: user.id } }),
    ...(typeof sub === 'string' && { subject: sub }),
    ...(typeof client_id === 'string' && { clientId: client_id }),
    ...(typeof jti === 'string' && { tokenId: jti }),
  }
}
