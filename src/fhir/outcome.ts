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
  readonly diagnostics?: string
  readonly expression?: readonly string[]
}

/** The error body of every FHIR and `/api/**` response (service.md 2.6). */
export interface OperationOutcome {
  readonly resourceType: 'OperationOutcome'
  readonly issue: readonly OutcomeIssue[]
}

/** An OperationOutcome with one error. */
export function outcome(
  code: IssueCode,
  text: string,
  more: Pick<OutcomeIssue, 'diagnostics' | 'expression'> = {},
): OperationOutcome {
  return {
    resourceType: 'OperationOutcome',
    issue: [{ severity: 'error', code, details: { text }, ...more }],
  }
}
