import { randomUUID } from 'node:crypto'
import { LruMap } from '../../cache/index.ts'
import { PORTAL_CLIENT } from '../../smart/index.ts'
import { LIFETIME, LIMITS } from '../base/limits.ts'
import { buildFhirUser, type Clinician } from '../users/user.ts'
import { type KeyRing, signOwnJwt } from './keys/key-ring.ts'
import type { SigningKey } from './keys/signing-key.ts'

/** Returns a short-lived token for the portal's own requests on behalf of a clinician. */
export type GetPortalToken = (clinician: Clinician) => Promise<string>

interface TokenDependencies extends Dependencies {
  /** The records of a patient or related person; empty for a clinician. */
  readonly findPatients: (user: Clinician) => Promise<readonly string[]>
}

interface Dependencies {
  readonly settings: { readonly issuerUrl: string; readonly fhirBaseUrl: string }
  readonly keys: KeyRing
  readonly clock: () => number
}

/** Reuses a token for half of its lifetime, because a signature costs as much as a page. */
export function createPortalTokens(dependencies: TokenDependencies): GetPortalToken {
  const issued = new LruMap<{ readonly token: string; readonly reusedUntil: number }>(LIMITS.portalTokensKept)
  return async clinician => {
    const key = await dependencies.keys.getSigningKey()
    const patients = await dependencies.findPatients(clinician)
    const name = JSON.stringify([key.publicJwk.kid, clinician.id, clinician.fhirUserId, patients])
    const known = issued.get(name)
    if (known && dependencies.clock() < known.reusedUntil) return known.token
    const token = await signToken(dependencies, key, {
      sub: clinician.id,
      scope: 'user/Patient.rs user/Encounter.rs',
      fhirUser: buildFhirUser(clinician.fhirUserId, dependencies.settings.fhirBaseUrl),
      ...(patients.length > 0 && { user_patients: patients }),
    })
    issued.set(name, { token, reusedUntil: dependencies.clock() + LIFETIME.portalToken / 2 })
    return token
  }
}

export type LookupType = 'Practitioner' | 'RelatedPerson' | 'Patient' | 'CareTeam'

/** A token of the auth server itself, to find out who a user is, and for administrators whom the policy names. */
export async function issueUserLookupToken(dependencies: Dependencies, type: LookupType): Promise<string> {
  const claims = { sub: PORTAL_CLIENT, scope: `system/${type}.rs` }
  return signToken(dependencies, await dependencies.keys.getSigningKey(), claims)
}

interface PortalClaims {
  readonly sub: string
  readonly scope: string
  readonly fhirUser?: string
  readonly user_patients?: readonly string[]
}

function signToken({ settings, clock }: Dependencies, key: SigningKey, claims: PortalClaims) {
  const issuedAt = Math.floor(clock() / 1000)
  return signOwnJwt(key, 'at+jwt', {
    iss: settings.issuerUrl,
    aud: settings.fhirBaseUrl,
    client_id: PORTAL_CLIENT,
    ...claims,
    jti: randomUUID(),
    iat: issuedAt,
    exp: issuedAt + LIFETIME.portalToken / 1000,
  })
}
