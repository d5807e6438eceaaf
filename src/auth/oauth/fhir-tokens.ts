import { randomUUID } from 'node:crypto'
import { LruMap } from '../../cache/index.ts'
import { PORTAL_CLIENT } from '../../smart/index.ts'
import type { AuditedRead, FhirTokens, LookupType, ReaderCaller } from '../base/fhir-reader.ts'
import { LIFETIME, LIMITS } from '../base/limits.ts'
import { PURPOSES } from '../base/purposes.ts'
import { type AuthUser, buildFhirUser, opensRecords } from '../base/user.ts'
import { type KeyRing, signOwnJwt } from './keys/key-ring.ts'
import type { SigningKey } from './keys/signing-key.ts'

interface Dependencies {
  readonly settings: { readonly issuerUrl: string; readonly fhirBaseUrl: string }
  readonly keys: KeyRing
  readonly clock: () => number
}

/** Finds the records of a patient or related person with the server's own access; empty for a clinician. */
type FindPatients = (user: AuthUser, fhirTokens: Pick<FhirTokens, 'forLookup'>) => Promise<readonly string[]>

/** Short-lived tokens. Those of users are reused for half of their lifetime, because a signature costs as much as a page. */
export function createFhirTokens(dependencies: Dependencies, findPatients: FindPatients): FhirTokens {
  const issued = new LruMap<{ readonly token: string; readonly reusedUntil: number }>(LIMITS.portalTokensKept)
  const forLookup = (type: LookupType, caller: ReaderCaller) => issueLookupToken(dependencies, type, caller)

  async function forUser(user: AuthUser, audited: AuditedRead): Promise<string> {
    const key = await dependencies.keys.getSigningKey()
    const patients = await findPatients(user, { forLookup })
    const name = JSON.stringify([key.publicJwk.kid, user.id, user.fhirUserId, patients, audited])
    const known = issued.get(name)
    if (known && dependencies.clock() < known.reusedUntil) return known.token
    const token = await sign(key, user, { patients, audited, scope: 'user/Patient.rs user/Encounter.rs' })
    issued.set(name, { token, reusedUntil: dependencies.clock() + LIFETIME.portalToken / 2 })
    return token
  }

  function sign(
    key: SigningKey,
    user: AuthUser,
    {
      patients,
      audited,
      scope,
    }: { readonly patients: readonly string[]; readonly audited: AuditedRead; readonly scope: string },
  ): Promise<string> {
    return signToken(dependencies, key, {
      sub: user.id,
      scope,
      fhirUser: buildFhirUser(user.fhirUserId, dependencies.settings.fhirBaseUrl),
      ...(patients.length > 0 && { user_patients: patients }),
      audit: describeAudited(audited),
    })
  }

  return {
    forUser,
    forLookup,
    forProposal: async (user, audited, scope) =>
      sign(await dependencies.keys.getSigningKey(), user, {
        patients: await findPatients(user, { forLookup }),
        audited,
        scope,
      }),
  }
}

/** A token of the auth server itself. Audit records name the caller. */
export async function issueLookupToken(
  dependencies: Dependencies,
  type: LookupType,
  { subject = PORTAL_CLIENT, fhirUserId = '', ...audited }: ReaderCaller,
): Promise<string> {
  const types = [type, ...(type === 'PractitionerRole' ? ['Organization', 'Location'] : [])]
  return signToken(dependencies, await dependencies.keys.getSigningKey(), {
    sub: subject,
    scope: types.map(it => `system/${it}.rs`).join(' '),
    ...(opensRecords({ fhirUserId }) && {
      fhirUser: buildFhirUser(fhirUserId, dependencies.settings.fhirBaseUrl),
    }),
    audit: describeAudited(audited),
  })
}

interface PortalClaims {
  readonly sub: string
  readonly scope: string
  readonly fhirUser?: string
  readonly user_patients?: readonly string[]
  readonly audit: AuditClaim
}

/** What audit records say beside the caller: `note` is their reason. */
interface AuditClaim {
  readonly address?: string
  readonly note: string
}

function describeAudited({ purpose, ...rest }: AuditedRead): AuditClaim {
  return { ...rest, note: PURPOSES[purpose].note }
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
