import type { Interaction, Refused } from '../fhir/index.ts'
import type { Access } from './access-filter.ts'
import type { Grant } from './grant.ts'

/** A caller whose token is good. Each interaction of the request (a Bundle has many) is then decided by itself. */
export interface Authenticated {
  readonly allowed: true
  /** What the token says, for the audit trail. */
  readonly grant?: Grant
  decide(interaction: Interaction): Refused | Permitted
}

/** An interaction that is let through, within what it reaches. */
interface Permitted {
  readonly allowed: true
  readonly access: Access
  /** For the audit trail: the scope that decided, `fhirUser`, `public`, or `entries` of a Bundle. */
  readonly by?: string
}

/** A caller whose token is no good. */
export interface AuthFailure extends Refused {
  /** For the audit trail: what the token said, where its issuer signed it and it was revoked or has expired since. */
  readonly rejectedGrant?: Grant
}

/** What a FHIR server asks before it touches data. The interceptor is one; an unguarded server has none. */
export interface Authenticator {
  /**
   * Judges the bearer token of a request, at once where it can. Never throws or rejects: whatever goes wrong inside
   * becomes a refusal.
   */
  authenticate(
    authorization: string | undefined,
  ): AuthFailure | Authenticated | Promise<AuthFailure | Authenticated>
}
