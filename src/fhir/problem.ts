import type { Failed } from '../core/index.ts'
import type { Misunderstood } from './interaction.ts'
import { describeUnsupportedOperation } from './operations.ts'
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

/** The response to an interaction that is not performed. */
export interface ErrorResponse {
  readonly status: number
  readonly outcome: OperationOutcome
  readonly headers?: Readonly<Record<string, string>>
}

/** A problem of any module. */
export interface AnyProblem extends Failed {
  readonly problem: string
}

// An absent resource gets the same text, so that the response reveals nothing (docs/decisions/0021-refused-and-absent.md).
const OUTSIDE_ACCESS =
  "The token's scopes do not cover this resource, or it does not exist. A scope for its patient, in a wider context or without a filter may cover it; a user/ scope covers no more than the user's own rights"

/** The response of a problem of this module. fhir-api/response.ts adds those of the FHIR API. */
export function toErrorResponse(problem: FhirProblem): ErrorResponse {
  switch (problem.problem) {
    case 'misunderstood':
      return createErrorResponse(
        problem.status,
        problem.isExcess ? 'too-costly' : getIssueCode(problem.status),
        problem.text,
        problem.allow && { allow: problem.allow.join(', ') },
      )
    case 'refused': {
      const { status, headers, outcome } = problem.refused
      return { status, headers, outcome }
    }
    case 'outside-access':
      if (problem.element !== undefined)
        return createErrorResponse(
          403,
          'forbidden',
          `Cannot store ${problem.element}: the resource that it refers to does not exist, or is not covered by the token`,
        )
      return { status: 403, outcome: refuseOutsideGrant(OUTSIDE_ACCESS).outcome }
    case 'absent':
      return createErrorResponse(404, 'not-found', `Cannot find ${problem.type}/${problem.id}`)
    case 'gone':
      return createErrorResponse(
        410,
        'deleted',
        `Cannot read ${problem.type}/${problem.id}: it has been deleted`,
      )
    case 'malformed-body':
      return createErrorResponse(400, 'structure', problem.text)
    case 'body-too-large':
      return createErrorResponse(
        413,
        'too-long',
        `Cannot read body: it is larger than ${problem.limit} bytes`,
      )
    case 'wrong-content-type':
      return createErrorResponse(
        415,
        'not-supported',
        `Cannot read body: expected ${problem.expected.join(' or ')}`,
        // RFC 5789, 2.2
        problem.isPatch ? { 'accept-patch': problem.expected.join(', ') } : undefined,
      )
    case 'wrong-content-encoding':
      return createErrorResponse(
        415,
        'not-supported',
        `Cannot read body: expected the encoding ${problem.expected}, or none`,
        // RFC 9110, 12.5.3
        { 'accept-encoding': problem.expected },
      )
    case 'not-acceptable':
      return createErrorResponse(406, 'not-supported', 'Only application/fhir+json is supported.')
    case 'invalid-resource':
      return { status: 422, outcome: createFaultsOutcome(problem.faults) }
    case 'contradiction':
      return createErrorResponse(400, 'invalid', problem.text)
    case 'unusable-patch':
      return createErrorResponse(422, 'processing', problem.text)
    case 'stale':
      return createErrorResponse(412, 'conflict', problem.text)
    case 'multiple-matches':
      return createErrorResponse(
        412,
        'multiple-matches',
        `Cannot choose a ${problem.type}: several match the search parameters`,
      )
    case 'no-match':
      return createErrorResponse(
        404,
        'not-found',
        problem.element === undefined
          ? `Cannot find a ${problem.type} that matches the search parameters`
          : `Cannot resolve ${problem.element}: no ${problem.type} matches its search parameters`,
      )
    case 'bad-search':
      return createErrorResponse(400, problem.code, problem.text)
    case 'too-costly':
      return createErrorResponse(400, 'too-costly', problem.text)
    case 'bad-bundle':
      return { status: 400, outcome: createOutcome('structure', problem.text, locateEntry(problem.entry)) }
    case 'unsupported-operation':
      return createErrorResponse(404, 'not-supported', describeUnsupportedOperation(problem.name))
  }
}

/** The response to a transaction whose entry failed: that of the entry, with its position. */
export function createEntryFailure(entry: number, failed: ErrorResponse): ErrorResponse {
  const at = `Bundle.entry[${entry}]`
  const issue = failed.outcome.issue.map(it => ({
    ...it,
    diagnostics: `${at}: ${it.diagnostics}`,
    expression: it.expression ?? [at],
  }))
  return { ...failed, outcome: { ...failed.outcome, issue } }
}

export function createErrorResponse(
  status: number,
  code: IssueCode,
  text: string,
  headers?: Readonly<Record<string, string>>,
): ErrorResponse {
  return { status, outcome: createOutcome(code, text), ...(headers && { headers }) }
}

function getIssueCode(status: 400 | 404 | 405 | 415): 'invalid' | 'not-found' | 'not-supported' {
  return status === 404 ? 'not-found' : status === 400 ? 'invalid' : 'not-supported'
}

function createFaultsOutcome(faults: readonly Fault[]): OperationOutcome {
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

function locateEntry(entry: number | undefined): { readonly expression?: readonly string[] } {
  return entry === undefined ? {} : { expression: [`Bundle.entry[${entry}]`] }
}
