import type { Interaction, Refused } from '../fhir/index.ts'
import type { Access } from './access-filter.ts'
import type { Grant } from './grant.ts'

/** A caller with a valid token. Each interaction of the request (a Bundle has many) is decided separately. */
export interface Authenticated {
  readonly allowed: true
  /** For the audit trail. */
  readonly grant?: Grant
  decide(interaction: Interaction): Refused | Permitted
}

/** An allowed interaction, with its access. */
interface Permitted {
  readonly allowed: true
  readonly access: Access
  /** For the audit trail: the scope that decided, `fhirUser`, `public`, or `entries` of a Bundle. */
  readonly by?: string
}

/** A caller without a valid token. */
export interface AuthFailure extends Refused {
  /** For the audit trail: the grant of a token that was valid and has expired or was revoked. */
  readonly rejectedGrant?: Grant
}

/** Decides the requests to a FHIR server. The interceptor is one. */
export interface Authenticator {
  /**
   * Verifies the bearer token of a request, synchronously if it is cached. Never throws or rejects: any error becomes a
   * refusal.
   */
  authenticate(
    authorization: string | undefined,
  ): AuthFailure | Authenticated | Promise<AuthFailure | Authenticated>
}
