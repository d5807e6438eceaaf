import type { Failed, StoredFacts } from '../core/index.ts'
import type { Misunderstood } from './interaction.ts'
import type { Because, FhirReason } from './reasons/reasons.ts'
import type { UPSTREAM } from './reasons/upstream.ts'
import type { IssueCode } from './reasons/words.ts'
import type { ResourceFault } from './resource.ts'

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
  /** For metrics and the audit trail (docs/errors.md). */
  readonly reason?: string
  /** For the audit trail: the facts of the reason. */
  readonly facts?: StoredFacts
  /** The way to get access; also in the diagnostics of the outcome. */
  readonly hint?: string
  /** The scopes that the request lacks, all at once. */
  readonly scopes?: readonly string[]
  /** For the audit trail: the text, if it is not that of the response. */
  readonly why?: string
  /** For the audit trail of a developer: what the token says about itself, which nobody has verified. */
  readonly claimed?: Readonly<Record<string, string>>
  /** For the audit trail: the scope that covers type and permission, but not this request. */
  readonly by?: string
  /** For the audit trail of a host: what its response contained and the caller may not see. */
  readonly found?: string
}

/** Why an interaction is not performed. None of these is a bug: each has a response. */
export type FhirProblem =
  | Misunderstood
  | PlainProblem
  | (Because<'invalid-resource'> & { readonly faults: readonly ResourceFault[] })
  | (Failed & { readonly reason: 'refused'; readonly refused: Refused })

/** The reasons of failures that have nothing but facts. */
export type PlainReason = Exclude<FhirReason, keyof typeof UPSTREAM | 'invalid-resource'>

interface PlainProblem extends Because<PlainReason> {
  readonly kind?: undefined
}

/** A problem of any module. */
export interface AnyProblem extends Failed {
  readonly reason: string
}

export function createFaultsOutcome(faults: readonly ResourceFault[]): OperationOutcome {
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
