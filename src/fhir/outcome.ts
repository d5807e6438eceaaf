/** The used codes of R4's IssueType. */
export type IssueCode =
  | 'login'
  | 'expired'
  | 'forbidden'
  | 'invalid'
  | 'structure'
  | 'required'
  | 'value'
  | 'invariant'
  | 'not-supported'
  | 'not-found'
  | 'deleted'
  | 'conflict'
  | 'duplicate'
  | 'multiple-matches'
  | 'too-long'
  | 'too-costly'
  | 'throttled'
  | 'code-invalid'
  | 'processing'
  | 'transient'
  | 'timeout'
  | 'exception'
  | 'informational'

export interface OutcomeIssue {
  readonly severity: 'fatal' | 'error' | 'warning' | 'information'
  readonly code: IssueCode
  readonly details: { readonly text: string }
  /** The text, which some clients show instead of `details`, and the hint. */
  readonly diagnostics: string
  readonly expression?: readonly string[]
}

/** The error body of every FHIR and `/api/**` response (ERROR-1). */
export interface OperationOutcome {
  readonly resourceType: 'OperationOutcome'
  readonly issue: readonly OutcomeIssue[]
}

/** An OperationOutcome with one error. */
export function createOutcome(
  code: IssueCode,
  text: string,
  more: { readonly hint?: string | undefined; readonly expression?: readonly string[] } = {},
): OperationOutcome {
  const { hint, expression } = more
  const diagnostics = hint === undefined ? text : `${text.replace(/\.$/, '')}. ${hint}`
  const issue = { severity: 'error', code, details: { text }, diagnostics } as const
  return { resourceType: 'OperationOutcome', issue: [expression ? { ...issue, expression } : issue] }
}

/** A refused request, as the response. */
export interface Refused {
  readonly allowed: false
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly outcome: OperationOutcome
  /** The kind of the refusal, for metrics. */
  readonly reason?: string
  /** The way to get access; also in the diagnostics of the outcome. */
  readonly hint?: string
  /** For the audit trail, never for the caller: why the token is invalid. */
  readonly why?: string
  /** For the audit trail: the scope that covers type and permission, but not this request. */
  readonly by?: string
}

/**
 * The response for a resource outside the grant (ERROR-4). If the caller must not learn which resources exist, an absent
 * resource gets the same response (ABSENT-1).
 */
export function refuseOutsideGrant(hint?: string): Refused {
  const text = 'Not within the granted patient, user or filter.'
  return {
    allowed: false,
    status: 403,
    headers: {},
    outcome: createOutcome('forbidden', text, { hint }),
    ...(hint !== undefined && { hint }),
  }
}
