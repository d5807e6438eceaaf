import type { Failed } from '../core/index.ts'
import type { Misunderstood } from './interaction.ts'
import type { BadBundle } from './parse-entries.ts'
import type { Fault } from './resource.ts'
import type { BadSearch } from './search/bad-search.ts'

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
  | 'incomplete'
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
  /** The kind of the refusal, for metrics and the audit trail. */
  readonly reason?: string
  /** The way to get access; also in the diagnostics of the outcome. */
  readonly hint?: string
  /** For the audit trail: why the token is invalid; also in the hint. */
  readonly why?: string
  /** For the audit trail: the check that the token failed. */
  readonly check?: string
  /** For the audit trail of a developer: what the token says about itself, which nobody has verified. */
  readonly claimed?: Readonly<Record<string, string>>
  /** For the audit trail: the scope that covers type and permission, but not this request. */
  readonly by?: string
  /** For the audit trail of a host: what its response contained and the caller may not see. */
  readonly found?: string
}

export const OUTSIDE_GRANT = 'Not within the granted patient, user or filter.'

/**
 * The response for a resource outside the grant (ERROR-4). If the caller must not learn which resources exist, an absent
 * resource gets the same response (ABSENT-1).
 */
export function refuseOutsideGrant(hint?: string): Refused {
  return {
    allowed: false,
    status: 403,
    headers: {},
    outcome: createOutcome('forbidden', OUTSIDE_GRANT, { hint }),
    ...(hint !== undefined && { hint }),
  }
}

/** Why new content whose element refers to something outside the access, or absent, is not stored. */
export function describeHiddenTarget(element: string): string {
  return `Cannot store ${element}: the resource that it refers to does not exist, or is not covered by the token`
}

/** Why an interaction is not performed. None of these is a bug: each has a response. */
export type FhirProblem = Failed & FhirReason

type FhirReason =
  | Misunderstood
  | { readonly problem: 'refused'; readonly refused: Refused }
  /** `element` is the element of new content that refers to something outside the access, or absent. */
  | { readonly problem: 'outside-access'; readonly element?: string | undefined }
  | { readonly problem: 'absent'; readonly type: string; readonly id: string }
  | { readonly problem: 'gone'; readonly type: string; readonly id: string }
  | { readonly problem: 'malformed-body'; readonly text: string }
  | { readonly problem: 'body-too-large'; readonly limit: number }
  | {
      readonly problem: 'wrong-content-type'
      readonly expected: readonly string[]
      readonly isPatch?: boolean
    }
  | { readonly problem: 'wrong-content-encoding'; readonly expected: string }
  | { readonly problem: 'not-acceptable' }
  | { readonly problem: 'invalid-resource'; readonly faults: readonly Fault[] }
  | { readonly problem: 'contradiction'; readonly text: string }
  | { readonly problem: 'unusable-patch'; readonly text: string }
  | { readonly problem: 'stale'; readonly text: string }
  | { readonly problem: 'multiple-matches'; readonly type: string }
  | { readonly problem: 'no-match'; readonly type: string; readonly element?: string }
  | BadSearch
  | BadBundle
  | { readonly problem: 'unsupported-operation'; readonly name: string }

/** A problem of any module. */
export interface AnyProblem extends Failed {
  readonly problem: string
}

/** An OperationOutcome with the faults of a resource. */
export function createFaultsOutcome(faults: readonly Fault[]): OperationOutcome {
  return {
    resourceType: 'OperationOutcome',
    issue: faults.map(({ code, text, path, severity }) => ({
      severity: severity ?? 'error',
      code,
      details: { text },
      diagnostics: `${path}: ${text}`,
      expression: [path],
    })),
  }
}
