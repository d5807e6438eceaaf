import type { Access, Grant } from '../consent/index.ts'
import type { Interaction } from './interaction.ts'
import { type OperationOutcome, outcome } from './outcome.ts'

/** A request that is turned away: the response that says so, and nothing else. */
export interface Refused {
  readonly allowed: false
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly outcome: OperationOutcome
  /** For the audit trail, never for the caller: why the token is no good. */
  readonly why?: string
  /** For the audit trail: the scope that covers type and letter, but not what was asked for. */
  readonly by?: string
}

/** A caller whose token is good. Each interaction of the request (a Bundle has many) is then decided by itself. */
export interface Admitted {
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

/** What a FHIR server asks before it touches data. The interceptor is one; an unguarded server has none. */
export interface Guard {
  /** Judges the bearer token of a request. Never rejects: whatever goes wrong inside becomes a refusal. */
  admit(authorization: string | undefined): Promise<Refused | Admitted>
}

/**
 * The answer to whatever the grant does not reach (contract 4, "other refusals"). Where existence is a secret, an
 * absent resource has the very same answer.
 */
export function outsideGrant(diagnostics?: string): Refused {
  const text = 'Not within the granted patient, user or filter.'
  return {
    allowed: false,
    status: 403,
    headers: {},
    outcome: outcome('forbidden', text, diagnostics === undefined ? {} : { diagnostics }),
  }
}
