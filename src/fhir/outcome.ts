/** The issue codes that we use (R4 IssueType). */
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
  /** The text again, which some clients show in the place of `details`, and where there is one the hint. */
  readonly diagnostics: string
  readonly expression?: readonly string[]
}

/** The error body of every FHIR and `/api/**` response (ERROR-1). */
export interface OperationOutcome {
  readonly resourceType: 'OperationOutcome'
  readonly issue: readonly OutcomeIssue[]
}

/** An OperationOutcome with one error. */
export function outcome(
  code: IssueCode,
  text: string,
  more: { readonly hint?: string | undefined; readonly expression?: readonly string[] } = {},
): OperationOutcome {
  const { hint, expression } = more
  const diagnostics = hint === undefined ? text : `${text.replace(/\.$/, '')}. ${hint}`
  const issue = { severity: 'error', code, details: { text }, diagnostics } as const
  return { resourceType: 'OperationOutcome', issue: [expression ? { ...issue, expression } : issue] }
}
