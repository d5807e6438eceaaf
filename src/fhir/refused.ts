import { type OperationOutcome, outcome } from './outcome.ts'

/** A request that is turned away: the response that says so, and nothing else. */
export interface Refused {
  readonly allowed: false
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly outcome: OperationOutcome
  /** What would permit it; also in the diagnostics of the outcome. */
  readonly hint?: string
  /** For the audit trail, never for the caller: why the token is no good. */
  readonly why?: string
  /** For the audit trail: the scope that covers type and permission, but not what was asked for. */
  readonly by?: string
}

/**
 * The response for a resource outside the grant (ERROR-4). If the caller must not learn which resources exist, an absent
 * resource gets the same response (ABSENT-1).
 */
export function outsideGrant(hint?: string): Refused {
  const text = 'Not within the granted patient, user or filter.'
  return {
    allowed: false,
    status: 403,
    headers: {},
    outcome: outcome('forbidden', text, { hint }),
    ...(hint !== undefined && { hint }),
  }
}
